"""The steps of the migrate graph, one short function a file."""
