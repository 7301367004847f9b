"""A GitHub of our own for tests: real HTTP, real git, its rules enforced, faults by script."""
