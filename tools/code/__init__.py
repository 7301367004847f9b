"""How rules read source code, and write it back by exact spans."""
