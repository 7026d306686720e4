"""Nights through the real DAGs, on real Spark and Delta; the tables are read to judge them."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import delta, intervals, nights
from pipeline.aggregate import few
from pipeline.answers import answer_interval
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.days import prepare, process_day
from pipeline.intervals import COMPLETE
from pipeline.publish import gold
from pipeline.tables import OPS_PUBLICATIONS, Table, gold_history, silver
from tests import small_lake
from tests.dags.conftest import Night, states
from tests.landing import land
from tests.small_lake import STAMPS, leave_checks_out

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

MONDAY = date(2024, 1, 8)
STOCK = DATASETS["stock"]
NAMES = ("deep/whole-days", "falling")


def contents(spark: SparkSession, config: Config, table: Table) -> list[str]:
    """All rows, but for who wrote them and when."""
    stamps = {*STAMPS, "arrived_at", "silver_version"}
    return sorted(str(row) for row in delta.read(spark, config, table).drop(*stamps).collect())


def answers(spark: SparkSession, config: Config) -> dict[str, list[str]]:
    """All that is published."""
    questions = [nights.question(config, STOCK, name) for name in NAMES]
    tables = [table for one in questions for table in (one.table, gold_history(one.table))]
    return {table.full_name: contents(spark, config, table) for table in tables}


def test_a_night(
    spark: SparkSession, lake: Config, night: Night, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    land(lake, STOCK, [MONDAY])
    ingested = night("ingest_stock", MONDAY)
    assert states(ingested) == dict.fromkeys(("landing", "bronze", "silver", "quality"), "success")
    done = night("trends_stock", MONDAY)
    steps = ("aggregate", "agreement", "checks", "publish")
    expected = {f"query.{step} {name}" for step in steps for name in NAMES}
    assert states(done) == dict.fromkeys({"wait", "queries", "share", "report", *expected}, "success")
    (interval,) = intervals.read(spark, lake, "stock")
    assert (interval.status, interval.run_id) == (COMPLETE, ingested.run_id)

    # The same in one go, and by Spark as if rows were many, gives the same tables.
    leave_checks_out(monkeypatch)
    monkeypatch.setattr(few, "FEW", -1)
    other = replace(lake, lake=str(tmp_path / "other"))
    prepare(spark, other, STOCK)
    process_day(spark, other, STOCK, MONDAY, "other")
    questions = [nights.question(other, STOCK, name) for name in NAMES]
    gold.prepare(spark, other, questions)
    answer_interval(spark, other, questions, MONDAY, "other")
    assert contents(spark, lake, silver(STOCK)) == contents(spark, other, silver(STOCK))
    found = answers(spark, lake)
    assert found == answers(spark, other)
    assert all(found[f"gold.{name}"] for name in ("falling", "whole_days"))

    # One query alone, on what is published already: nothing changes.
    done = night("trends_stock", MONDAY, queries=["falling"])
    assert states(done)["report"] == "success"
    assert answers(spark, lake) == found


def test_upkeep(spark: SparkSession, lake: Config, night: Night, published: Path) -> None:
    """Small files are joined, those that nobody needs and what old runs staged are gone; every table is as it was."""
    small_lake.copy(published, lake)
    falling = small_lake.FALLING.table
    tables = [falling, gold_history(falling), silver(STOCK), OPS_PUBLICATIONS]
    before = {table.full_name: contents(spark, lake, table) for table in tables}
    versions = small_lake.versions(lake)

    folder = next(Path(falling.path(lake)).glob("interval_date=*"))
    left, begun = (folder / f"part-{name}.parquet" for name in ("left", "begun"))
    staged = [Path(lake.lake) / "_staging" / name for name in ("old", "new")]
    for file in (left, begun, *(run / "note.json" for run in staged)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("of a run that was killed")
    long_ago = time.time() - 86400 * (falling.kept_days + 1)
    for path in (left, staged[0] / "note.json", staged[0]):
        os.utime(path, (long_ago, long_ago))

    run = night("maintain_lake", MONDAY)
    assert str(run.state) == "success", states(run)
    assert (left.exists(), begun.exists()) == (False, True)
    assert [run.exists() for run in staged] == [False, True]
    assert {table.full_name: contents(spark, lake, table) for table in tables} == before
    after = small_lake.versions(lake)
    assert after["ops/publications"] > versions["ops/publications"]
    # Two by VACUUM, none by OPTIMIZE: its files are ranges of time.
    assert (
        after["silver/stock"] == versions["silver/stock"] + 2
    )  # a VACUUM's start and end: its files stay ranges of time
