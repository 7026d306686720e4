"""Engines: a checked query and columns of events → windows with exact aggregates; no Spark, no Airflow."""
