"""When things run: the DAGs, one file a kind, and what they have in common in `parts`."""
