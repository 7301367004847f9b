"""The pages of `torchtpu-agent serve`: runs, reports and chats, rendered on the server."""
