"""Repositories with known facts that the agent is measured on; one folder a task."""
