"""Staged events → silver and quarantine: counted, then committed, each by landing day in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from pipeline import delta
from pipeline.config import Config
from pipeline.refine.events import DUPLICATE, EVENT, QUARANTINED
from pipeline.tables import Table, quarantine, silver

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from pipeline.datasets.declaration import Dataset

RUN_ID = "run_id"


@dataclass(frozen=True)
class Counts:
    """What became of the source's rows."""

    silver_rows: int
    events: int
    quarantined: int
    duplicates: int
    reasons: Mapping[str, int]
    late: int


def counted(staged: DataFrame, dataset: Dataset) -> Counts:
    """Count the staged rows; a source row that gave any event is no duplicate."""
    is_event = F.col("outcome") == EVENT
    rows = staged.where(F.col("part") == 0)
    if dataset.keys:  # some events of a row may be duplicates, and others not
        outcome = F.when(F.bool_or(is_event), EVENT).otherwise(F.first("outcome"))
        rows = staged.groupBy("file", "line").agg(outcome.alias("outcome"), F.first("reason").alias("reason"))
    found = rows.groupBy("outcome", "reason").count().collect()
    by_outcome = {name: sum(r["count"] for r in found if r.outcome == name) for name in (EVENT, QUARANTINED, DUPLICATE)}
    events, late = staged.agg(F.count_if(is_event), F.count_if(is_event & F.col("late"))).collect()[0]
    return Counts(
        silver_rows=by_outcome[EVENT],
        events=events,
        quarantined=by_outcome[QUARANTINED],
        duplicates=by_outcome[DUPLICATE],
        reasons={row.reason: row["count"] for row in found if row.outcome == QUARANTINED},
        late=late,
    )


def silver_events(staged: DataFrame, dataset: Dataset) -> DataFrame:
    """The events as silver has them."""
    return staged.where(F.col("outcome") == EVENT).select(*(column.name for column in silver(dataset).columns))


def commit_silver(
    spark: SparkSession, config: Config, dataset: Dataset, day: date, events: DataFrame, metadata: Mapping[str, str]
) -> int:
    """Put a landing day's events in the place of those that silver has; the version."""
    return _commit(spark, config, silver(dataset), day, events, metadata)


def commit_quarantine(
    spark: SparkSession,
    config: Config,
    dataset: Dataset,
    day: date,
    staged: DataFrame,
    hashes: Iterable[str],
    metadata: Mapping[str, str],
) -> int:
    """Put a landing day's bad rows in the place of those before; of these, the ones that now pass stay, resolved.

    `hashes` are those of the day's files: what was wrong with other content is gone with it.
    """
    table = quarantine(dataset)
    columns = [column.name for column in table.columns]
    run_id = F.lit(metadata[RUN_ID])
    bad = staged.where(F.col("outcome") == QUARANTINED)
    rows = bad.withColumns({"resolved": F.lit(False), RUN_ID: run_id}).select(*columns)
    before = delta.read(spark, config, table).where(delta.predicate({"landing_date": day}))
    if not before.isEmpty():
        row = ["file", "line"]
        same = before.where(F.col("file_hash").isin(*hashes))
        good = staged.where(F.col("outcome") != QUARANTINED).join(F.broadcast(same.select(*row)), row, "left_semi")
        passed = same.join(good.select(*row).distinct(), row, "left_semi")
        # A row that passed before keeps the run that found it to.
        by = F.when(F.col("resolved"), F.col(RUN_ID)).otherwise(run_id)
        rows = rows.unionByName(passed.withColumns({RUN_ID: by, "resolved": F.lit(True)}).select(*columns))
    return _commit(spark, config, table, day, rows, metadata)


def _commit(
    spark: SparkSession, config: Config, table: Table, day: date, rows: DataFrame, metadata: Mapping[str, str]
) -> int:
    """Replace a landing day's rows, unless they are the same; the version that has them."""
    where = {"landing_date": day}
    before = delta.read(spark, config, table).where(delta.predicate(where))
    if not before.isEmpty() and _fingerprint(before) == _fingerprint(rows):
        return delta.current_version(spark, config, table)
    return delta.replace(spark, config, table, rows, where, metadata)


def _fingerprint(rows: DataFrame) -> list[Row]:
    """The same for the same rows in any order, whichever run wrote them."""
    names = sorted(name for name in rows.columns if name != RUN_ID)
    return rows.agg(
        F.count("*"), *(F.sum(F.xxhash64(F.lit(n), *names).cast("decimal(38,0)")) for n in (1, 2))
    ).collect()
