"""The engines on Spark: silver → the aggregates of an interval's windows."""
