"""Reads the text of compiled programs."""
