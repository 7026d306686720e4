"""Landing days, from generated files to silver, on real Spark and Delta."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from pipeline import days, delta, intervals
from pipeline.aggregate import cut
from pipeline.aggregate.cut import Strategy
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset
from pipeline.days import MissingFilesError, prepare, process_day
from pipeline.intervals import COMPLETE, FAILED, MISSING, Interval
from pipeline.quality.report import QualityError, Report, Result
from pipeline.quality.waivers import waive
from pipeline.questions import ask
from pipeline.sources.generator import generate
from pipeline.sources.generator.files import Manifest, Shares
from pipeline.sources.landing_rows import path_of
from pipeline.tables import Table, bronze, quarantine, silver
from tests.aggregate.whole import ALWAYS, by_job, in_one_run
from tests.conftest import SMALL
from tests.small_lake import kept
from tests.sources.test_real_formats import DATA, FILES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = date(2030, 1, 7)  # a Monday
# Without keys; with three formats, whose rows give several events; with keys, and the least work.
STOCK, TAXI, ACTIVITY = DATASETS["stock"], DATASETS["taxi"], DATASETS["activity"]
SHARES = Shares(bad=0.02, duplicate=0.02, late=0.02)
CONFIG = Config(master="local[2]", spark_conf=SMALL)

Run = Callable[..., Interval]
WholeDay = Callable[[Dataset], Path]
Done = Callable[[Dataset], tuple[Manifest, Interval]]


@pytest.fixture
def run(spark: SparkSession, config: Config, tmp_path: Path) -> Run:
    """Processes a landing day."""

    def process(dataset: Dataset = STOCK, day: date = DAY, run_id: str = "run", **options: Any) -> Interval:
        prepare(spark, config, dataset)
        return process_day(spark, config, dataset, day, run_id, **options)

    return process


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Great Expectations takes most of a small day's time; what does not need it goes without."""
    monkeypatch.setattr(days, "check", lambda *_, **__: Report(()))


def landed(config: Config, dataset: Dataset = STOCK, rows: int = 300, day: date = DAY, **shares: float) -> Manifest:
    return generate(dataset, Path(config.landing), [day], rows, shares=replace(SHARES, **shares))


@pytest.fixture(scope="session")
def whole_day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> WholeDay:
    """The folder of a lake, and of the landing day of a dataset that was brought into it and checked."""

    def find(dataset: Dataset) -> Path:
        def make(home: Path) -> None:
            config = replace(CONFIG, lake=str(home / "lake"), landing=str(home / "landing"), site=str(home / "site"))
            made = landed(config, dataset)
            prepare(spark, config, dataset)
            process_day(spark, config, dataset, DAY, "first")
            (home / "made").write_bytes(pickle.dumps(made))

        return kept(tmp_path_factory, f"whole-day-{dataset.name}", make)

    return find


@pytest.fixture
def done(whole_day: WholeDay, spark: SparkSession, config: Config) -> Done:
    """Puts a copy of such a lake in the place of the test's own; what had landed there, and the interval."""

    def copy(dataset: Dataset) -> tuple[Manifest, Interval]:
        shutil.copytree(whole_day(dataset), Path(config.lake).parent, dirs_exist_ok=True)
        made = pickle.loads((whole_day(dataset) / "made").read_bytes())
        (interval,) = intervals.read(spark, config, dataset.name)
        return made, interval

    return copy


def contents(spark: SparkSession, config: Config, table: Table) -> list[tuple[Any, ...]]:
    """All rows, but for who wrote them, in one order."""
    frame = delta.read(spark, config, table).drop("run_id", "arrived_at")
    return sorted((tuple(row) for row in frame.collect()), key=repr)


# ---- what comes out ----


@pytest.mark.parametrize("name", DATASETS)
def test_every_row_is_accounted_for(done: Done, spark: SparkSession, config: Config, name: str) -> None:
    dataset = DATASETS[name]
    made, interval = done(dataset)
    assert interval.status == COMPLETE
    assert interval.source_rows == made.rows == interval.silver_rows + interval.quarantined + interval.duplicates
    assert dict(interval.reasons) == dict(+made.bad)
    assert interval.duplicates == made.duplicates
    assert interval.late > 0
    assert {path_of(file.file) for file in interval.files} == {*made.files}
    assert sum(file.rows for file in interval.files) == made.rows
    events = delta.read(spark, config, silver(dataset))
    assert events.count() == interval.events == events.select("event_id").distinct().count()
    if dataset.keys:
        assert events.select(*dataset.keys).distinct().count() == interval.events
    assert delta.row_count(spark, config, bronze(dataset)) == made.rows
    bad = delta.read(spark, config, quarantine(dataset)).groupBy("reason").count().collect()
    assert {row["reason"]: row["count"] for row in bad} == dict(+made.bad)
    assert intervals.read(spark, config, name) == [interval]


