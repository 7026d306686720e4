"""Backfills of a small lake, on real Spark and Delta: what they do, leave alone, and leave behind when killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline import answer_commands, answers, delta
from pipeline import backfill as backfills
from pipeline.aggregate import snapshot as snapshots
from pipeline.aggregate.differences import Difference
from pipeline.aggregate.snapshot import snapshot
from pipeline.backfill import Todo, backfill, to_do
from pipeline.cli import main
from pipeline.compare import Comparison
from pipeline.config import Config
from pipeline.publish import engine_runs
from pipeline.publish.publications import Publication
from pipeline.quality.report import Report, Result
from pipeline.quality.results import results
from pipeline.questions import Question
from pipeline.tables import gold_history, silver
from tests import small_lake
from tests.small_lake import (
    FALLING,
    LATE,
    MONDAY,
    QUESTIONS,
    RIDES,
    TUESDAY,
    UNCHECKED,
    WEDNESDAY,
    WHOLE_DAYS,
    copy,
    leave_checks_out,
    run_unchecked,
    tables,
    versions,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Said = Callable[..., tuple[str, str]]


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Great Expectations and other engines take most of a small interval's time."""
    leave_checks_out(monkeypatch)


@pytest.fixture
def lake(published: Path, config: Config, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A copy of it, beside which a test runs."""
    found = copy(published, config)
    monkeypatch.chdir(Path(found.lake).parent)
    return found


@pytest.fixture
def said(
    spark: SparkSession, lake: Config, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Said:
    """What a backfill prints, and says beside."""

    @contextmanager
    def open_lake(_: object) -> Iterator[tuple[SparkSession, Config]]:
        yield spark, lake

    monkeypatch.setattr(answer_commands, "lake", open_lake)

    def command(*arguments: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["backfill", *arguments]) == code
        printed = capsys.readouterr()
        return printed.out, printed.err

    return command


def short(spark: SparkSession, config: Config, question: Question, day: date) -> set[tuple[Any, ...]]:
    """Of an interval's rows in gold: window, revision and run."""
    frame = delta.read(spark, config, question.table).where(delta.predicate({"interval_date": day}))
    return {(row["window_start"], row[question.query.group_by[0]], row.revision, row.run_id) for row in frame.collect()}


# ---- what is done, and what is left alone ----


@pytest.mark.usefixtures("unchecked")
def test_what_has_changed_is_done_again(spark: SparkSession, lake: Config, said: Said) -> None:
    """One late event of Tuesday: two windows of one question, one of the other, and no more."""
    before = versions(lake)
    days = ("--from", str(MONDAY), "--to", str(TUESDAY))
    out, _ = said("all", *days, "--changed", "--dry-run")
    shown = [line.split(maxsplit=3) for line in out.splitlines() if line.split()[0] in QUESTIONS]
    assert shown == [
        ["falling", str(TUESDAY), "62", f"its events changed: 1 events in 2 windows, from {LATE}"],
        ["whole_days", str(TUESDAY), "120", f"its events changed: 1 events in 1 windows, from {LATE}"],
    ]
    assert out.endswith("intervals: 6, to do: 2, up to date: 4\n")
    tuesday = ("all", "--from", str(TUESDAY), "--dry-run")  # of which all is published
    assert said(*tuesday) == said(*tuesday, "--changed")
    assert versions(lake) == before

    out, _ = said("all", *days, "--changed")
    assert sorted(line.partition("] ")[2] for line in out.splitlines()[1:]) == [
        f"falling {TUESDAY}: 17 rows, 2 changed, by pane",
        f"whole_days {TUESDAY}: 3 rows, 1 changed, by pane",
    ]
    done = versions(lake)
    changed = {name: count - before[name] for name, count in done.items() if count != before[name]}
    assert changed == {
        "gold/engine_runs": 2,
        "gold/falling": 1,
        "gold/falling_history": 1,
        "gold/whole_days": 1,
        "gold/whole_days_history": 1,
        "ops/publications": 2,
    }
    noon = datetime(2030, 1, 8, 12)
    rows = short(spark, lake, FALLING, TUESDAY)
    assert {row[:3] for row in rows if row[3] != "first"} == {
        (noon - timedelta(minutes=5), "Computer", 2),
        (noon, "Computer", 2),
    }
    assert {row[2] for row in rows if row[3] == "first"} == {1}
    past = delta.read(spark, lake, gold_history(FALLING.table)).collect()
    assert {(row.window_start, row.sector, row.revision, row.run_id) for row in past} == {
        (noon - timedelta(minutes=5), "Computer", 1, "first"),
        (noon, "Computer", 1, "first"),
    }
    assert {(row.superseded_silver, row.superseded_by) for row in past} == {(2, row[3]) for row in rows if row[2] == 2}

    # Nothing is left of that; Monday's windows lack the event, though silver has another version than they are of.
    assert said("all", *days, "--changed")[0] == "intervals: 6, to do: 0, up to date: 6\n"
    assert said("all", "--from", str(TUESDAY))[0] == "intervals: 3, to do: 0, up to date: 3\n"
    assert said("falling", "--from", str(MONDAY))[0] == "intervals: 1, to do: 0, up to date: 1\n"
    out, _ = said("falling", "--from", str(MONDAY), "--engine", "cogra", "--dry-run")
    assert "pane answered it, not cogra" in out
    assert versions(lake) == done
    # The same answers again are no commit.
    out, _ = said("falling", "--from", str(TUESDAY), "--again")
    assert out.startswith("intervals: 1, to do: 1, up to date: 0\n[1/1] falling")
    assert versions(lake) == done | {"gold/engine_runs": done["gold/engine_runs"] + 1}


@pytest.mark.usefixtures("unchecked")
def test_questions_that_fail_keep_no_other_back(
    spark: SparkSession, lake: Config, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A critical check of one, engines that differ on another."""
    at = datetime.now(UTC)
    failed = Result("stock", WEDNESDAY, "gold.falling", "run", at, "gold.falling.x", None, "critical", False, None, 3)

    def check(*given: Any, **_: object) -> Report:
        return Report((failed,) if given[4] == failed.table_name else ())

    def agreement(_: object, __: object, question: Question, day: date, *___: object, **____: object) -> Comparison:
        unlike = Difference(0, 1, (), "COUNT(*)", ("pane", "sase"), ("1", "2"))
        return Comparison(question, day, (), (unlike,) if question.name == WHOLE_DAYS.name else (), 1, 1)

    days = ("--from", str(TUESDAY), "--to", str(WEDNESDAY), "--only-missing")
    with monkeypatch.context() as patch:
        patch.setattr(answers, "check", check)
        patch.setattr(answers, "agreement", agreement)
        out, err = said("all", *days, code=2)
    assert out.splitlines()[0] == "intervals: 6, to do: 3, up to date: 3"
    assert f"rides {WEDNESDAY}: 42 rows, 42 changed, by pane\n" in out
    assert f"falling {WEDNESDAY}: not published\nstock {WEDNESDAY}: gold.falling is not published: 1 critical" in err
    assert f"whole_days {WEDNESDAY}: not published\nwhole_days {WEDNESDAY}: engines disagree" in err
    assert short(spark, lake, FALLING, WEDNESDAY) == short(spark, lake, WHOLE_DAYS, WEDNESDAY) == set()
    out, _ = said("all", *days)
    assert out.splitlines() == [
        "intervals: 6, to do: 2, up to date: 4",
        f"[1/2] falling {WEDNESDAY}: 18 rows, 18 changed, by pane",
        f"[2/2] whole_days {WEDNESDAY}: 3 rows, 3 changed, by pane",
    ]
    assert said("all", *days)[0] == "intervals: 6, to do: 0, up to date: 6\n"


def test_with_all_checks(spark: SparkSession, lake: Config, said: Said) -> None:
    out, err = said("queries/taxi/rides.query", "falling", "--from", str(WEDNESDAY), "--parallel", "2")
    assert out.splitlines()[0] == "intervals: 2, to do: 2, up to date: 0"
    assert f"2] rides {WEDNESDAY}: 42 rows, 42 changed, by pane\n" in out
    assert f"2] falling {WEDNESDAY}: 18 rows, 18 changed, by pane\n" in out
    assert sorted(err.splitlines()) == [
        f"{name} {WEDNESDAY}: time slices: one task can do all" for name in ("falling", "rides")
    ]
    runs = engine_runs.read(spark, lake, "rides", WEDNESDAY, WEDNESDAY)
    assert {run.agrees for run in runs if run.purpose == engine_runs.AGREEMENT} == {True}
    assert [(run.engine, run.rows, run.windows, run.events) for run in runs if run.purpose == engine_runs.NIGHT] == [
        ("pane", 42, 21, 120)
    ]
    found = {one.expectation: one.success for one in results(spark, lake, "taxi", WEDNESDAY, WEDNESDAY)}
    assert found["gold.rides.engines_agree"]
    assert found["gold.rides.window_of_interval"]
    assert [*Path("site/quality").glob("**/*.html")]


# ---- what goes wrong before anything can be published ----


def test_a_lake_without_answers_and_with_one_dataset(lake: Config, said: Said) -> None:
    for folder in ("gold", "ops", "silver/taxi"):
        shutil.rmtree(Path(lake.lake) / folder)
    out, err = said("all", "--from", str(TUESDAY), "--to", str(WEDNESDAY), "--dry-run", code=2)
    assert [line.split(maxsplit=3) for line in out.splitlines()[2:-1]] == [
        [name, str(day), rows, "not published yet"]
        for name, *several in (("falling", "62", "61"), ("whole_days", "120", "121"))
        for day, rows in zip((TUESDAY, WEDNESDAY), several, strict=True)
    ]
    assert out.endswith("intervals: 4, to do: 4, up to date: 0\n")
    assert err.startswith(f"rides: silver.taxi: there is no such table in {lake.lake}\nhint: ingest something")
    assert versions(lake).keys() == {"silver/stock"}
    out, _ = said("falling", "--from", str(TUESDAY), "--changed", "--dry-run")
    assert out == "intervals: 1, to do: 0, up to date: 1\n"
    with pytest.raises(delta.MissingTableError, match=r"silver\.taxi: there is no such table"):
        snapshot(lake, silver(RIDES.dataset))


def test_two_files_of_one_table_are_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("falling.query", "again/falling.query"):
        file = Path("queries/stock") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(small_lake.QUERIES["stock/falling.query"])
    found, mistakes = answer_commands._questions(["stock", "queries/stock/../stock/again/falling.query"])
    assert [question.query.file for question in found] == ["queries/stock/again/falling.query"]
    assert mistakes == [
        "queries/stock/falling.query: the answers of queries/stock/again/falling.query go to gold.falling already\n"
        "hint: rename one of the files"
    ]


def test_only_spark_reaches_files_on_hdfs(monkeypatch: pytest.MonkeyPatch) -> None:
    held = snapshots.Snapshot(7, ())
    monkeypatch.setattr(snapshots, "unread_snapshot", lambda *_: held)
    config = Config("hdfs://names:8020/lake")
    assert snapshots.look(None, config, silver(RIDES.dataset)) == (held, True)  # type: ignore[arg-type]


def todo(question: Question, day: date) -> Todo:
    return Todo(question, day, "why not", 1)


def test_a_job_that_fails_is_done_by_each_question_alone(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too much for the tasks of one question fails the job that it shares with others."""
    from pyspark.errors import PySparkException

    tried = []

    @contextmanager
    def aggregated(_: object, __: object, asked: list[Any], **___: object) -> Iterator[list[Any]]:
        tried.append([question.name for question, _ in asked])
        if FALLING.name in tried[-1]:
            raise PySparkException("Job aborted\npipeline.errors.DidNotFinishError: falling: out of memory\n  at …")
        yield [answer(question) for question, _ in asked]

    monkeypatch.setattr(answers, "aggregated", aggregated)
    monkeypatch.setattr(answers, "_publish", lambda *given: publication(given[2].question, given[3]))
    work = [todo(FALLING, MONDAY), todo(WHOLE_DAYS, MONDAY), todo(RIDES, MONDAY)]
    found = {one.question.name: outcome for one, outcome in backfill(None, config, work, "run")}  # type: ignore[arg-type]
    assert tried == [["falling", "whole_days"], ["falling"], ["whole_days"], ["rides"]]
    assert str(found.pop("falling")) == f"falling {MONDAY}: falling: out of memory\nhint: run it again"
    assert all(isinstance(outcome, Publication) for outcome in found.values())


def answer(question: Question) -> answers.Answer:
    return answers.Answer(question, "pane", None, 1, "", (), 0, 0, 0, 0.0, 1.0)  # type: ignore[arg-type]


def publication(question: Question, day: date) -> Publication:
    return Publication(question.name, day, question.dataset.name, "run", question.version, "pane", 1, 1, 0, 0, 0)


def test_an_interrupt_leaves_days_that_have_not_begun(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    def answer_interval(_: object, __: object, asked: list[Question], day: date, *___: object, **____: object) -> Any:
        begun.append(day)
        time.sleep(0.05)
        return {question.name: publication(question, day) for question in asked}

    monkeypatch.setattr(backfills, "answer_interval", answer_interval)
    work = [todo(FALLING, MONDAY + timedelta(days=number)) for number in range(100)]
    done = backfill(None, config, work, "run", parallel=2)  # type: ignore[arg-type]
    next(done)
    done.close()  # type: ignore[attr-defined]
    assert len(begun) < 10


# ---- several at once, and killed ones ----


@pytest.mark.usefixtures("unchecked")
def test_two_backfills_of_the_same_days_at_once(spark: SparkSession, lake: Config, clean: dict[str, list[str]]) -> None:
    work = to_do(spark, lake, [FALLING], MONDAY, TUESDAY, changed=True)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda run_id: [*backfill(spark, lake, work, run_id)], ("one", "two")))
    assert all(isinstance(outcome, Publication) for found in both for _, outcome in found)
    assert _uncounted(tables(spark, lake)) == _uncounted(clean)


def _uncounted(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without what counts commits: the second run may write the interval once more as it is."""
    return {name: [re.sub(r"(gold_version|changed)=\d+", "", row) for row in rows] for name, rows in found.items()}


def test_killed_again_and_again(spark: SparkSession, lake: Config, clean: dict[str, list[str]]) -> None:
    """Backfills are killed when their first file of a table appears; a last one leaves what one alone would."""
    kills = [
        _killed_at(lake, Path(lake.lake) / table)
        for table in ("gold/falling_history", "gold/falling", "ops/publications")
    ]
    assert kills[0]  # it may have come further than that before it was hit
    run_unchecked(spark, lake, "last", [FALLING], changed=True)
    assert tables(spark, lake) == clean


def _killed_at(config: Config, folder: Path) -> bool:
    """Whether a backfill was there to be killed when a file appeared."""
    known = {*folder.rglob("*.parquet")}
    command = ("backfill", FALLING.name, "--from", str(TUESDAY), "--changed")
    victim = small_lake.start(config, UNCHECKED + "raise SystemExit(main(sys.argv[1:]))", *command)
    end = time.monotonic() + 300
    try:
        while victim.poll() is None and {*folder.rglob("*.parquet")} == known:
            assert time.monotonic() < end
            time.sleep(0.002)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(victim.pid, signal.SIGKILL)
        _, err = victim.communicate()
    assert victim.returncode in (0, -signal.SIGKILL), err
    return victim.returncode != 0
