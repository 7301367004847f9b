"""The language model: messages, the client, what bounds it, and the record of what it did."""