@pytest.mark.usefixtures("unchecked")
def test_files_are_ranges_of_time_in_order(
    run: Run, spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.refine import events

    monkeypatch.setattr(events, "ROWS_A_FILE", 500)
    landed(config, rows=2000)
    run()
    files = Path(silver(STOCK).path(config)).rglob("*.parquet")
    times = [pq.ParquetFile(file).read(["time"])["time"].to_pylist() for file in files]
    assert len(times) == 5
    assert all(one == sorted(one) for one in times)
    ranges = sorted((one[0], one[-1]) for one in times)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))


@pytest.mark.usefixtures("unchecked")
def test_through_spark_connect(connect: SparkSession, config: Config, connect_url: str) -> None:
    config = replace(config, master=connect_url, spark_conf={})
    made = landed(config, TAXI)
    prepare(connect, config, TAXI)
    interval = process_day(connect, config, TAXI, DAY, "run")
    assert (interval.source_rows, dict(interval.reasons)) == (made.rows, dict(+made.bad))


# ---- again and again ----


@pytest.mark.usefixtures("unchecked")
def test_a_complete_day_is_left_alone(run: Run, done: Done, spark: SparkSession, config: Config) -> None:
    _, first = done(ACTIVITY)
    versions = [delta.current_version(spark, config, table(ACTIVITY)) for table in (bronze, silver, quarantine)]
    assert run(ACTIVITY, run_id="second") == first
    for file in (Path(config.landing) / "activity" / str(DAY)).iterdir():
        os.utime(file)  # touched, not changed
    assert run(ACTIVITY, run_id="third") == first
    # What is the same is not written again, even if it is asked for.
    assert run(ACTIVITY, run_id="fourth", reprocess=True).run_id == "fourth"
    assert [delta.current_version(spark, config, table(ACTIVITY)) for table in (bronze, silver, quarantine)] == versions


@pytest.mark.usefixtures("unchecked")
def test_new_content_replaces_a_files_rows(run: Run, spark: SparkSession, config: Config) -> None:
    landed(config, bad=0.0)
    run()
    ids = silver_ids(spark, config)
    file = next((Path(config.landing) / "stock" / str(DAY)).glob("dell_*_trade.csv.gz"))
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    # A line more renames no other event, and a line less takes one event away.
    file.write_bytes(gzip.compress(b"".join([b"57600000,1000000,7,P,0,0\n", *lines[1:]])))
    interval = run(run_id="second")
    after = silver_ids(spark, config)
    assert len(after - ids) == len(ids - after) == 1
    assert interval.source_rows == delta.row_count(spark, config, bronze(STOCK)) == len(after)


def silver_ids(spark: SparkSession, config: Config) -> set[str]:
    return {row.event_id for row in delta.read(spark, config, silver(STOCK)).select("event_id").collect()}


