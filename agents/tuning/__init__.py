"""The steps of the tune graph, one a file."""
