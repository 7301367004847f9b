"""The rungs of verification: one file a stage, one function that returns a verdict."""
