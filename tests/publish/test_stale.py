"""Which published intervals are stale, on real Spark and Delta."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from pipeline import delta
from pipeline.aggregate.reach import DAY, Reach
from pipeline.config import Config
from pipeline.publish import gold, publications
from pipeline.publish.changes import FileChange
from pipeline.publish.publications import Publication
from pipeline.publish.stale import CHANGED, NOT_KEPT, OTHER_QUERY, Stale, _with_intervals, stale
from pipeline.questions import Question, ask
from tests.publish.samples import MONDAY, QUERY, SILVER, TUESDAY, Event, answers, made, write_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUNDAY = MONDAY - timedelta(days=1)
FILE = "queries/stock/q.query"
SLIDING = ask(QUERY.format(slide="5 minutes"), FILE)
MOVING = ask(QUERY.replace("SLIDE {slide}", ""), FILE)
NOON, MINUTE, MICRO = timedelta(hours=12), timedelta(minutes=1), timedelta(microseconds=1)
EVENTS: dict[str, Event] = {"a": (NOON, "DELL", 1.0, "one"), "b": (NOON, "IPIX", 2.0, "two")}


def publish(spark: SparkSession, config: Config, question: Question, day: date, version: int) -> None:
    publications.write(
        spark, config, Publication(question.name, day, "stock", "run", question.version, "pane", version, 1, 0, 0, 0)
    )


def test_late_events(connect: SparkSession, config: Config) -> None:
    delta.create(connect, config, SILVER)
    gold.prepare(connect, config, [SLIDING])
    version = write_events(connect, config, EVENTS)
    for day in (SUNDAY, MONDAY, TUESDAY):
        publish(connect, config, SLIDING, day, version)

    def found(first: date = SUNDAY, last: date = TUESDAY) -> list[Stale]:
        return stale(connect, config, SLIDING, first, last)

    assert found() == []
    # Written again, and corrected in what the query does not read.
    write_events(connect, config, EVENTS, volume=2)
    assert found() == []

    # A window that ends when it happened does not have it.
    late = EVENTS | {"c": (timedelta(), "DELL", 1.0, "late")}
    write_events(connect, config, late)
    assert found() == [Stale("q", MONDAY, CHANGED, 1, 2, (FileChange("late", 1, 0),))]
    assert found(TUESDAY) == []

    # Windows that two events share count once; an event that went counts, and one with another price is one event.
    more = {
        "a": (NOON, "DELL", 5.0, "one"),
        "d": (NOON + MINUTE, "DELL", 1.0, "late"),
        "e": (timedelta(days=1) - MICRO, "DELL", 1.0, "late"),
    }
    last = write_events(connect, config, more)
    assert found() == [
        Stale("q", MONDAY, CHANGED, 4, 3, (FileChange("late", 2, 0), FileChange("one", 1, 1), FileChange("two", 0, 1))),
        Stale("q", TUESDAY, CHANGED, 1, 1, (FileChange("late", 1, 0),)),
    ]

    # Each publication counts from its own version.
    publish(connect, config, SLIDING, MONDAY, last)
    assert [one.interval_date for one in found()] == [TUESDAY]
    other = ask(QUERY.format(slide="10 minutes"), FILE)
    publish(connect, config, other, TUESDAY, last)
    assert [(one.interval_date, one.reason) for one in found()] == [(TUESDAY, OTHER_QUERY)]


def test_without_slide_published_windows_count(spark: SparkSession, config: Config) -> None:
    delta.create(spark, config, SILVER)
    gold.prepare(spark, config, [MOVING])
    version = write_events(spark, config, EVENTS)
    rows = answers(spark, {(minute, "A"): 1 for minute in (709, 710, 715, 719, 720, 721)})  # they end ten minutes later
    gold.publish(spark, config, MOVING, MONDAY, rows, made("run", version))
    publish(spark, config, MOVING, SUNDAY, version)
    write_events(spark, config, EVENTS | {"c": (NOON, "DELL", 1.0, "late"), "d": (NOON + MINUTE, "DELL", 1.0, "late")})
    # By minutes after noon: (−10, 0], (−5, 5] and (−1, 9] have the first, (0, 10] the second alone, (1, 11] neither.
    assert stale(spark, config, MOVING) == [Stale("q", MONDAY, CHANGED, 2, 4, (FileChange("late", 2, 0),))]


def test_changes_that_are_no_longer_kept(spark: SparkSession, config: Config) -> None:
    delta.create(spark, config, SILVER)
    gold.prepare(spark, config, [SLIDING])
    first = write_events(spark, config, EVENTS)
    second = write_events(spark, config, EVENTS | {"c": (NOON, "DELL", 1.0, "late")})
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        delta.vacuum(spark, config, SILVER, days=0)
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    write_events(spark, config, {"d": (timedelta(days=1, hours=1), "DELL", 1.0, "late")}, TUESDAY)
    for day, version in ((SUNDAY, first), (MONDAY, second), (TUESDAY, second)):
        publish(spark, config, SLIDING, day, version)
    assert [(one.interval_date, one.reason) for one in stale(spark, config, SLIDING)] == [
        (SUNDAY, NOT_KEPT),
        (TUESDAY, CHANGED),
    ]


@pytest.mark.parametrize(
    "windows",
    ["10 minutes SLIDE 7 minutes", "36 hours SLIDE 5 hours", "30 hours"],
)
def test_intervals_are_those_of_the_reach(spark: SparkSession, windows: str) -> None:
    """Before and after 1970, around midnight, in every place of a window."""
    question = ask(QUERY.replace("10 minutes SLIDE {slide}", windows), FILE)
    chance = random.Random(7)
    times = [chance.randrange(-3, 3) * DAY + chance.choice([-1, 0, 1, chance.randrange(DAY)]) for _ in range(40)]
    frame = spark.createDataFrame([(time,) for time in times], "_micros bigint")
    found = _with_intervals(frame, question).select("_micros", "interval_date", "low", "high").collect()
    assert {tuple(row) for row in found} == {
        (time, day, *ends) for time in times for day, ends in _intervals(question.reach, time).items()
    }


def _intervals(reach: Reach, time: int) -> dict[date, tuple[int, int]]:
    low, high = reach.affected(time)
    days = {reach.owner(low) + timedelta(days=n) for n in range((high - low) // DAY + 2)}
    clipped = {day: (max(low, reach.ends(day)[0]), min(high, reach.ends(day)[1])) for day in days}
    return {day: ends for day, ends in clipped.items() if ends[0] < ends[1] and reach.has_window(*ends)}
