"""Results in the lake: ops.quality, one row a check, table, landing day and run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from pipeline import delta
from pipeline.config import Config
from pipeline.intervals import is_between
from pipeline.quality.report import Result
from pipeline.quality.waivers import reasons
from pipeline.tables import OPS_QUALITY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(spark: SparkSession, config: Config, results: Sequence[Result], *, again: bool) -> None:
    """Keep the results of one table, day and run; `again`: the run has some already, which are replaced."""
    first = results[0]
    where: delta.Unit = {
        "dataset": first.dataset,
        "landing_date": first.landing_date,
        "table_name": first.table_name,
        "run_id": first.run_id,
    }
    if not delta.exists(spark, config, OPS_QUALITY):
        delta.create(spark, config, OPS_QUALITY)
    rows = [{**asdict(result), "examples": list(result.examples)} for result in results]
    # Appending disturbs no run that writes another day at the same time, replacing may.
    if again:
        delta.replace_rows(spark, config, OPS_QUALITY, rows, where)
    else:
        delta.append_rows(spark, config, OPS_QUALITY, rows)


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
    found = stored(spark, config, dataset, since, until)
    shown = with_reasons(found if every_run else latest(found), reasons(spark, config))
    return sorted(
        shown, key=lambda result: (result.landing_date, result.table_name, result.checked_at, result.expectation)
    )


def stored(
    spark: SparkSession,
    config: Config,
    dataset: str | None = None,
    since: date | None = None,
    until: date | None = None,
) -> list[Result]:
    """The results of every run as they were written, in no order."""
    partition = {} if dataset is None else {"dataset": dataset}
    found = [_result(row) for row in delta.rows(spark, config, OPS_QUALITY, **partition)]
    return [result for result in found if is_between(result.landing_date, since, until)]


def latest(found: Iterable[Result]) -> list[Result]:
    """The results of the latest run of each table and day."""
    by_table: dict[tuple[str, date], list[Result]] = {}
    for result in found:
        by_table.setdefault((result.table_name, result.landing_date), []).append(result)
    last = {key: max((result.checked_at, result.run_id) for result in group) for key, group in by_table.items()}
    return [
        result for key, group in by_table.items() for result in group if (result.checked_at, result.run_id) == last[key]
    ]


def with_reasons(found: Iterable[Result], waived: Mapping[tuple[date, str], str]) -> list[Result]:
    """The results, those as waived that were waived since; `waived`: why a (day, check) is let through."""
    return [
        result
        if result.success or result.waived_reason is not None
        else replace(result, waived_reason=waived.get((result.landing_date, result.expectation)))
        for result in found
    ]


def _result(row: dict[str, Any]) -> Result:
    return Result(**row | {"examples": tuple(row["examples"] or ())})
