"""Computed columns where something is wrong in more rows than every task can hold, and in files without promises."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from pipeline.quality import columns
from pipeline.quality.suites import Suite, SuiteError
from tests.quality import samples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBJECT = samples.subject_of("silver.taxi")
PICKUPS = {"column": "has_pickup", "keys": ["ride"], "of": "type = 'Dropoff'", "partner": "type = 'Pickup'"}


def test_of_many_wrong_keys_some_are_drawn_and_the_share_stays(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "FEW", 100)
    frame = spark.range(10_000).selectExpr("explode(array('Pickup', 'Dropoff')) type", "id ride")
    frame = frame.where("type = 'Dropoff' or ride % 4 = 0")
    found = columns.with_partner(frame, SUBJECT, **PICKUPS).where("type = 'Dropoff'").groupBy("has_pickup").count()
    counts = {row["has_pickup"]: row["count"] for row in found.collect()}
    assert counts[None] > 9_000
    assert 20 <= counts[False] <= 100
    assert 0.6 < counts[False] / (counts[False] + counts[True]) < 0.9  # three of four


def test_a_partner_has_the_same_key_and_others_have_no_answer(spark: SparkSession) -> None:
    rows = [("Pickup", "a"), ("Dropoff", "a"), ("Dropoff", "b"), ("Trip", "b"), ("Pickup", None)]
    frame = columns.with_partner(spark.createDataFrame(rows, "type string, ride string"), SUBJECT, **PICKUPS)
    assert [row["has_pickup"] for row in frame.collect()] == [None, True, False, None, None]


def test_times_go_back_only_in_files_that_promise_order_and_within_what_they_promise(spark: SparkSession) -> None:
    formats = {"a": "sorted", "b": "unsorted", "c": "by person"}
    subject = samples.subject_of("silver.taxi", formats=formats)
    start = datetime(2019, 1, 15)
    rows = [
        ("a", 1, 5, None, "x"),
        ("a", 2, 4, None, "x"),  # back
        ("a", 3, 4, "time,speed", "x"),  # derived
        ("a", 4, 5, "speed", "x"),
        ("b", 1, 5, None, "x"),
        ("b", 2, 4, None, "x"),
        ("c", 1, 5, None, "x"),
        ("c", 2, 4, None, "y"),
        ("c", 3, 6, None, "x"),
        ("c", 4, 3, None, "y"),  # back
    ]
    frame = spark.createDataFrame(
        [(file, line, start + timedelta(hours=hour), derived, who) for file, line, hour, derived, who in rows],
        "file string, line int, time timestamp, derived string, who string",
    )
    found = columns.with_time_order(frame, subject, formats={"sorted": [], "by person": ["who"]})
    orders = {(row["file"], row["line"]): row["time_in_order"] for row in found.collect()}
    assert [place for place, order in orders.items() if order is False] == [("a", 2), ("c", 4)]
    assert sorted(place for place, order in orders.items() if order is None) == [("a", 3), ("b", 1), ("b", 2)]


def test_an_unknown_function_or_option_is_told(spark: SparkSession) -> None:
    frame = spark.range(1)
    for options, message in (
        ({"function": "with_uniqe_id"}, "no function 'with_uniqe_id'\nhint: with_unique_id"),
        ({"function": "with_unique_id", "key": "x"}, "unexpected keyword argument 'key'"),
    ):
        with pytest.raises(SuiteError, match=message):
            columns.with_computed(frame, SUBJECT, Suite("silver.taxi", (), (options,), ()))
