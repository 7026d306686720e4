"""`gold.engine_runs`: what every engine took for a query's interval, and whether it agrees with the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from pipeline import delta
from pipeline.config import Config
from pipeline.intervals import is_between
from pipeline.tables import ENGINE_RUNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NIGHT, AGREEMENT, COMPARISON = "night", "agreement", "comparison"
FINISHED, DID_NOT_FINISH, CANNOT_RUN, FAILED = "finished", "did not finish", "cannot run", "failed"


@dataclass(frozen=True)
class EngineRun:
    """One engine on one interval of a query."""

    query: str
    interval_date: date
    run_id: str
    purpose: str
    engine: str
    status: str
    query_version: str
    silver_version: int
    reason: str | None = None
    strategy: str | None = None
    events: int | None = None
    windows: int | None = None
    events_a_window: int | None = None
    rows: int | None = None
    log10_trends: float | None = None
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    events_per_second: float | None = None
    peak_stored: int | None = None
    peak_memory: int | None = None
    compared: int | None = None
    agrees: bool | None = None
    difference: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


def record(spark: SparkSession, config: Config, runs: Iterable[EngineRun]) -> None:
    """Keep them, each in the place of what the same run recorded for the same interval and purpose."""
    for (query, day, run_id, purpose), group in groupby(sorted(runs, key=_unit), key=_unit):
        where: delta.Unit = {"query": query, "interval_date": day, "run_id": run_id, "purpose": purpose}
        delta.replace_rows(spark, config, ENGINE_RUNS, [*map(asdict, group)], where, {"run_id": run_id})


def read(
    spark: SparkSession, config: Config, query: str, first: date | None = None, last: date | None = None
) -> list[EngineRun]:
    """The runs of a query, by day and then as they ended."""
    found = [EngineRun(**row) for row in delta.rows(spark, config, ENGINE_RUNS, query=query)]
    asked = [run for run in found if is_between(run.interval_date, first, last)]
    return sorted(asked, key=lambda run: (run.interval_date, run.at, run.engine))


def _unit(run: EngineRun) -> tuple[str, date, str, str]:
    return run.query, run.interval_date, run.run_id, run.purpose
