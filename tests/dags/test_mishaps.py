"""Nights in which something goes wrong: a bad file, a query with a mistake, late rows, a kill."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline import days, delta, intervals, nights
from pipeline.config import Config
from pipeline.intervals import COMPLETE, FAILED, MISSING
from pipeline.quality.report import Report
from pipeline.tables import OPS_PUBLICATIONS, gold_history, silver
from tests.dags.conftest import Night, cleared, environment, states
from tests.dags.test_a_night import MONDAY, STOCK, answers
from tests.landing import land
from tests.small_lake import ROOT, leave_checks_out

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag
    from pyspark.sql import SparkSession

TUESDAY = MONDAY + timedelta(days=1)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Great Expectations and other engines take most of a small night's time."""
    leave_checks_out(monkeypatch)
    monkeypatch.setattr(days, "check", lambda *_, **__: Report(()))


def status(spark: SparkSession, config: Config) -> dict[date, str]:
    return {one.landing_date: one.status for one in intervals.read(spark, config, "stock")}


def published(spark: SparkSession, config: Config) -> set[tuple[str, date]]:
    return {(row.query, row.interval_date) for row in delta.read(spark, config, OPS_PUBLICATIONS).collect()}


def test_a_bad_file(spark: SparkSession, lake: Config, night: Night, capfd: pytest.CaptureFixture[str]) -> None:
    """Garbage among the files stops the day before readers see it; then nobody answers it; mended, it goes through."""
    folder = Path(lake.landing) / "stock" / str(MONDAY)
    done = night("ingest_stock", MONDAY)
    assert states(done)["landing"] == "failed"
    assert (str(done.state), status(spark, lake)) == ("failed", {MONDAY: MISSING})
    assert f"no file in {folder}" in "".join(capfd.readouterr())

    land(lake, STOCK, [MONDAY])
    good = {file: file.read_bytes() for file in folder.iterdir()}
    for file in good:
        file.write_bytes(gzip.compress(b"no trade at all\n" * 9))
    done = night("ingest_stock", MONDAY)
    assert (str(done.state), states(done)["quality"], status(spark, lake)) == ("failed", "failed", {MONDAY: FAILED})
    said = "".join(capfd.readouterr())
    assert "critical check" in said
    assert delta.read(spark, lake, silver(STOCK)).count() == 0

    done = night("trends_stock", MONDAY, patience=0)
    assert str(done.state) == "failed"
    assert f"{MONDAY} (failed)" in "".join(capfd.readouterr())
    for file, content in good.items():
        file.write_bytes(content)
    assert str(night("ingest_stock", MONDAY).state) == "success"
    assert status(spark, lake) == {MONDAY: COMPLETE}
    assert delta.read(spark, lake, silver(STOCK)).count() > 0


@pytest.mark.usefixtures("unchecked")
def test_a_query_with_a_mistake(
    spark: SparkSession, lake: Config, night: Night, bag: DagBag, capfd: pytest.CaptureFixture[str]
) -> None:
    """It fails alone and says its line, and is done again alone; so is a query whose staged answers are gone."""
    land(lake, STOCK, [MONDAY])
    night("ingest_stock", MONDAY)
    file = Path(lake.queries) / "stock" / "falling.query"
    text = file.read_text()
    file.write_text(text.replace("PATTERN", "PATERN"))
    run = night("trends_stock", MONDAY)
    assert str(run.state) == "failed"
    assert f"{file}:2:" in "".join(capfd.readouterr())
    found = states(run)
    assert (found["query.aggregate falling"], found["query.publish deep/whole-days"]) == ("failed", "success")
    assert (found["query.publish 1"], found["report"]) == ("upstream_failed", "failed")
    assert published(spark, lake) == {("whole_days", MONDAY)}

    file.write_text(text)
    at = nights.query_names(lake, STOCK).index("falling")
    steps = [(f"query.{step}", at) for step in ("aggregate", "agreement", "checks", "publish")]
    before = delta.history(spark, lake, nights.question(lake, STOCK, "deep/whole-days").table, 1)[0].version
    run = cleared(bag, run, *steps, "report")
    assert str(run.state) == "success", states(run)
    assert published(spark, lake) == {("whole_days", MONDAY), ("falling", MONDAY)}
    after = delta.history(spark, lake, nights.question(lake, STOCK, "deep/whole-days").table, 1)[0].version
    assert after == before

    capfd.readouterr()
    shutil.rmtree(Path(lake.lake) / "_staging")
    run = cleared(bag, run, ("query.publish", at), "report")
    assert str(run.state) == "failed"
    assert "hint: clear the query's task aggregate" in "".join(capfd.readouterr())
    assert str(cleared(bag, run, *steps, "report").state) == "success"


