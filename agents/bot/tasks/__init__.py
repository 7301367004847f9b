"""The long jobs, one file each: a function from a desk to an outcome."""
