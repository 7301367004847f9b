"""The report of a migration: one typed document, written as JSON and as Markdown."""
