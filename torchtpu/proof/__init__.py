"""Makes two runs of one program comparable: oracle, replayed draws, precision, and a recorder of what was computed."""
