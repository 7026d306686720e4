"""The benchmarks run, on very short streams: no time is asserted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import (
    cogra,
    flink,
    growth,
    harness,
    ingest,
    jobs,
    own,
    page,
    points,
    sequences,
    sizes,
    spark_sql,
    start,
)
from benchmarks.__main__ import bench, experiments
from benchmarks.harness import Claim, DisagreementError, Experiment, Figure, Point, Target, compare
from benchmarks.points import Ask, Budget, Measured, make_events, run_engine
from benchmarks.queries import ask
from benchmarks.variants import VARIANTS
from pipeline.engines import compiled
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.query.check import check
from pipeline.report.comparison import benchmarks
from pipeline.run import fit_events
from tests.conftest import SMALL

COMPARED = [*cogra.EXPERIMENTS, *sequences.EXPERIMENTS, *own.EXPERIMENTS, *growth.EXPERIMENTS]
BUDGET = Budget(60, 8 * 2**30)
# 1,023 trends of ten events each.
TEN = Ask(ask("A+", "10 s"), "random_letters", {"size": 10, "types": 1})


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark as the other tests have it, where an experiment starts one in a process of its own."""
    settings = {key: value for key, value in SMALL.items() if key.startswith("spark.sql.")}
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", SMALL["spark.driver.extraJavaOptions"])


@pytest.mark.parametrize("experiment", COMPARED, ids=lambda experiment: experiment.name)
def test_the_engines_of_an_experiment_can_answer_and_agree(experiment: Experiment) -> None:
    size = 20 if experiment.name == "growth-length-any" else 60  # of 60 events, too many trends have eight
    known: dict[str, list[Row]] = {}
    for program in experiment.programs:
        xs = experiment.xs_of(program)
        for x in (xs[0], xs[-1]):
            asked = experiment.asked(program, x)
            query, events = check(asked.query), make_events(asked, size=size)
            stream = fit_events(query, events, "events").stream
            if str(asked) not in known:
                known[str(asked)] = sorted(VARIANTS["pane"].run(query, stream, Limits(), Cost()))
            if program in VARIANTS:
                assert sorted(VARIANTS[program].run(query, stream, Limits(), Cost())) == known[str(asked)], program


def test_a_comparison() -> None:
    """Real processes: two programs, the second of which has not enough time for the second question."""
    falling = Experiment(
        "small", "events of a sequence", "nothing", "events", [10, 60], ("pane", "sase"),
        lambda x: replace(TEN, query=ask("A+", f"{x} s"), shape={"size": x, "types": 1}),
        theory={"pane": "x"}, claims=[Claim("pane", 10, Target("≥", 0), ("sase", 10))], seconds=1,
    )  # fmt: skip
    found = compare(falling, rounds=2)
    by_point = {(one["program"], one["x"]): one for one in found["points"]}
    assert [(one["program"], one["x"]) for one in found["points"] if one["lost"]] == [("sase", 60)]
    assert by_point["pane", 60]["log10"] == pytest.approx(18.0617997)  # 2^60 - 1
    assert by_point["sase", 10]["stored"] > by_point["pane", 10]["stored"] > 0
    assert by_point["pane", 10]["low"] <= by_point["pane", 10]["seconds"] <= by_point["pane", 10]["high"]
    [figure] = found["figures"]
    assert (figure["case"], figure["met"]) == ("pane at 10 : sase at 10", True)
    assert found["growth"] == [{"program": "pane", "theory": "x", "fitted": "too few points", "over": []}]


def test_a_program_that_gives_another_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"one": Measured(10, total="1", log10=0.0), "two": Measured(10, total="2", log10=0.3)}
    monkeypatch.setattr(harness, "measure", lambda program, *_: answers[program])
    experiment = Experiment("wrong", "", "", "x", [1], ("one", "two"), lambda _: TEN)
    with pytest.raises(DisagreementError, match="wrong, x 1: one and two differ"):
        compare(experiment)


