"""Clock times of a zone become UTC, where the clock was put forward or back too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class ClockTime:
    """What a clock time means in UTC."""

    first: Column  # null if there is no such time: the clock was put forward over it
    second: Column  # null unless the clock was put back, and showed this time twice


def in_utc(clock: Column, zone: str) -> ClockTime:
    """The meanings of a clock time, which is a timestamp that calls itself UTC, in a zone."""
    day = F.make_dt_interval(F.lit(1))
    # Java takes the earlier of two meanings, and moves a time that there is not to one that there is.
    first = F.to_utc_timestamp(clock, zone)
    # A day later the clock goes as it does after any change that `clock` can be in the middle of.
    second = F.to_utc_timestamp(clock + day, zone) - day
    return ClockTime(
        F.when(F.from_utc_timestamp(first, zone) == clock, first),
        F.when((second > first) & (F.from_utc_timestamp(second, zone) == clock), second),
    )


def steady_midnight(day: Column, zone: str) -> Column:
    """When a date begins, if the clock is not changed on it: all its times are then as long after that as they say."""
    midnight = day.cast("timestamp")
    start, end = (F.to_utc_timestamp(midnight + F.make_dt_interval(F.lit(days)), zone) for days in (0, 1))
    return F.when(F.unix_seconds(end) - F.unix_seconds(start) == 86_400, start)


def not_before(start: Column, clock: ClockTime) -> Column:
    """The meaning of a clock time at or after `start`, if there is one: the first that is, else the first at all."""
    return F.when((clock.first < start) & (clock.second >= start), clock.second).otherwise(clock.first)
