"""What is made of a profile: text, pages, traces, comparisons, and what would make a step fit."""
