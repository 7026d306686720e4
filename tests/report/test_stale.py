"""Stale intervals without a JVM are those that Spark finds in the change feed."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipeline import delta
from pipeline.aggregate.reach import Reach
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.publish import gold, publications
from pipeline.publish.stale import stale as stale_by_spark
from pipeline.report.changes import Silver, windows
from pipeline.report.stale import stale
from tests.publish.samples import MONDAY, SILVER, TUESDAY, Event, write_events
from tests.publish.test_stale import EVENTS, MINUTE, NOON, SLIDING, SUNDAY, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_same_as_spark_finds(spark: SparkSession, config: Config) -> None:
    delta.create(spark, config, SILVER)
    gold.prepare(spark, config, [SLIDING])
    version = write_events(spark, config, EVENTS)
    for day in (SUNDAY, MONDAY, TUESDAY):
        publish(spark, config, SLIDING, day, version)
    published = publications.read(spark, config, SLIDING.name)
    late: dict[str, Event] = EVENTS | {"c": (timedelta(), "DELL", 1.0, "late")}
    more: dict[str, Event] = {
        "a": (NOON, "DELL", 1.5, "one"),  # another price
        "d": (NOON + MINUTE, "DELL", 2.0, "two"),  # instead of b
        "e": (timedelta(days=1, minutes=3), "IPIX", 2.0, "late"),
    }
    # Written again, with another volume, which the query does not read; then one more event; then others.
    for events, volume, days in ((EVENTS, 2, []), (late, 1, [MONDAY]), (more, 1, [MONDAY, TUESDAY])):
        write_events(spark, config, events, volume=volume)
        found = stale(Silver(config, DATASETS["stock"]), SLIDING, published)
        assert sorted(found) == days
        assert [found[day] for day in days] == stale_by_spark(spark, config, SLIDING)


@pytest.mark.parametrize("seed", range(20))
def test_windows_are_counted_once(seed: int) -> None:
    chance = random.Random(seed)
    slide = chance.randrange(1, 20)
    reach = Reach(slide * chance.randrange(1, 4) + chance.randrange(slide), slide)
    ends = chance.randrange(-50, 50), chance.randrange(60, 300)
    times = [chance.randrange(-100, 350) for _ in range(chance.randrange(12))]
    # By the definition: windows [k·slide, k·slide + within) that hold one of the times.
    starts = range(-1000 * slide, 1000 * slide, slide)
    expected = [
        start
        for start in starts
        if ends[0] <= start + reach.within < ends[1] and any(start <= one < start + reach.within for one in times)
    ]
    assert windows(reach, ends, np.array(times, np.int64)) == len(expected)
