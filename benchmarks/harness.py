"""Timing in interleaved rounds; figures with their targets, as a table and as JSON."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

from pipeline.engines.contract import Cost, Engine, Limits
from pipeline.events import Events
from pipeline.query.checked import Query
from pipeline.run import fit_events

ROUNDS = 5
HEADINGS = ("experiment", "case", "median", "lowest", "highest", "unit", "target", "", "")


@dataclass(frozen=True)
class Target:
    """What a figure should be."""

    relation: Literal["≥", "≤"]
    bound: float

    def met(self, figure: float) -> bool:
        """Whether a figure is."""
        return figure >= self.bound if self.relation == "≥" else figure <= self.bound

    def __str__(self) -> str:
        return f"{self.relation} {self.bound:g}"


@dataclass(frozen=True)
class Figure:
    """What was measured, once a round."""

    case: str
    unit: str
    values: Sequence[float]
    target: Target | None = None
    facts: Mapping[str, float] = field(default_factory=dict)  # what else there is to know

    @property
    def median(self) -> float:
        """The figure itself; the others are its spread."""
        return median(self.values)

    @property
    def verdict(self) -> str:
        """Whether the target was met."""
        if self.target is None:
            return ""
        return "met" if self.target.met(self.median) else "MISSED"


@dataclass(frozen=True)
class Case:
    """A query that an engine runs over a stream, and how many million events a second it should take."""

    name: str
    engine: Engine
    query: Query
    events: Events
    target: Target | None = None
    with_fit: bool = False  # the time to make the stream counts too

    def run(self) -> tuple[float, float]:
        """The seconds to partition and sort the events, and to aggregate them."""
        gc.collect()
        started = time.perf_counter()
        stream = fit_events(self.query, self.events, "events").stream
        fitted = time.perf_counter()
        self.engine.run(self.query, stream, Limits(), Cost())
        return fitted - started, time.perf_counter() - fitted


@dataclass(frozen=True)
class Ratio:
    """The rate of one case over that of another."""

    over: str
    under: str
    target: Target


def progress(text: str) -> None:
    """Say what is being done."""
    print(text, file=sys.stderr, flush=True)


def measure(cases: Sequence[Case], ratios: Sequence[Ratio] = ()) -> list[Figure]:
    """The rates of all cases and their ratios: the cases take turns, so that what slows the machine slows all."""
    progress("  untimed runs")
    for case in cases:
        case.run()
    times: dict[str, list[tuple[float, float]]] = {case.name: [] for case in cases}
    for number in range(1, ROUNDS + 1):
        progress(f"  round {number} of {ROUNDS}")
        for case in cases if number % 2 else reversed(cases):  # so that no case always follows the same one
            times[case.name].append(case.run())
    rates = {case.name: _rate(case, times[case.name]) for case in cases}
    return [*rates.values(), *(_ratio(ratio, rates) for ratio in ratios)]


def _rate(case: Case, times: list[tuple[float, float]]) -> Figure:
    rates = [len(case.events) / (run + (fit if case.with_fit else 0)) / 1e6 for fit, run in times]
    facts = {
        "events": len(case.events),
        "seconds to fit": median(fit for fit, _ in times),
        "to run": median(run for _, run in times),
    }
    return Figure(case.name, "M events/s", rates, case.target, facts)


def _ratio(ratio: Ratio, rates: Mapping[str, Figure]) -> Figure:
    pairs = zip(rates[ratio.over].values, rates[ratio.under].values, strict=True)
    return Figure(f"{ratio.over} : {ratio.under}", "×", [over / under for over, under in pairs], ratio.target)


def table(results: Mapping[str, Sequence[Figure]]) -> str:
    """The figures as aligned text."""
    lines = [HEADINGS, *(_cells(name, figure) for name, figures in results.items() for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _cells(experiment: str, figure: Figure) -> tuple[str, ...]:
    numbers = (figure.median, min(figure.values), max(figure.values))
    facts = ", ".join(f"{name} {_short(value)}" for name, value in figure.facts.items())
    target = "" if figure.target is None else str(figure.target)
    return experiment, figure.case, *map(_short, numbers), figure.unit, target, figure.verdict, facts


def _short(number: float) -> str:
    """Three digits, and never fewer than there are before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def as_json(results: Mapping[str, Sequence[Figure]]) -> dict[str, Any]:
    """The same for a file."""
    return {name: [_object(figure) for figure in figures] for name, figures in results.items()}


def _object(figure: Figure) -> dict[str, Any]:
    return {
        "case": figure.case,
        "unit": figure.unit,
        "median": figure.median,
        "rounds": list(figure.values),
        "target": None if figure.target is None else str(figure.target),
        "met": None if figure.target is None else figure.target.met(figure.median),
        **figure.facts,
    }
