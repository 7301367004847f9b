"""The suites: each runs its cases, keeps a line for each in a log, and makes a page of them."""
