"""Great Expectations' engine on Spark, without a query for each list of values that is to have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine

VALUES = ".unexpected_values"


class CountingEngine(SparkDFExecutionEngine):
    """Where `partial_unexpected_count` is 0, a check's failing values are an empty list: Spark need not be asked."""

    def resolve_metrics(
        self,
        metrics_to_resolve: Iterable[Any],
        metrics: dict[Any, Any] | None = None,
        runtime_configuration: dict[str, Any] | None = None,
    ) -> dict[Any, Any]:
        """The values of these metrics."""
        asked = list(metrics_to_resolve)
        empty: dict[Any, Any] = {metric.id: [] for metric in asked if _is_empty(metric)}
        others = [metric for metric in asked if metric.id not in empty]
        found = super().resolve_metrics(others, metrics, runtime_configuration) if others else {}
        return {**found, **empty}


def _is_empty(metric: Any) -> bool:
    wanted = metric.metric_value_kwargs.get("result_format") or {}
    return bool(metric.metric_name.endswith(VALUES)) and wanted.get("partial_unexpected_count") == 0
