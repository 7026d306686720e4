"""Landing files become bronze: every row as it came, each file once."""
