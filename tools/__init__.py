"""What an agent can do to a repository, one file a tool, usable without torch."""
