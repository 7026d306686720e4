"""`ops.intervals`: what is complete, one row a dataset and landing day."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from pipeline import delta
from pipeline.config import Config
from pipeline.tables import OPS_INTERVALS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPLETE, FAILED, MISSING = "complete", "failed", "missing"


@dataclass(frozen=True)
class File:
    """A landing file, or a member of an archive that is one, and how many rows it has."""

    file: str
    hash: str
    format: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Interval:
    """One landing day of a dataset, as its last run left it."""

    dataset: str
    landing_date: date
    status: str
    run_id: str
    inputs: str | None = None
    bronze_version: int | None = None
    silver_version: int | None = None
    quarantine_version: int | None = None
    files: Sequence[File] = ()
    source_rows: int = 0
    silver_rows: int = 0
    events: int = 0
    quarantined: int = 0
    duplicates: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    late: int = 0
    warnings: Sequence[str] = ()
    completed_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def is_reconciled(self) -> bool:
        """Whether every source row is accounted for."""
        parts = (self.silver_rows, self.quarantined, self.duplicates)
        return self.source_rows == sum(parts) and self.quarantined == sum(self.reasons.values())


def read(
    spark: SparkSession, config: Config, dataset: str, first: date | None = None, last: date | None = None
) -> list[Interval]:
    """The rows of a dataset, by day."""
    found = [_interval(row) for row in delta.rows(spark, config, OPS_INTERVALS, dataset=dataset)]
    asked = [interval for interval in found if is_between(interval.landing_date, first, last)]
    return sorted(asked, key=lambda interval: interval.landing_date)


def is_between(day: date, first: date | None, last: date | None) -> bool:
    """Whether a day is one of those from the first to the last, where these are given."""
    return (first is None or first <= day) and (last is None or day <= last)


def write(spark: SparkSession, config: Config, interval: Interval) -> None:
    """Put the row in the place of the day's last one."""
    row = dataclasses.asdict(interval) | {"files": [dataclasses.asdict(file) for file in interval.files]}
    row["warnings"] = list(interval.warnings)
    where: delta.Unit = {"dataset": interval.dataset, "landing_date": interval.landing_date}
    delta.replace_rows(spark, config, OPS_INTERVALS, [row], where, {"run_id": interval.run_id})


def _interval(row: dict[str, Any]) -> Interval:
    given = {name: value for name, value in row.items() if value is not None}
    return Interval(
        **given | {"files": [File(**file) for file in row["files"] or ()], "reasons": dict(row["reasons"] or {})}
    )
