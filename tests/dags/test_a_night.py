"""Nights through the real DAGs, on real Spark and Delta; the tables are read to judge them."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import days, delta, intervals, nights
from pipeline.answers import answer_interval
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.days import prepare, process_day
from pipeline.intervals import COMPLETE
from pipeline.publish import gold
from pipeline.quality.report import Report
from pipeline.tables import OPS_INTERVALS, OPS_PUBLICATIONS, Table, bronze, gold_history, quarantine, silver
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

    # The same in one go gives the same tables.
    leave_checks_out(monkeypatch)
    other = replace(lake, lake=str(tmp_path / "other"))
    prepare(spark, other, STOCK)
    process_day(spark, other, STOCK, MONDAY, "other", site=tmp_path / "other-site")
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


def test_five_days_in_any_order(
    spark: SparkSession, lake: Config, night: Night, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Days are ingested and answered out of order, one of them twice: the tables are those of nights in order."""
    leave_checks_out(monkeypatch)
    monkeypatch.setattr(days, "check", lambda *_, **__: Report(()))
    week = [MONDAY + timedelta(days=number) for number in range(5)]
    land(lake, STOCK, week)
    falling = nights.question(lake, STOCK, "falling")
    shutil.rmtree(Path(lake.queries) / "stock" / "deep")

    other = replace(lake, lake=str(tmp_path / "other"))
    prepare(spark, other, STOCK)
    gold.prepare(spark, other, [falling])
    for day in week:
        process_day(spark, other, STOCK, day, "in order")
        answer_interval(spark, other, [falling], day, "in order")

    for dag, order in (("ingest_stock", (3, 0, 4, 1, 2)), ("trends_stock", (2, 4, 0, 3, 1, 4))):
        for number in order:
            assert str(night(dag, week[number]).state) == "success"
    for table in (silver(STOCK), quarantine(STOCK), falling.table, gold_history(falling.table)):
        assert contents(spark, lake, table) == contents(spark, other, table), table.full_name
    assert {row.interval_date for row in delta.read(spark, lake, falling.table).collect()} == {*week}
    assert {row.revision for row in delta.read(spark, lake, falling.table).collect()} == {1}


def test_upkeep(spark: SparkSession, lake: Config, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are joined, those that nobody needs and what old runs staged are gone; every table is as it was."""
    leave_checks_out(monkeypatch)
    monkeypatch.setattr(days, "check", lambda *_, **__: Report(()))
    week = [MONDAY, MONDAY + timedelta(days=1)]
    land(lake, STOCK, week)
    prepare(spark, lake, STOCK)
    for day in week:
        process_day(spark, lake, STOCK, day, "first")
    falling = nights.question(lake, STOCK, "falling")
    gold.prepare(spark, lake, [falling])
    answer_interval(spark, lake, [falling], MONDAY, "first")
    tables = [bronze(STOCK), silver(STOCK), quarantine(STOCK), OPS_INTERVALS, OPS_PUBLICATIONS, falling.table]
    before = {table.full_name: contents(spark, lake, table) for table in tables}
    files = delta.history(spark, lake, OPS_INTERVALS, 1)[0].version

    folder = Path(falling.table.path(lake)) / f"interval_date={MONDAY}"
    left, begun = (folder / f"part-{name}.parquet" for name in ("left", "begun"))
    staged = [Path(lake.lake) / "_staging" / name for name in ("old", "new")]
    for file in (left, begun, *(run / "note.json" for run in staged)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("of a run that was killed")
    long_ago = time.time() - 86400 * (falling.table.kept_days + 1)
    for path in (left, staged[0] / "note.json", staged[0]):
        os.utime(path, (long_ago, long_ago))

    run = night("maintain_lake", MONDAY)
    assert str(run.state) == "success", states(run)
    assert (left.exists(), begun.exists()) == (False, True)
    assert [run.exists() for run in staged] == [False, True]
    assert {table.full_name: contents(spark, lake, table) for table in tables} == before
    assert delta.history(spark, lake, OPS_INTERVALS, 1)[0].version > files
