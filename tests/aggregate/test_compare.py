"""Engines against each other over silver, on real Spark and Delta."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from pipeline import delta
from pipeline.aggregate import each_window
from pipeline.aggregate.job import Answer, aggregated
from pipeline.aggregate.trials import Budget
from pipeline.compare import Comparison, agreement, compare
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.engines import choice
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.stream import Stream
from pipeline.errors import TrendsError
from pipeline.publish import engine_runs
from pipeline.publish.engine_runs import CANNOT_RUN, DID_NOT_FINISH, FAILED, FINISHED, EngineRun
from pipeline.quality.report import QualityError
from pipeline.query.checked import Query
from pipeline.questions import Question, ask
from pipeline.tables import ENGINE_RUNS, silver
from tests.report.lake import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = date(2030, 1, 7)
NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)
STOCK = DATASETS["stock"]
SMALL = Budget(seconds=20, trends=50_000)  # the number of trends decides, on however slow a machine

Event = tuple[float, str, str, float, int]  # seconds after noon, company, sector, price, volume
Fill = Callable[[Sequence[Event]], None]


@pytest.fixture
def fill(config: Config) -> Fill:
    """Writes events into silver.stock."""

    def fill_silver(events: Sequence[Event]) -> None:
        rows = []
        for number, (seconds, company, sector, price, volume) in enumerate(events):
            time = NOON + timedelta(seconds=seconds)
            given = {
                "event_id": str(number),
                "time": time,
                "event_date": time.date(),
                "company": company,
                "sector": sector,
                "price": price,
                "volume": volume,
                "ambiguous_time": False,
                "late": False,
                "file": "a.csv",
                "line": number + 1,
                "landing_date": DAY,
            }
            rows.append(given)
        write(config, silver(STOCK), rows)

    return fill_silver


def question(window: str, pattern: str = "Stock S+", where: str = "[company]", returns: str = "COUNT(*)") -> Question:
    text = f"""
        RETURN sector, {returns} PATTERN {pattern} FROM stock WHERE {where} GROUP-BY sector WITHIN {window}
    """
    return ask(text, "queries/stock/asked.query")


def some_events(number: int, seconds: int, seed: int = 1) -> list[Event]:
    """In order, many at the same time."""
    chance = random.Random(seed)
    times = sorted(chance.randrange(seconds) for _ in range(number))
    companies = {"DELL": "Computer", "IBM": "Computer", "AMAT": "Chip"}
    drawn = [(time, chance.choice([*companies])) for time in times]
    return [
        (time, company, companies[company], chance.randrange(1, 50) / 4, chance.randrange(100))
        for time, company in drawn
    ]


def rising(number: int) -> list[Event]:
    return [(at, "DELL", "Computer", float(at), at) for at in range(number)]


def by_engine(runs: Sequence[EngineRun]) -> dict[str, list[EngineRun]]:
    found: dict[str, list[EngineRun]] = {}
    for run in runs:
        found.setdefault(run.engine, []).append(run)
    return found


def check(
    spark: SparkSession,
    config: Config,
    asked: Question,
    change: Callable[[DataFrame], DataFrame] = lambda frame: frame,
    engine: str = "auto",
    **options: Any,
) -> Comparison:
    """A night, its answers changed on the way, and its agreement."""
    with aggregated(spark, config, [(asked, asked.reach.ends(DAY))], engine=engine) as answers:
        answer: Answer = answers[0]
        options = {"run_id": "run", "version": answer.silver_version, "budget": SMALL, "seconds": 60.0, **options}
        return agreement(spark, config, asked, DAY, change(answer.rows), answer.engine, **options)


OVERLAPPING = "1 minute SLIDE 20 seconds"
FEW = ask(
    "RETURN sector, COUNT(*) PATTERN Stock S+ FROM stock WHERE [company] GROUP-BY sector HAVING COUNT(*) > 3 "
    f"WITHIN {OVERLAPPING}",
    "queries/stock/asked.query",
)
ASKED = {
    "overlapping": question(OVERLAPPING, returns="COUNT(*), SUM(S.price), AVG(S.price), MIN(S.price)"),
    "conditions": question(OVERLAPPING, where="[company] AND S.price > NEXT(S).price"),
    "time": question(OVERLAPPING, where="[company] AND S.time + 9 > NEXT(S).time", returns="MAX(S.time)"),
    "moving": question("20 seconds", "SEQ(Stock A, Stock B)", "[sector]", "COUNT(*), SUM(B.volume)"),
    "negation": question("20 seconds SLIDE 20 seconds", "SEQ(!AMAT, DELL D+, IBM, !IBM I)", "[sector]"),
    "having": FEW,
}
KLEENE = question("1 hour SLIDE 1 hour")


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_engines_agree(spark: SparkSession, config: Config, fill: Fill, asked: Question) -> None:
    fill(some_events(60, 120))
    found = compare(spark, config, asked, DAY, run_id="run", budget=SMALL)
    assert not found.differences
    assert found.compared == found.total > 4
    runs = by_engine(found.runs)
    assert {*runs} == {engine.name for engine in choice.ENGINES}
    for name, several in runs.items():
        refused = choice.refusals(asked.query)[name] is not None
        assert {run.status for run in several} == {CANNOT_RUN if refused else FINISHED}
        for run in several:
            assert run.agrees is (None if refused else True)
            assert run.compared == (0 if refused else run.windows)
    assert any(run.rows for run in runs["sase"])
    for other in ("pane", "cogra"):
        assert [run.rows for run in runs[other]] == [run.rows for run in runs["sase"]]
        assert [run.log10_trends for run in runs[other]] == [run.log10_trends for run in runs["sase"]]
    night = check(spark, config, asked)
    assert not night.differences
    assert night.compared == night.total > 0
    assert night.result("run").state == "passed"


# ---- budgets ----


def test_the_baseline_does_not_finish_and_the_record_says_so(spark: SparkSession, config: Config, fill: Fill) -> None:
    fill(rising(60))
    found = compare(spark, config, KLEENE, DAY, ["pane", "greta"], run_id="run", budget=SMALL)
    assert not found.differences
    assert (found.compared, found.total) == (1, 1)
    runs = by_engine(found.runs)
    assert [run.events_a_window for run in runs["sase"]] == [8, 16, 60]
    assert [run.status for run in runs["sase"]] == [FINISHED, DID_NOT_FINISH, DID_NOT_FINISH]
    assert "trends built" in str(runs["sase"][1].reason)
    assert runs["sase"][2].reason == "not tried: it did not finish on 16 events"
    for name in ("pane", "greta"):
        assert [run.status for run in runs[name]] == [FINISHED] * 3
        assert [run.agrees for run in runs[name]] == [True] * 3
        assert runs[name][-1].log10_trends == pytest.approx(math.log10(2**60 - 1))
        assert (runs[name][-1].rows, runs[name][-1].compared) == (1, 1)
    last = runs["pane"][-1]
    assert last.wall_seconds is not None
    assert last.events_per_second == pytest.approx(60 / last.wall_seconds)
    assert last.peak_memory is not None
    delta.create(spark, config, ENGINE_RUNS)
    engine_runs.record(spark, config, found.runs)
    assert {*engine_runs.read(spark, config, "asked")} == {*found.runs}


def test_a_time_budget(spark: SparkSession, config: Config, fill: Fill) -> None:
    fill(rising(60))
    budget = Budget(seconds=0.3, trends=10**15)
    found = compare(spark, config, KLEENE, DAY, ["pane"], run_id="run", budget=budget)
    assert by_engine(found.runs)["sase"][-1].status == DID_NOT_FINISH
    assert any("0.3 seconds" in str(run.reason) for run in found.runs)
    assert found.compared == 1


def test_where_the_baseline_cannot_build_all_the_night_is_checked_on_first_events(
    spark: SparkSession, config: Config, fill: Fill
) -> None:
    fill(rising(60))
    found = check(spark, config, KLEENE)
    assert (found.compared, found.total, found.differences) == (1, 1, ())
    runs = by_engine(found.runs)
    assert [(run.status, run.agrees) for run in runs["sase"]] == [(FINISHED, True)]
    assert runs["sase"][0].events_a_window == 8
    assert [(run.events_a_window, run.windows, run.compared) for run in runs["aseq"]] == [(60, 1, 1)]
    assert [(run.windows, run.compared, run.agrees) for run in runs["pane"]] == [(1, 1, True)]


# ---- mistakes ----


class Wrong(Cogra):
    """One trend too many, from ten events on."""

    name = "wrong"

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        rows = super().run(query, stream, limits, cost)
        if len(stream) < 10:
            return rows
        return [row._replace(values=(row.values[0] + 1, *row.values[1:])) for row in rows]  # type: ignore[operator]


class Broken(Cogra):
    """Fails."""

    name = "broken"

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        raise ZeroDivisionError("no more")


class Hungry(Cogra):
    """Wants too much."""

    name = "hungry"

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        raise MemoryError("9 GB")


@pytest.fixture
def more_engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Also in the tasks: engines go to them as they are."""
    from pyspark import cloudpickle

    monkeypatch.setattr(choice, "ENGINES", (*choice.ENGINES, Wrong(), Broken(), Hungry()))
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.mark.usefixtures("more_engines")
def test_mishaps_of_engines_are_results(spark: SparkSession, config: Config, fill: Fill) -> None:
    fill(rising(12))
    found = compare(spark, config, KLEENE, DAY, ["pane", "wrong", "broken", "hungry", "fla"], run_id="run")
    runs = by_engine(found.runs)
    assert [(run.status, run.reason) for run in runs["broken"]] == [(FAILED, "ZeroDivisionError: no more")] * 2
    assert [run.status for run in runs["hungry"]] == [DID_NOT_FINISH] * 2
    assert runs["hungry"][0].reason == "out of memory: 9 GB"
    assert [run.status for run in runs["fla"]] == [CANNOT_RUN] * 2
    assert "PATTERN" in str(runs["fla"][0].reason)
    assert [run.agrees for run in runs["wrong"]] == [True, False]
    assert [run.agrees for run in runs["pane"]] == [True, True]
    expected = "window 2030-01-07T12:00:00Z to 2030-01-07T13:00:00Z, sector Computer: COUNT(*): wrong 4096, sase 4095"
    assert [str(difference) for difference in found.differences] == [expected]
    assert runs["wrong"][1].difference == expected
    with pytest.raises(QualityError, match="asked 2030-01-07: engines disagree") as raised:
        found.raise_on_difference()
    assert expected in str(raised.value)
    result = found.result("run")
    assert (result.state, result.expectation, result.examples) == ("failed", "gold.asked.engines_agree", (expected,))


