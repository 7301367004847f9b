"""Tuning measured: known programs before and after, and a GPT in plain JAX by the same compiler and model of time."""
