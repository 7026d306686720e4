"""Answers → gold: published by interval, with their revisions, and read again."""
