"""Parts of the launcher: supervision of a workload's processes, its limits, its output, its sandbox."""
