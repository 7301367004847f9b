"""Watches a program from inside its process and writes down what ran; see `torchtpu.trace` for the reader."""
