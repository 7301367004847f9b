"""Migrates pinned public repositories and records what holds for each."""
