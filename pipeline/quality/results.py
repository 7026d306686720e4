"""Results in the lake: ops.quality, one row a check, table, landing day and run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, date
from typing import TYPE_CHECKING

from pipeline import delta
from pipeline.config import Config
from pipeline.quality.report import Result
from pipeline.quality.waivers import reasons
from pipeline.tables import OPS_QUALITY

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


def write(spark: SparkSession, config: Config, results: Sequence[Result]) -> None:
    """Keep the results of one table, day and run; those of the same run are replaced."""
    first = results[0]
    where: delta.Where = {
        "dataset": first.dataset,
        "landing_date": first.landing_date,
        "table_name": first.table_name,
        "run_id": first.run_id,
    }
    if not delta.exists(spark, config, OPS_QUALITY):
        delta.create(spark, config, OPS_QUALITY)
    schema = delta.read(spark, config, OPS_QUALITY).schema
    rows = [{**asdict(result), "examples": list(result.examples)} for result in results]
    frame = spark.createDataFrame([tuple(row[name] for name in schema.names) for row in rows], schema).coalesce(1)
    # Appending disturbs no run that writes another day at the same time, replacing may.
    if delta.row_count(spark, config, OPS_QUALITY, where):
        delta.replace(spark, config, OPS_QUALITY, frame, where)
    else:
        delta.append(spark, config, OPS_QUALITY, frame)


def results(
    spark: SparkSession,
    config: Config,
    dataset: str | None = None,
    since: date | None = None,
    until: date | None = None,
    *,
    every_run: bool = False,
) -> list[Result]:
    """What the checks found, by landing day, table and check: of each table's latest run, or of every run.

    A failure that was waived since is shown as waived.
    """
    if not delta.exists(spark, config, OPS_QUALITY):
        return []
    frame = delta.read(spark, config, OPS_QUALITY)
    if dataset is not None:
        frame = frame.where(frame["dataset"] == dataset)
    if since is not None:
        frame = frame.where(frame["landing_date"] >= since)
    if until is not None:
        frame = frame.where(frame["landing_date"] <= until)
    found = [_result(row) for row in frame.collect()]
    if not every_run:
        found = latest(found)
    waived = reasons(spark, config)
    shown = [_with_reason(result, waived.get((result.landing_date, result.expectation))) for result in found]
    return sorted(
        shown, key=lambda result: (result.landing_date, result.table_name, result.checked_at, result.expectation)
    )


def latest(found: Iterable[Result]) -> list[Result]:
    """The results of the latest run of each table and day."""
    by_table: dict[tuple[str, date], list[Result]] = {}
    for result in found:
        by_table.setdefault((result.table_name, result.landing_date), []).append(result)
    last = {key: max((result.checked_at, result.run_id) for result in group) for key, group in by_table.items()}
    return [
        result for key, group in by_table.items() for result in group if (result.checked_at, result.run_id) == last[key]
    ]


def _result(row: Row) -> Result:
    values = {field.name: row[field.name] for field in fields(Result)}
    # Spark gives times without a zone, in that of the session.
    values["checked_at"] = values["checked_at"].replace(tzinfo=UTC)
    values["examples"] = tuple(values["examples"] or ())
    return Result(**values)


def _with_reason(result: Result, reason: str | None) -> Result:
    if result.success or result.waived_reason is not None or reason is None:
        return result
    return replace(result, waived_reason=reason)
