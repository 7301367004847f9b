"""Puts the folder of the program on the path of its tests."""
