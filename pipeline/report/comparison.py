"""Engines against each other: what each took on more and more events a window, and how far it got.

The same page shows the benchmarks that the project's documentation has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.compare import BASELINE
from pipeline.engines.choice import ENGINES
from pipeline.publish.engine_runs import COMPARISON, DID_NOT_FINISH, FINISHED, EngineRun
from pipeline.report.facts import Facts, by_key
from pipeline.report.subjects import Subject

KEPT = 3  # comparisons of a query, the newest
BENCHMARKS = Path(__file__).parents[2] / "docs" / "benchmarks.json"


@dataclass(frozen=True)
class Reached:
    """How far the engines got with a query, in its newest comparison: by engine, in words."""

    title: str
    page: str
    day: str
    engines: Mapping[str, str]
    most: int  # events a window
    speedup: str  # of the fastest engine over the baseline, on the most events that both finished on


def order(engines: Sequence[str]) -> list[str]:
    """The baseline first, then in the order of the engines' own list."""
    known = [BASELINE, *(engine.name for engine in ENGINES if engine.name != BASELINE)]
    return sorted(set(engines), key=lambda name: (known.index(name) if name in known else len(known), name))


def comparisons(facts: Facts, subjects: Sequence[Subject]) -> list[dict[str, Any]]:
    """What the page's script is given: the newest comparisons of each query, with a point an engine and size."""
    titles = {subject.name: subject.title for subject in subjects}
    return [
        {
            "label": f"{titles.get(runs[0].query, runs[0].query)}, windows of {runs[0].interval_date}, "
            f"run {max(run.at for run in runs):%Y-%m-%d %H:%M}",
            "about": "",
            "x": "events a window",
            "engines": order([run.engine for run in runs]),
            "points": [_point(run, budget) for run, budget in _with_budgets(runs)],
        }
        # That with the largest windows first, which says most.
        for runs in sorted(_experiments(facts), key=lambda runs: -max(run.events_a_window or 0 for run in runs))
    ]


def benchmarks(file: Path) -> list[dict[str, Any]]:
    """The same of the benchmarks, where they are at hand; not of growth, where each program has its own events."""
    if not file.is_file():
        return []
    results = json.loads(file.read_text("utf-8"))
    return [
        {
            "label": f"{name}: {result['title']}",
            "about": f"{result['source']}. {result['query'].strip()} (measured {result['at']}, {result['machine']})",
            "x": result["x"],
            "engines": result["programs"],
            "points": [_benchmarked(point, result["seconds"]) for point in result["points"]],
        }
        for name, result in results.items()
        if result.get("points") and not result.get("growth")
    ]


def _benchmarked(point: Mapping[str, Any], budget: float) -> dict[str, Any]:
    lost, events = point["lost"], point["events"]
    return {
        "engine": point["program"],
        "status": DID_NOT_FINISH if lost else FINISHED,
        "reason": lost,
        "size": point["x"],
        "log10": point.get("log10"),
        "time": budget if lost else point["seconds"],
        "rate": None if lost else events / point["seconds"],
        "below": events / budget if lost else None,
        "stored": point.get("stored"),
        "memory": point.get("memory"),
        "agrees": None if lost else True,
    }


def reached(facts: Facts, subjects: Sequence[Subject]) -> list[Reached]:
    """A line a query."""
    known = {subject.name: subject for subject in subjects}
    found = []
    seen = set()
    for runs in _experiments(facts):
        query = runs[0].query
        if query in seen:
            continue
        seen.add(query)
        subject = known.get(query, Subject(query))
        engines = {name: _reached(same) for name, same in by_key(runs, lambda run: run.engine).items()}
        most = max(run.events_a_window or 0 for run in runs)
        found.append(Reached(subject.title, subject.page, f"{runs[0].interval_date}", engines, most, _speedup(runs)))
    return found


def _experiments(facts: Facts) -> Iterator[list[EngineRun]]:
    """The newest comparisons of each query, by query."""
    compared = [run for run in facts.engine_runs if run.purpose == COMPARISON]
    for _, of_query in sorted(by_key(compared, lambda run: run.query).items()):
        several = by_key(of_query, lambda run: (run.run_id, run.interval_date)).values()
        yield from sorted(several, key=lambda runs: max(run.at for run in runs), reverse=True)[:KEPT]


def _with_budgets(runs: Sequence[EngineRun]) -> Iterator[tuple[EngineRun, float | None]]:
    """With the seconds after which an engine that did not finish was stopped, there or on fewer events."""
    spent: dict[str, float] = {}
    for run in sorted(runs, key=lambda run: (run.engine, run.events_a_window or 0)):
        if run.status == DID_NOT_FINISH and run.wall_seconds:
            spent[run.engine] = max(run.wall_seconds, spent.get(run.engine, 0.0))
        yield run, spent.get(run.engine) if run.status == DID_NOT_FINISH else None


def _point(run: EngineRun, budget: float | None) -> dict[str, Any]:
    return {
        "engine": run.engine,
        "status": run.status,
        "reason": _short(run.reason),
        "size": run.events_a_window,
        "events": run.events,
        "windows": run.windows,
        "log10": run.log10_trends,
        "time": run.wall_seconds if run.status == FINISHED else budget,
        "rate": run.events_per_second,
        # Stopped after the budget: at most this rate.
        "below": run.events / budget if budget and run.events else None,
        "stored": run.peak_stored if run.status == FINISHED else None,
        "memory": run.peak_memory,
        "agrees": run.agrees,
    }


def _short(reason: str | None) -> str | None:
    return reason.splitlines()[0] if reason else None


def _reached(runs: Sequence[EngineRun]) -> str:
    finished = [run.events_a_window or 0 for run in runs if run.status == FINISHED]
    lost = [run.events_a_window or 0 for run in runs if run.status == DID_NOT_FINISH]
    if lost:
        return f"{max(finished):,}; did not finish on {min(lost):,}" if finished else f"did not finish on {min(lost):,}"
    return f"{max(finished):,}" if finished else runs[-1].status


def _speedup(runs: Sequence[EngineRun]) -> str:
    rates = {(run.events_a_window, run.engine): run.events_per_second for run in runs if run.events_per_second}
    sizes = [size or 0 for size, engine in rates if engine == BASELINE]
    if not sizes:
        return ""
    of_size = {engine: rate or 0 for (size, engine), rate in rates.items() if size == max(sizes)}
    best = max((name for name in of_size if name != BASELINE), key=lambda name: of_size[name], default=None)
    if best is None:
        return ""
    return f"{best} {of_size[best] / of_size[BASELINE]:,.1f} × on {max(sizes):,}"
