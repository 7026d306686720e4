"""Raw formats become events: one file a format."""
