"""What the DAGs have in common; the triggerer and the scheduler import it too."""