@pytest.mark.usefixtures("unchecked")
def test_a_file_that_is_put_back_after_a_run_that_did_not_end(
    run: Run, done: Done, spark: SparkSession, config: Config
) -> None:
    """Silver has the second content's events already, whatever `ops.intervals` tells of the first."""
    _, first = done(STOCK)
    events = contents(spark, config, silver(STOCK))
    file = next((Path(config.landing) / "stock" / str(DAY)).glob("dell_*_trade.csv.gz"))
    before = file.read_bytes()
    file.write_bytes(gzip.compress(b"57600000,1000000,7,P,0,0\n"))

    def killed(message: str) -> None:
        if message.startswith("has "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(run_id="second", say=killed)
    assert contents(spark, config, silver(STOCK)) != events
    assert intervals.read(spark, config, "stock") == [replace(first, inputs=None)]
    file.write_bytes(before)

    def killed_too(message: str) -> None:
        if message.startswith("refines "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # bronze is as it was at first, silver is not
        run(run_id="third", say=killed_too)
    assert run(run_id="fourth").inputs == first.inputs
    assert contents(spark, config, silver(STOCK)) == events


@pytest.mark.usefixtures("unchecked")
def test_a_slow_run_that_overwrites_a_newer_one_and_is_killed(run: Run, spark: SparkSession, config: Config) -> None:
    landed(config)
    file = next((Path(config.landing) / "stock" / str(DAY)).glob("dell_*_trade.csv.gz"))
    newer: list[Any] = []

    def slow(message: str) -> None:
        if message == "writes silver":
            file.write_bytes(gzip.compress(b"57600000,1000000,7,P,0,0\n"))
            newer[:] = run(run_id="newer"), contents(spark, config, silver(STOCK))
        if message.startswith("has "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(run_id="slow", say=slow)
    interval, events = newer
    assert contents(spark, config, silver(STOCK)) != events
    assert run(run_id="third").inputs == interval.inputs
    assert contents(spark, config, silver(STOCK)) == events


def test_files_that_change_meanwhile_are_refined_again(
    run: Run, spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned = Result("stock", DAY, "silver.stock", "run", datetime.now(UTC), "few", None, "warning", False, None, 3)
    monkeypatch.setattr(days, "check", lambda *_, **__: Report((warned,)))
    landed(config)
    said = []
    seen = iter(({}, {}, {"another": "file"}))
    known = days.bronze.known_files
    monkeypatch.setattr(days.bronze, "known_files", lambda *lake: next(seen, None) or known(*lake))
    interval = run(say=said.append)
    assert len([message for message in said if message.startswith("refines")]) == 2
    assert interval.warnings == ["few warned: 3 rows"] * 2  # of bronze, and of silver once
    assert intervals.read(spark, config, "stock") == [interval]


@pytest.mark.usefixtures("unchecked")
def test_a_file_that_comes_later_joins_the_others(run: Run, spark: SparkSession, config: Config) -> None:
    made = landed(config, late=0.0)
    folder = Path(config.landing) / "stock" / str(DAY)
    late = folder / "ibm_20300107_trade.csv.gz"
    aside = Path(config.landing).parent / late.name
    late.rename(aside)
    first = run()
    aside.rename(late)
    second = run(run_id="second")
    assert first.source_rows < second.source_rows == made.rows
    whole = contents(spark, config, silver(STOCK))
    # Landing folders may be cleared: what bronze has stays.
    shutil.rmtree(folder)
    assert run(run_id="third", reprocess=True).source_rows == made.rows
    assert contents(spark, config, silver(STOCK)) == whole


@pytest.mark.usefixtures("unchecked")
def test_the_same_content_under_another_path_is_a_warning(run: Run, done: Done, config: Config) -> None:
    done(STOCK)
    folder = Path(config.landing) / "stock" / str(DAY)
    other = folder.with_name(str(DAY + timedelta(days=1)))
    other.mkdir()
    shutil.copy(folder / "ibm_20300107_trade.csv.gz", other / "again_20300107_trade.csv.gz")
    interval = run(day=DAY + timedelta(days=1))
    path = f"stock/{DAY}/ibm_20300107_trade.csv.gz"
    assert interval.warnings == [
        f"stock/{DAY + timedelta(days=1)}/again_20300107_trade.csv.gz has the same content as {path}"
    ]


@pytest.mark.usefixtures("unchecked")
def test_rows_that_pass_after_a_parser_was_mended_are_resolved(
    run: Run, spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.sources import trade_ticks

    made = landed(config, rows=1000, bad=0.0, late=0.0)
    with monkeypatch.context() as wrong:
        wrong.setattr(trade_ticks, "VOLUME", replace(trade_ticks.VOLUME, maximum=99))
        before = run()
    assert before.quarantined > 100
    after = run(run_id="mended", reprocess=True)
    assert (after.quarantined, after.silver_rows) == (0, made.rows)
    rows = delta.read(spark, config, quarantine(STOCK)).collect()
    assert len(rows) == before.quarantined
    assert {(row.resolved, row.run_id) for row in rows} == {(True, "mended")}


# ---- what stops a day ----


@pytest.mark.usefixtures("unchecked")
def test_days_without_files(run: Run, spark: SparkSession, config: Config) -> None:
    saturday = DAY - timedelta(days=2)
    assert run(day=saturday).status == COMPLETE
    with pytest.raises(MissingFilesError, match=rf"stock {DAY}: no file in .*2030-01-08 06:00"):
        run()
    assert {one.landing_date: one.status for one in intervals.read(spark, config, "stock")} == {
        saturday: COMPLETE,
        DAY: MISSING,
    }
    landed(config)
    assert run().status == COMPLETE


@pytest.mark.usefixtures("unchecked")
def test_files_that_are_no_data(run: Run, spark: SparkSession, config: Config) -> None:
    """A file of no known format, a damaged one and an empty one are in quarantine, and the others in silver."""
    made = landed(config, bad=0.0)
    folder = Path(config.landing) / "stock" / str(DAY)
    (folder / "minutes.txt").write_text("the meeting\nwas held\n")
    (folder / "empty.csv").write_text("")
    (folder / "bars.csv").write_text("ticker,yyyyMMddHHmm,open,high,low,close,volume\n")
    (folder / "tick.csv.tmp").write_text("half a li")
    whole = gzip.compress(b"57600000,1000000,7,P,0,0\n" * 50)
    (folder / "ibm2_20300107_trade.csv.gz").write_bytes(whole[:-9])
    interval = run()
    assert interval.silver_rows >= made.rows
    assert interval.quarantined == 4
    reasons = " ".join(interval.reasons)
    assert all(text in reasons for text in ("no known format", "is empty", "ends early"))


def test_a_critical_failure_publishes_nothing_until_it_is_waived(
    run: Run, done: Done, spark: SparkSession, config: Config
) -> None:
    _, good = done(STOCK)
    before = contents(spark, config, silver(STOCK))
    file = Path(config.landing) / "stock" / str(DAY) / "dell_20300107_trade.csv.gz"
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines + [b"not,a,trade,at,all\n"] * 600)))
    with pytest.raises(QualityError, match=r"silver\.stock\.\w+ failed") as failure:
        run(run_id="second")
    assert contents(spark, config, silver(STOCK)) == before
    (interval,) = intervals.read(spark, config, "stock")
    assert (interval.status, interval.silver_version) == (FAILED, good.silver_version)
    for name in {line.split()[0] for line in str(failure.value).splitlines() if " failed: " in line and "." in line}:
        if name.startswith("silver."):
            waive(spark, config, name, DAY, "the exchange told us")
    interval = run(run_id="third")
    assert (interval.status, interval.quarantined) == (COMPLETE, good.quarantined + 600)
    assert any("the exchange told us" in warning for warning in interval.warnings)


@pytest.mark.usefixtures("unchecked")
def test_two_runs_of_one_day_at_once(run: Run, spark: SparkSession, config: Config) -> None:
    made = landed(config, ACTIVITY)
    prepare(spark, config, ACTIVITY)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda run_id: run(ACTIVITY, run_id=run_id), ("one", "two")))
    assert {(interval.status, interval.source_rows) for interval in both} == {(COMPLETE, made.rows)}
    assert delta.row_count(spark, config, silver(ACTIVITY)) == both[0].events
    assert delta.row_count(spark, config, bronze(ACTIVITY)) == made.rows
    assert len(intervals.read(spark, config, "activity")) == 1


