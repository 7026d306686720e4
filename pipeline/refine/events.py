"""Bronze rows → events with ids and outcomes: each source row gives events, or a reason, or what came before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipeline.sources.formats import UNKNOWN
from pipeline.sources.parsing import ROW

if TYPE_CHECKING:
    from pipeline.datasets.declaration import Dataset

EVENT, QUARANTINED, DUPLICATE = "event", "quarantined", "duplicate"
ID_DIGITS = 20  # of 32: two of a thousand million events have the same id with a chance of 1 in a million
ROWS_A_FILE = 1_000_000
SAMPLED_ROWS = 100_000

Layout = tuple[str, str | None]  # the format of a file, and its header


def refined(rows: DataFrame, dataset: Dataset, day: date, layouts: Sequence[Layout], count: int) -> DataFrame:
    """A landing day's bronze rows, so many, as events and as rows with a reason, in the order of time."""
    files, bounds = 1 + count // ROWS_A_FILE, list[int]()
    if files > 1:
        some = rows.sample(min(1.0, SAMPLED_ROWS / count), seed=1)
        bounds = time_bounds(parsed(some, dataset, layouts), files)
    return (
        rows.transform(parsed, dataset, layouts)
        .transform(with_ids)
        .transform(with_lateness, day, dataset.lag)
        .transform(with_outcomes, dataset)
        .transform(with_raw_of_bad_rows)
        .transform(in_time_order, bounds)
    )


def parsed(rows: DataFrame, dataset: Dataset, layouts: Sequence[Layout]) -> DataFrame:
    """The rows of each format and header, as that format reads them."""
    formats = {known.name: known for known in dataset.formats}
    parts = [_unreadable(rows.where(F.col("format") == UNKNOWN))] if any(name == UNKNOWN for name, _ in layouts) else []
    for name, header in layouts:
        if name in formats:
            same = (F.col("format") == name) & F.col("header").eqNullSafe(F.lit(header))
            parts.append(formats[name].events(rows.where(same)))
    # A format without a column of the dataset has nulls there.
    everything = _nothing(rows, dataset)
    for part in parts:
        everything = everything.unionByName(part, allowMissingColumns=True)
    return everything


def with_ids(events: DataFrame) -> DataFrame:
    """`event_id`: the file's path, the row, which of its equals it is, and which of its events; and `event_date`."""
    text = F.concat_ws("\x1f", "file", "raw", F.col("copy").cast("string"), F.col("part").cast("string"))
    return events.withColumns({"event_id": F.left(F.md5(text), F.lit(ID_DIGITS)), "event_date": F.to_date("time")})


def with_lateness(events: DataFrame, day: date, lag: int) -> DataFrame:
    """`late`: the event's date is earlier than the landing day allows."""
    return events.withColumn("late", F.col("event_date") < F.lit(day - timedelta(days=lag)))


def with_outcomes(events: DataFrame, dataset: Dataset) -> DataFrame:
    """`outcome`: EVENT, QUARANTINED, or DUPLICATE if its key came before in the day, by file and line."""
    bad = F.col("reason").isNotNull()
    outcome = F.when(bad, F.lit(QUARANTINED))
    if dataset.keys:
        # Rows without an event have no key: each is by itself, so that they do not all come together.
        same_key = Window.partitionBy(*dataset.keys, F.when(bad, F.col("event_id")))
        earlier = F.row_number().over(same_key.orderBy("file", "line", "part"))
        outcome = outcome.when(earlier > 1, F.lit(DUPLICATE))
    return events.withColumn("outcome", outcome.otherwise(F.lit(EVENT)))


def with_raw_of_bad_rows(events: DataFrame) -> DataFrame:
    """`raw` and `file_hash` for quarantine alone: an event's would be most of what is moved and sorted."""
    bad = F.col("outcome") == QUARANTINED
    return events.withColumns({name: F.when(bad, F.col(name)) for name in ("raw", "file_hash")})


def time_bounds(some: DataFrame, files: int) -> list[int]:
    """Microseconds that cut some events into as many ranges as there are to be files."""
    shares = [number / files for number in range(1, files)]
    cuts = some.agg(F.percentile_approx(F.unix_micros("time"), shares)).collect()[0][0]
    return sorted({*cuts}) if cuts else []


def in_time_order(events: DataFrame, bounds: Sequence[int]) -> DataFrame:
    """Ranges of time, one a file, each sorted; events of one time are never in two."""
    micros = F.unix_micros("time")
    # Spark's own ranges would parse every row twice, once to find the bounds.
    number = sum((F.coalesce(micros >= bound, F.lit(False)).cast("int") for bound in bounds), F.lit(0))
    # The partition comes first, or the writer would sort once more.
    return events.repartitionById(len(bounds) + 1, number).sortWithinPartitions("landing_date", "time", "event_id")


def _unreadable(rows: DataFrame) -> DataFrame:
    return rows.select(*ROW, F.lit(0).alias("part"), F.col("problem").alias("reason"))


def _nothing(rows: DataFrame, dataset: Dataset) -> DataFrame:
    """No rows, with all columns."""
    own = {"part": "int", "reason": "string", "time": "timestamp", "ambiguous_time": "boolean", "derived": "string"}
    columns = own | {column.name: column.type for column in dataset.columns}
    nulls = [F.lit(None).cast(kind).alias(name) for name, kind in columns.items()]
    return rows.where(F.lit(False)).select(*ROW, *nulls)
