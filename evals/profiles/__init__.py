"""Profiles of known models for TPUs that are not there, held against what can be counted by hand."""
