"""Trendmill: exact aggregates over all event trends, per sliding window and group."""
