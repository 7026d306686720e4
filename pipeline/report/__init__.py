"""The report: a static site of what was published, how it was made, and what the checks found."""
