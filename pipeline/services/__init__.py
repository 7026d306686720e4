"""Airflow, Postgres and Spark on this machine, started and stopped together: `trends up`, `down`, `status`."""
