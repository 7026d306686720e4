"""A question over stock, and answers to it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import delta
from pipeline.aggregate.partials import gold_schema
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.publish.made import Made
from pipeline.questions import Question, ask
from pipeline.tables import Table, gold_history, silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MONDAY, TUESDAY = date(2030, 1, 7), date(2030, 1, 8)
QUERY = """
RETURN    sector, COUNT(*), AVG(S.price) AS mean
PATTERN   Stock S+
FROM      stock
WHERE     [company]
GROUP-BY  sector
WITHIN    10 minutes SLIDE {slide}
"""
SILVER = silver(DATASETS["stock"])
BY_SECTOR = ask(QUERY.format(slide="10 minutes"), "queries/stock/trends-by-sector.query")

# Of the windows that begin at these minutes of the day and these sectors: the count, which gives the mean too.
Counts = Mapping[tuple[int, str], int]


def few_answers(counts: Counts, day: date = MONDAY) -> pa.Table:
    """The data columns of gold, as aggregating gives them where answers are few."""
    midnight = datetime.combine(day, datetime.min.time(), UTC)
    rows = [
        {
            "window_start": midnight + timedelta(minutes=minute),
            "window_end": midnight + timedelta(minutes=minute + 10),
            "sector": sector,
            "count": str(count),
            "count_log10": None,
            "mean": count % 1000 / 2,
            "exact": True,
        }
        for (minute, sector), count in counts.items()
    ]
    return pa.Table.from_pylist(rows, schema=gold_schema(BY_SECTOR))


def answers(spark: SparkSession, counts: Counts, day: date = MONDAY) -> DataFrame:
    """The same as a frame."""
    schema = (
        "window_start timestamp, window_end timestamp, sector string, "
        "count string, count_log10 double, mean double, exact boolean"
    )
    return spark.createDataFrame([tuple(row.values()) for row in few_answers(counts, day).to_pylist()], schema)


def made(run_id: str, silver_version: int, engine: str = "pane") -> Made:
    """How the answers came about."""
    return Made(run_id, engine, silver_version, 100, ("landing_date=2030-01-07/a.parquet",), ("careful",))


def rows(
    spark: SparkSession, config: Config, table: Table, day: date = MONDAY, version: int | None = None
) -> list[dict[str, Any]]:
    """An interval's rows."""
    frame = delta.read(spark, config, table, version).where(delta.predicate({"interval_date": day}))
    return [row.asDict() for row in frame.orderBy("window_start", "sector", "revision").collect()]


def revisions(spark: SparkSession, config: Config, question: Question = BY_SECTOR, day: date = MONDAY) -> set[Any]:
    """Of what gold holds: minute, sector, count, revision and run."""
    return {_short(row) for row in rows(spark, config, question.table, day)}


def past(spark: SparkSession, config: Config, question: Question = BY_SECTOR, day: date = MONDAY) -> list[Any]:
    """Of what history holds: minute, sector, count, revision and run; who superseded it."""
    found = rows(spark, config, gold_history(question.table), day)
    return sorted((*_short(row), row["superseded_by"]) for row in found)


def _short(row: dict[str, Any]) -> tuple[int, str, int, int, str]:
    start = row["window_start"]
    return start.hour * 60 + start.minute, row["sector"], int(row["count"]), row["revision"], row["run_id"]


# The time after Monday's midnight, the company (which gives the sector), the price and the file.
Event = tuple[timedelta, str, float, str]


def write_events(
    spark: SparkSession, config: Config, events: Mapping[str, Event], landing_date: date = MONDAY, volume: int = 1
) -> int:
    """Put events, by their ids, in the place of a landing day's; the version of silver."""
    midnight = datetime.combine(MONDAY, datetime.min.time())
    rows = [
        (event_id, midnight + after, company, f"of {company}", price, volume, file, landing_date)
        for event_id, (after, company, price, file) in events.items()
    ]
    schema = (
        "event_id string, time timestamp, company string, sector string, price double, volume bigint, "
        "file string, landing_date date"
    )
    frame = spark.createDataFrame(rows, schema).selectExpr(
        "*", "CAST(time AS DATE) AS event_date", "false AS ambiguous_time", "false AS late", "1 AS line"
    )
    return delta.replace(spark, config, SILVER, frame, {"landing_date": landing_date})
