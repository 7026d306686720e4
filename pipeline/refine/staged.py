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
    rows = staged.select(
        *("file", "line", "outcome", "reason"),
        F.when(F.col("part") == 0, 1).otherwise(0).alias("rows"),
        F.when(is_event, 1).otherwise(0).alias("events"),
        F.when(is_event & F.col("late"), 1).otherwise(0).alias("late"),
    )
    sums = [F.sum(name).alias(name) for name in ("rows", "events", "late")]
    if dataset.keys:  # some events of a row may be duplicates, and others not
        outcome = F.when(F.bool_or(is_event), EVENT).otherwise(F.first("outcome"))
        rows = rows.groupBy("file", "line").agg(outcome.alias("outcome"), F.first("reason").alias("reason"), *sums)
    found = rows.groupBy("outcome", "reason").agg(*sums).collect()
    by_outcome = {name: sum(r["rows"] for r in found if r.outcome == name) for name in (EVENT, QUARANTINED, DUPLICATE)}
    return Counts(
        silver_rows=by_outcome[EVENT],
        events=sum(row["events"] for row in found),
        quarantined=by_outcome[QUARANTINED],
        duplicates=by_outcome[DUPLICATE],
        reasons={row.reason: row["rows"] for row in found if row.outcome == QUARANTINED},
        late=sum(row["late"] for row in found),
    )


def silver_events(staged: DataFrame, dataset: Dataset) -> DataFrame:
    """The events as silver has them."""
    return staged.where(F.col("outcome") == EVENT).select(*(column.name for column in silver(dataset).columns))


def commit_silver(
    spark: SparkSession, config: Config, dataset: Dataset, day: date, events: DataFrame, metadata: Mapping[str, str]
) -> int:
    """Put a landing day's events in the place of those that silver has; the version."""
    before = _fingerprint(_day_rows(spark, config, silver(dataset), day))
    return _commit(spark, config, silver(dataset), day, events, metadata, before)


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
    before = _day_rows(spark, config, table, day)
    print_before = _fingerprint(before)
    if print_before.rows:
        row = ["file", "line"]
        same = before.where(F.col("file_hash").isin(*hashes))
        good = staged.where(F.col("outcome") != QUARANTINED).join(F.broadcast(same.select(*row)), row, "left_semi")
        passed = same.join(good.select(*row).distinct(), row, "left_semi")
        # A row that passed before keeps the run that found it to.
        by = F.when(F.col("resolved"), F.col(RUN_ID)).otherwise(run_id)
        rows = rows.unionByName(passed.withColumns({RUN_ID: by, "resolved": F.lit(True)}).select(*columns))
    return _commit(spark, config, table, day, rows, metadata, print_before)


def _commit(
    spark: SparkSession,
    config: Config,
    table: Table,
    day: date,
    rows: DataFrame,
    metadata: Mapping[str, str],
    before: Row,
) -> int:
    """Replace a landing day's rows, unless they are the same as `before`; the version that has them."""
    if before.rows and before == _fingerprint(rows):
        return delta.current_version(spark, config, table)
    return delta.replace(spark, config, table, rows, {"landing_date": day}, metadata)


def _day_rows(spark: SparkSession, config: Config, table: Table, day: date) -> DataFrame:
    return delta.read(spark, config, table).where(delta.predicate({"landing_date": day}))


def _fingerprint(rows: DataFrame) -> Row:
    """The same for the same rows in any order, whichever run wrote them; and how many `rows` there are."""
    names = sorted(name for name in rows.columns if name != RUN_ID)
    sums = (F.sum(F.xxhash64(F.lit(n), *names).cast("decimal(38,0)")) for n in (1, 2))
    return rows.agg(F.count("*").alias("rows"), *sums).collect()[0]
