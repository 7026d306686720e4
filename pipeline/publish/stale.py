"""Stale intervals: what is published and was computed on events that have changed since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from pipeline import delta
from pipeline.aggregate.reach import DAY, EPOCH
from pipeline.config import Config
from pipeline.publish import publications
from pipeline.publish.changes import MICROS, NET, VERSION, FileChange, changes, collect_kept, netted
from pipeline.publish.publications import Publication
from pipeline.questions import Question
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

CHANGED = "its events changed"
OTHER_QUERY = "the query changed"
NOT_KEPT = "what changed since it was published is no longer kept"


@dataclass(frozen=True)
class Stale:
    """A published interval to publish again, and why: so many events changed, and with them so many windows.

    Without SLIDE, windows are those that are published: which others there will be is not known yet.
    """

    query: str
    interval_date: date
    reason: str
    events: int = 0
    windows: int = 0
    files: Sequence[FileChange] = ()


def stale(
    spark: SparkSession, config: Config, question: Question, first: date | None = None, last: date | None = None
) -> list[Stale]:
    """The published intervals of these days that are stale."""
    published = publications.read(spark, config, question.name, first, last)
    found = [
        Stale(question.name, one.interval_date, OTHER_QUERY)
        for one in published
        if one.query_version != question.version
    ]
    now = delta.current_version(spark, config, silver(question.dataset))
    behind = [one for one in published if one.query_version == question.version and one.silver_version < now]
    if behind:
        found += _changed(spark, config, question, behind, now)
    return sorted(found, key=lambda one: one.interval_date)


def _changed(
    spark: SparkSession, config: Config, question: Question, behind: Sequence[Publication], now: int
) -> list[Stale]:
    """In one pass over the feed: each change at the intervals whose publication does not have it yet."""
    from pyspark.sql import functions as F

    pairs = [(one.interval_date, one.silver_version) for one in behind]
    since = spark.createDataFrame(pairs, "interval_date date, since bigint")

    def by_file(version: int) -> DataFrame:
        spread = _with_intervals(changes(spark, config, question, version, now), question)
        new = spread.join(F.broadcast(since), "interval_date").where(F.col(VERSION) > F.col("since"))
        left = netted(new, question, "interval_date", "low", "high")
        if question.reach.slide is None:
            gold = delta.read(spark, config, question.table).join(F.broadcast(since), "interval_date")
            counted = _with_published_windows(left, gold)
        else:
            counted = _with_windows(left, question)
        return counted.groupBy("interval_date", "file").agg(
            F.count_distinct("event_id").alias("events"),
            F.count_if(F.col(NET) > 0).alias("added"),
            F.count_if(F.col(NET) < 0).alias("removed"),
            F.sum("windows").alias("windows"),
        )

    kept, rows = collect_kept((version for _, version in pairs), by_file)
    lost = {day for day, version in pairs if version < kept}
    found = [Stale(question.name, day, NOT_KEPT) for day in lost]
    by_day: dict[date, list[Row]] = defaultdict(list)
    for row in rows:
        by_day[row["interval_date"]].append(row)
    for day in by_day.keys() - lost:
        files = [FileChange(r["file"], r["added"], r["removed"]) for r in by_day[day] if r["file"] is not None]
        events, windows = (sum(row[name] for row in by_day[day]) for name in ("events", "windows"))
        files.sort(key=lambda change: change.file)
        found.append(Stale(question.name, day, CHANGED, events, windows, tuple(files)))
    return found


def _with_intervals(rows: DataFrame, question: Question) -> DataFrame:
    """Each event at the intervals that own a window that it is in; these windows end from `low` up to `high`."""
    from pyspark.sql import functions as F

    # Both are the same for every time and day, but for a shift.
    below, above = question.reach.affected(0)
    start, _ = question.reach.ends(EPOCH)
    first, last = (_floor(f"{MICROS} + {shift - start}", DAY) for shift in (below, above - 1))
    spread = rows.withColumn("day", F.explode(F.expr(f"sequence({first}, {last})"))).withColumns(
        {
            "interval_date": F.expr(f"date_add(DATE'{EPOCH}', CAST(day AS INT))"),
            "low": F.expr(f"greatest({MICROS} + {below}, day * {DAY} + {start})"),
            "high": F.expr(f"least({MICROS} + {above}, (day + 1) * {DAY} + {start})"),
        }
    )
    return spread.where(f"{_windows(question, 'low', 'high')} > 0")


def _windows(question: Question, low: str, high: str) -> str:
    """How many windows end from low up to high; without SLIDE there may be one at every time."""
    reach = question.reach
    if reach.slide is None:
        return f"({high} - {low})"
    upto, before = (_floor(f"{end} - {1 + reach.within}", reach.slide) for end in (high, low))
    return f"({upto} - {before})"


def _with_windows(rows: DataFrame, question: Question) -> DataFrame:
    """With the number of windows of each row that no row before it has."""
    from pyspark.sql import functions as F

    fresh = rows.withColumn("fresh", F.least(F.greatest("low", _covered("high")), "high"))
    return fresh.withColumn("windows", F.expr(_windows(question, "fresh", "high")))


def _with_published_windows(rows: DataFrame, gold: DataFrame) -> DataFrame:
    """And the windows of gold among them, one row each: those that end where rows before them cover."""
    from pyspark.sql import functions as F

    ends = gold.select("interval_date", F.unix_micros("window_end").alias("low"), F.lit(1).alias("windows")).distinct()
    both = rows.unionByName(ends, allowMissingColumns=True)
    is_change = F.col("windows").isNull()
    known = both.withColumn("covered", _covered("windows"))
    return known.where(is_change | (F.col("covered") > F.col("low"))).fillna(0, ["windows"])


def _covered(order: str) -> Column:
    """Up to where the rows before this one cover the interval's times."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    # Nulls come first: a change stands before the window that ends where it begins.
    before = Window.partitionBy("interval_date").orderBy("low", order).rowsBetween(Window.unboundedPreceding, -1)
    return F.max("high").over(before)


def _floor(number: str, divisor: int) -> str:
    """A quotient of whole numbers in SQL, rounded down; `div` rounds towards 0."""
    return f"(({number} - pmod({number}, {divisor})) div {divisor})"
