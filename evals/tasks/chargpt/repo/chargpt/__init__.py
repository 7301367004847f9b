"""A character-level GPT: model, data, settings and speed measurement."""