@pytest.mark.usefixtures("unchecked")
def test_late_rows(spark: SparkSession, lake: Config, night: Night) -> None:
    """A file of Tuesday with Monday's trades: revise_late answers Monday's windows again, and nothing else."""
    land(lake, STOCK, [MONDAY])
    night("ingest_stock", MONDAY)
    assert str(night("trends_stock", MONDAY).state) == "success"
    source = max((Path(lake.landing) / "stock" / str(MONDAY)).iterdir(), key=lambda file: file.stat().st_size)
    late = Path(lake.landing) / "stock" / str(TUESDAY) / source.name
    late.parent.mkdir(parents=True)
    shutil.copy(source, late)
    night("ingest_stock", TUESDAY)
    before = answers(spark, lake)
    run = night("revise_late", TUESDAY)
    assert str(run.state) == "success", states(run)
    after = answers(spark, lake)
    falling = nights.question(lake, STOCK, "falling").table
    assert after["gold.whole_days"] != before["gold.whole_days"]
    revisions = {
        row.revision for row in delta.read(spark, lake, nights.question(lake, STOCK, "deep/whole-days").table).collect()
    }
    assert revisions == {1, 2}
    assert delta.read(spark, lake, gold_history(falling)).count() == len(after["gold.falling_history"])
    assert published(spark, lake) == {("whole_days", MONDAY), ("falling", MONDAY)}
    assert str(night("revise_late", TUESDAY).state) == "success"
    assert answers(spark, lake) == after


KILLED = """
import sys
from datetime import datetime, UTC
from pytest import MonkeyPatch
from airflow.dag_processing.dagbag import DagBag
from tests.small_lake import leave_checks_out

leave_checks_out(MonkeyPatch())
dag = DagBag(dag_folder=sys.argv[1]).dags["trends_stock"]
dag.deadline = None
dag.test(logical_date=datetime.fromisoformat(sys.argv[2]).replace(tzinfo=UTC))
"""


@pytest.mark.usefixtures("unchecked")
def test_a_killed_task(
    spark: SparkSession, lake: Config, night: Night, airflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed while it publishes, with all of its processes: the next try leaves what a clean run leaves."""
    from tests.dags.conftest import DAGS

    land(lake, STOCK, [MONDAY])
    night("ingest_stock", MONDAY)
    clean = replace(lake, lake=str(tmp_path / "clean"))
    shutil.copytree(lake.lake, clean.lake)
    victim = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(DAGS), str(TUESDAY)],
        env=os.environ | environment(lake, tmp_path) | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 300
        while victim.poll() is None and not [*Path(lake.lake, "gold").glob("[!e]*/interval_date=*/*.parquet")]:
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
    assert victim.returncode == -signal.SIGKILL
    assert len(published(spark, lake)) < 2
    assert str(night("trends_stock", MONDAY).state) == "success"
    found = answers(spark, lake)
    monkeypatch.setenv("TRENDS_LAKE", clean.lake)
    assert str(night("trends_stock", MONDAY).state) == "success"
    assert answers(spark, clean) == found
