"""From a compiled program to time, memory and utilisation by source line."""
