"""The hidden checks of a task: one file a check, each with `check(case) -> Outcome`."""