def test_programs_are_measured_where_they_can_be_and_asked_what_they_can_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only answers to the same question must agree."""
    sizes: list[tuple[str, float]] = []

    def measure(program: str, asked: Ask, _: Budget) -> Measured:
        sizes.append((program, asked.shape["size"]))
        return Measured(1, seconds=1.0, total=f"{asked.shape['size']}", log10=0.0)

    def asked(size: float) -> Ask:
        return replace(TEN, shape={"size": size})

    monkeypatch.setattr(harness, "measure", measure)
    experiment = Experiment(
        "two", "", "", "x", [1, 2, 4], ("few", "many"), asked,
        quick=1, rounds=1, only={"few": [1, 2], "many": [2, 4]}, asks={"many": lambda x: asked(1000 * x)},
    )  # fmt: skip
    found = compare(experiment)
    assert sizes == [("few", 1), ("few", 2), ("many", 2000), ("many", 4000)]
    assert found["rounds"] == 1
    assert "-- few\nRETURN" in found["query"]
    assert "-- many: 2,000 events\nRETURN" in found["query"]
    sizes.clear()
    compare(experiment, quick=True)
    assert sizes == [("few", 1), ("many", 2000)]


def test_answers_agree() -> None:
    exact = Measured(1, total="ff", log10=2.4, digest="a")
    assert exact.agrees(replace(exact, digest=None))
    assert not exact.agrees(replace(exact, digest="b"))
    assert not exact.agrees(replace(exact, digest=None, total="fe"))
    assert exact.agrees(Measured(1, log10=2.4 * (1 + 1e-12)))
    assert not exact.agrees(Measured(1, log10=2.5))


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="Misspelt"):
        points.measure("pane", replace(TEN, query="Misspelt"), BUDGET)


@pytest.mark.parametrize("run", [spark_sql.joins, flink.run], ids=["joins", "flink"])
def test_others_count_what_engines_do_in_windows_that_do_not_overlap(run: points.Program) -> None:
    if run is flink.run and (reason := flink.missing()):
        pytest.skip(reason)
    asked = sequences._joined(3, 10)
    few = replace(asked, shape={**asked.shape, "size": 300, "types": 5}, query=asked.query.replace("10000", "100"))
    found, known = run(few, BUDGET), run_engine(VARIANTS["pane"], few, BUDGET)
    assert found.lost is None
    assert (known.rows, found.total) == (3, known.total)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("cogra-5", {"patients": 30}),
        ("cogra-6", {"patients": 30}),
        ("cogra-7", {"patients": 30}),
        ("cogra-8", {"companies": 30}),
        ("cogra-9", {"drivers": 3}),
        ("cogra-11", {"drivers": 3}),
        ("cogra-13", {"companies": 30}),
    ],
)
def test_flink_counts_what_engines_do(name: str, shape: dict[str, int]) -> None:
    if reason := flink.missing():
        pytest.skip(reason)
    [experiment] = [one for one in COMPARED if one.name == name]
    asked = experiment.ask(experiment.xs[0])
    within = f"{asked.shape['size']} s"
    assert within in asked.query
    few = replace(asked, shape={"size": 300, **shape}, query=asked.query.replace(within, "300 s"))
    found = flink.run(few, BUDGET)
    assert found.lost is None
    assert found.agrees(run_engine(VARIANTS["pane"], few, BUDGET))


@pytest.mark.parametrize("run", [jobs.jobs, sizes.sizes, ingest.ingest, start.start], ids=lambda run: run.__name__)
def test_figures(run: Callable[[float], list[Figure]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "RUNS", sizes.RUNS[-2:-1])
    figures = run(1e-4)
    assert figures
    assert len({(one.case, one.unit) for one in figures}) == len(figures)


def test_a_figure_is_the_median_and_says_what_it_missed() -> None:
    assert Figure("", "×", [1, 9, 4], Target("≥", 5)).as_json()["met"] is False
    assert Figure("", "×", [1, 9, 4], Target("≤", 5)).as_json()["met"] is True
    assert Figure("", "×", [1, 9, 4]).as_json()["met"] is None


def test_growth_is_that_of_the_hardest_points() -> None:
    # Constant costs hide how time grows in the easy ones.
    taken = [Point("p", x, (Measured(1, seconds=max(x, 1000) / 1000),)) for x in (1, 10, 1000, 2000, 4000, 8000)]
    assert harness.growth(taken, "p", "x") == {"fitted": "x^1.00", "over": [1000, 2000, 4000, 8000]}


@pytest.mark.parametrize(
    ("xs", "slowest", "fitted"),
    [
        ((10, 20, 30), 3.0, "x^1.00"),
        ((10, 20), 3.0, "too few points"),
        ((20, 25, 30), 3.0, "too few points"),  # next to each other
        ((10, 20, 30), 0.1, "too few points"),  # two of them are of a few milliseconds
    ],
)
def test_growth_is_not_made_up(xs: tuple[int, ...], slowest: float, fitted: str) -> None:
    taken = [Point("p", x, (Measured(1, seconds=slowest * x / xs[-1]),)) for x in xs]
    assert harness.growth(taken, "p", "x")["fitted"] == fitted


def test_loops_are_compiled_however_few_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = []
    monkeypatch.setattr(compiled, "_ready", lambda loop, *_: ready.append(loop) or loop)  # Python after all: quicker
    monkeypatch.setattr(compiled, "_loaded", set())
    assert run_engine(VARIANTS["pane"], TEN, BUDGET).total == f"{2**10 - 1:x}"
    assert ready


def test_a_point_that_takes_long_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"quick": 0.1, "slow": harness.ONCE}
    monkeypatch.setattr(
        harness,
        "measure",
        lambda program, *_: Measured(10, seconds=taken[program], fit_seconds=0.1, total="1", log10=0.0),
    )
    found = compare(Experiment("slow", "", "", "x", [1], ("quick", "slow"), lambda _: TEN))
    assert [(one["program"], one["rounds"]) for one in found["points"]] == [("quick", 3), ("slow", 1)]


def test_a_program_that_cannot_is_not_called_slow() -> None:
    result = {"seconds": 15.0}
    assert page.lost({"lost": "did not finish in 15 seconds: 3 trends built"}, result) == "> 15 s"
    assert page.lost({"lost": "killed by signal 9, likely for its memory"}, result) == "out of memory"
    assert (
        page.lost({"lost": "aseq cannot run this query: PATTERN: a window may hold more events"}, result) == "refused"
    )
    assert page.lost({"lost": None}, result) is None


def test_an_experiment_that_fails_leaves_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ratio = Figure("job : plain", "×", [0.5], Target("≤", 1)).as_json()
    known = {"wrong": lambda _: {}["nothing"], "right": lambda _: {"title": "one figure", "figures": [ratio]}}
    assert bench(list(known), tmp_path, quick=False, known=known) == ["wrong"]
    assert list(json.loads((tmp_path / "benchmarks.json").read_text())) == ["right"]
    assert re.search(r"right +\| job : plain +\| 0.5 +\| ≤ 1", (tmp_path / "benchmarks.md").read_text())
    assert "KeyError: 'nothing'" in capsys.readouterr().err


def test_results_are_kept_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def measured(program: str, x: float) -> dict[str, object]:
        seconds = {"seconds": x / 100, "low": x / 200, "high": x / 50}
        more = {"events": 10, "memory": 2**21, "stored": 7, "links": 3, "rows": 1, "log10": 2.0, "fit_seconds": 0.1}
        return {"program": program, "x": x, "lost": None, **seconds, **more}

    result = {
        "title": "events", "source": "a paper", "x": "events", "query": "RETURN …", "programs": ["pane", "sase"],
        "seconds": 30.0, "rounds": 3,
        "points": [measured("pane", 10), measured("sase", 10), measured("pane", 2000),
                   {"program": "sase", "x": 2000, "events": 10, "lost": "did not finish in 30 seconds"}],
        "figures": [Figure("pane", "M events/s", [2.0], Target("≥", 5)).as_json()],
    }  # fmt: skip
    growth = [{"program": "pane", "theory": "x", "fitted": "x^1.02", "over": [10, 2000]}]
    grown = {**result, "points": [measured("sase", 10), measured("pane", 2000)], "growth": growth, "figures": []}
    known = {
        "first": lambda _: result,
        "grown": lambda _: grown,
        "second": lambda _: {"title": "one figure", "figures": []},
    }
    bench(["second"], tmp_path, quick=False, known=known)
    bench(["grown", "first"], tmp_path, quick=False, known=known)
    assert list(json.loads((tmp_path / "benchmarks.json").read_text())) == ["first", "grown", "second"]
    text = (tmp_path / "benchmarks.md").read_text()
    assert "| 10     | 100 ms | 100 ms |" in text
    assert "| 2,000  | 20 s | > 30 s |" in text.replace("   |", " |")
    assert "| 7 (2) |" in text.replace("    |", " |")
    assert "0 of 1 were met; missed:" in text
    assert re.search(r"2,000 events +\| pane, 20 s +\| sase 1 × at 10, its last", text)
    assert "- first: pane: 2 M events/s, wanted ≥ 5" in text
    assert "make bench BENCH='first'" in text
    assert re.search(r"pane +\| x +\| x\^1.02 +\| 10 to 2,000", text)
    assert "<svg" in (tmp_path / "benchmarks" / "first.svg").read_text()
    assert "first: Events. A paper." in capsys.readouterr().out

    [shown] = benchmarks(tmp_path / "benchmarks.json")
    assert [(one["engine"], one["size"], one["status"]) for one in shown["points"]][-1] == (
        "sase",
        2000,
        "did not finish",
    )
    assert shown["points"][0]["rate"] == 100


def test_growth_has_points_enough() -> None:
    for experiment in growth.EXPERIMENTS:
        for program, theory in experiment.theory.items():
            xs = experiment.xs_of(program)
            assert len(xs) >= harness.FITTED
            assert theory == harness.EXPONENTIAL or xs[-1] >= harness.SPAN * xs[-harness.FITTED]


def test_every_experiment_has_its_name() -> None:
    assert set(experiments()) >= {one.name for one in COMPARED}
    assert len(COMPARED) == len({one.name for one in COMPARED})
    assert page.page({}).startswith("# Benchmarks")