VICTIM = """
import json
import sys
from datetime import date
from pathlib import Path
from pipeline import days
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.quality.report import Report
from pipeline.spark import session

lake, landing, settings, day = sys.argv[1:]
days.check = lambda *_, **__: Report(())
config = Config(lake, landing, "local[2]", json.loads(settings))
spark = session(config)
days.prepare(spark, config, DATASETS["activity"])
print("prepared", flush=True)
days.process_day(spark, config, DATASETS["activity"], date.fromisoformat(day), "victim")
"""


KILLED_AT = ("bronze/activity", "quarantine/activity", "silver/activity", "ops/intervals")


@pytest.fixture(scope="session")
def killed(whole_day: WholeDay, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders, named after tables, of lakes as a run leaves them that is killed at the first data file of the table."""

    def make(home: Path) -> None:
        lake, errors = home / "lake", home.with_suffix(".errors")
        landing = whole_day(ACTIVITY) / "landing"
        arguments = [sys.executable, "-c", VICTIM, str(lake), str(landing), json.dumps(SMALL), str(DAY)]
        with errors.open("w") as log:
            victim = subprocess.Popen(arguments, start_new_session=True, stdout=subprocess.PIPE, stderr=log)
        try:
            assert victim.stdout is not None
            assert victim.stdout.readline() == b"prepared\n", errors.read_text()
            for table in KILLED_AT:
                end = time.monotonic() + 300
                while not any((lake / table).rglob("*.parquet")):
                    assert victim.poll() is None, errors.read_text()
                    assert time.monotonic() < end
                    time.sleep(0.002)
                # Stopped, it leaves what it would if it were killed; and it can go on to the next table.
                os.killpg(victim.pid, signal.SIGSTOP)
                shutil.copytree(lake, home / table / "lake")
                os.killpg(victim.pid, signal.SIGCONT)
        finally:
            os.killpg(victim.pid, signal.SIGKILL)
            victim.wait()

    return kept(tmp_path_factory, "killed", make)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("table", KILLED_AT)
def test_killed_while_it_writes(
    run: Run, spark: SparkSession, config: Config, whole_day: WholeDay, killed: Path, table: str
) -> None:
    """A run is killed when its first data file of a table appears; the next run leaves what one clean run would."""
    clean = replace(config, lake=str(whole_day(ACTIVITY) / "lake"))
    shutil.copytree(killed / table / "lake", config.lake)
    shutil.copytree(whole_day(ACTIVITY) / "landing", config.landing)
    interval = run(ACTIVITY)
    for layer in (bronze, quarantine, silver):
        assert contents(spark, config, layer(ACTIVITY)) == contents(spark, clean, layer(ACTIVITY)) != []
    (expected,) = intervals.read(spark, clean, "activity")
    same = {
        "run_id": "",
        "completed_at": interval.completed_at,
        "silver_version": 0,
        "quarantine_version": 0,
        "bronze_version": 0,
        "warnings": [],  # the clean run was checked
    }
    assert interval.warnings == []
    assert replace(interval, **same) == replace(expected, **same)  # type: ignore[arg-type]


QUESTIONS = {
    "stock": "RETURN sector, COUNT(*), AVG(S.price) AS mean PATTERN Stock S+ FROM stock "
    "WHERE [company, sector] AND S.price > NEXT(S).price GROUP-BY sector WITHIN 1 minute SLIDE 30 seconds",
    "taxi": "RETURN district, COUNT(*), MAX(T.speed) AS fastest PATTERN SEQ(Pickup, Trip T+, Dropoff) FROM taxi "
    "SEMANTICS skip-till-next-match WHERE [driver] GROUP-BY district WITHIN 30 minutes SLIDE 5 minutes",
    "activity": "RETURN patient, COUNT(*), SUM(M.rate) AS total PATTERN activity M+ FROM activity SEMANTICS contiguous "
    "WHERE [patient] AND M.rate < NEXT(M).rate GROUP-BY patient WITHIN 10 minutes SLIDE 30 seconds",
}


@pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data beside the project")
@pytest.mark.parametrize("name", DATASETS)
def test_real_files_whole(
    run: Run, spark: SparkSession, config: Config, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row of real files is accounted for; a query over them is answered by a job as by an engine alone."""
    if name != "activity":  # the smallest is checked too
        monkeypatch.setattr(days, "check", lambda *_, **__: Report(()))
    shutil.copytree(DATA / name, Path(config.landing) / name / str(DAY))
    reasons: Counter[str] = Counter()
    rows = events = 0
    for file, file_rows, file_events, file_reasons in FILES:
        if file.startswith(f"{name}/"):
            rows, events = rows + file_rows, events + file_events
            reasons.update(file_reasons)
    interval = run(DATASETS[name])
    assert (interval.source_rows, interval.events, dict(interval.reasons)) == (rows, events, dict(reasons))
    assert (interval.is_reconciled, interval.duplicates) == (True, 0)
    asked = ask(QUESTIONS[name], f"{name}.query")
    expected = sorted(in_one_run(config, asked))
    assert len(expected) > 100
    monkeypatch.setattr(cut, "FEW_EVENTS", 1000)
    for way in (Strategy.SLICES, Strategy.KEYS):
        assert sorted(by_job(spark, config, [(asked, ALWAYS)], strategy=way)[0]) == expected
