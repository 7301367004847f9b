"""Start-up code for every Python process of a workload: brings the device up and reports what happens.

Imports the standard library alone, and torch only once the workload has.
"""