def test_an_unknown_engine(spark: SparkSession, config: Config) -> None:
    with pytest.raises(TrendsError, match="did you mean greta"):
        compare(spark, config, KLEENE, DAY, ["gretta"], run_id="run")


def one_more(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    wrong = F.when(F.col("sector") == "Chip", (F.col("count").cast("bigint") + 1).cast("string"))
    return frame.withColumn("count", F.coalesce(wrong, F.col("count")))


def one_less(frame: DataFrame) -> DataFrame:
    return frame.where("sector <> 'Chip'")


def another(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return frame.union(frame.where("sector = 'Chip'").withColumn("sector", F.lit("Chips")))


@pytest.mark.parametrize("change", [one_more, one_less, another])
@pytest.mark.parametrize("window", [OVERLAPPING, "20 seconds"])
def test_a_wrong_night_is_found(
    spark: SparkSession, config: Config, fill: Fill, window: str, change: Callable[[DataFrame], DataFrame]
) -> None:
    fill(some_events(40, 60))
    found = check(spark, config, question(window, "SEQ(Stock A, Stock B)", "[sector]"), change)
    assert found.differences
    assert {difference.engines[0] for difference in found.differences} == {"pane"}
    assert {difference.group for difference in found.differences} <= {("sector Chip",), ("sector Chips",)}
    assert by_engine(found.runs)["pane"][0].agrees is False
    with pytest.raises(QualityError, match="window 2030-01-07T12:0"):
        found.raise_on_difference()


# ---- what cannot be compared ----


def test_nothing_compared_is_a_warning(spark: SparkSession, config: Config, fill: Fill) -> None:
    """Only SASE joins events that are not neighbours, and the night had it too."""
    fill(some_events(12, 60))
    asked = question(OVERLAPPING, "SEQ(Stock A, Stock B, Stock C)", "A.price < C.price")
    found = check(spark, config, asked)
    assert (found.compared, found.differences) == (0, ())
    assert found.total > 0
    assert found.warnings == [f"asked: none of {found.total} windows could be compared with another engine"]
    assert found.result("run").state == "warned"
    assert {run.agrees for run in found.runs} == {None}
    found.raise_on_difference()


def test_with_no_time_first_events_are_compared_still(spark: SparkSession, config: Config, fill: Fill) -> None:
    fill(rising(30))
    found = check(spark, config, KLEENE, seconds=1e-9)
    assert (found.compared, found.total, found.differences) == (1, 1, ())
    assert by_engine(found.runs)["sase"][0].events_a_window == 8


def test_a_day_without_events_needs_no_warning(spark: SparkSession, config: Config, fill: Fill) -> None:
    fill([(86_400 * 9, "DELL", "Computer", 1.0, 1)])
    found = compare(spark, config, KLEENE, DAY, run_id="run")
    assert (found.runs, found.total, found.warnings) == ((), 0, [])
    night = check(spark, config, KLEENE)
    assert (night.total, night.warnings, [run.engine for run in night.runs]) == (0, [], ["pane"])


# ---- however silver is read ----


def test_a_night_in_this_process_and_in_tasks(
    spark: SparkSession, config: Config, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(some_events(60, 120))
    here = check(spark, config, ASKED["overlapping"])
    monkeypatch.setattr(each_window, "FEW_EVENTS", 0)
    in_tasks = check(spark, config, ASKED["overlapping"])
    assert [facts(run) for run in here.runs] == [facts(run) for run in in_tasks.runs]
    assert here.compared == in_tasks.compared == here.total == 8


def test_through_spark_alone(spark: SparkSession, config: Config, fill: Fill) -> None:
    """As where only Spark can reach the files."""
    fill(some_events(60, 120))
    asked = ASKED["overlapping"]
    found, again = (
        compare(spark, config, asked, DAY, run_id="run", budget=SMALL, by_spark=way) for way in (None, True)
    )
    assert [facts(run) for run in found.runs] == [facts(run) for run in again.runs]
    night = check(spark, config, asked, by_spark=True)
    assert night.compared == night.total == 8


def facts(run: EngineRun) -> tuple[Any, ...]:
    return run.engine, run.status, run.events, run.windows, run.events_a_window, run.rows, run.log10_trends, run.agrees


def test_through_spark_connect(
    connect: SparkSession, connect_url: str, spark: SparkSession, config: Config, fill: Fill
) -> None:
    fill(some_events(30, 60))
    config = replace(config, master=connect_url, spark_conf={})
    found = compare(connect, config, KLEENE, DAY, ["pane"], run_id="run", budget=SMALL)
    assert found.compared == found.total == 1
    assert check(connect, config, KLEENE).compared == 1
