"""Clock times on the days on which the clock is changed, as zoneinfo knows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.sources.local_time import ClockTime, in_utc, not_before

# Forward and back in New York, by an hour; in Lord Howe, by half an hour, on the other half of the earth.
DAYS = [
    ("America/New_York", datetime(2013, 3, 10), 60, 0),
    ("America/New_York", datetime(2013, 11, 3), 0, 60),
    ("America/New_York", datetime(2013, 11, 2), 0, 0),
    ("America/New_York", datetime(2013, 11, 4), 0, 0),
    ("Australia/Lord_Howe", datetime(2013, 10, 6), 30, 0),
    ("Australia/Lord_Howe", datetime(2013, 4, 7), 0, 30),
    ("UTC", datetime(2013, 3, 10), 0, 0),
]


def meanings(clock: datetime, zone: str) -> list[datetime]:
    """The times at which a zone's clock shows this."""
    readings = {clock.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(time for time in readings if time.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == clock)


@pytest.mark.parametrize(("zone", "day", "missing", "double"), DAYS)
def test_every_minute_of_a_day(spark: SparkSession, zone: str, day: datetime, missing: int, double: int) -> None:
    minutes = [day + timedelta(minutes=minute) for minute in range(1440)]
    expected = [meanings(clock, zone) for clock in minutes]
    assert [sum(not found for found in expected), sum(len(found) == 2 for found in expected)] == [missing, double]

    time = in_utc(F.col("clock"), zone)
    rows = (
        spark.createDataFrame([(clock.isoformat(" "),) for clock in minutes], "text string")
        .select(F.col("text").cast("timestamp").alias("clock"))
        .select(F.unix_seconds("clock").alias("clock"), F.unix_seconds(time.first), F.unix_seconds(time.second))
        .collect()
    )
    found = {clock: [second for second in both if second is not None] for clock, *both in rows}
    assert found == {
        int(clock.replace(tzinfo=UTC).timestamp()): [int(time.timestamp()) for time in times]
        for clock, times in zip(minutes, expected, strict=True)
    }


@pytest.mark.parametrize(
    ("start", "first", "second", "expected"),
    [
        (5, 7, None, 7),
        (7, 5, None, 5),  # before the start, but there is no other
        (5, 7, 10, 7),
        (7, 7, 10, 7),
        (8, 7, 10, 10),
        (11, 7, 10, 7),  # neither is after the start
        (5, None, None, None),
    ],
)
def test_not_before(
    spark: SparkSession, start: int, first: int | None, second: int | None, expected: int | None
) -> None:
    row = spark.createDataFrame([(start, first, second)], "start int, first int, second int")
    clock = ClockTime(F.col("first"), F.col("second"))
    assert row.select(not_before(F.col("start"), clock)).first()[0] == expected
