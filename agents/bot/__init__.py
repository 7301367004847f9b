"""The GitHub pull request bot: webhook, durable jobs, and what it writes to GitHub."""
