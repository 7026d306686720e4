"""Bronze becomes silver, typed events, and quarantine, rows that are none."""
