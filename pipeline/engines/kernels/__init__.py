"""The inner loops, written so that they run both as plain Python and compiled by numba."""
