"""Comparisons: points in rounds, programs in turns; what they took, how it grows, and whether what is claimed holds."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import linear_regression, median
from typing import Any, Literal

from benchmarks.points import Ask, Budget, Measured, measure

ROUNDS = 3
ONCE = 2.0  # seconds: a point that takes longer, its preparation included, has no further round
SECONDS = 15.0  # that a program may take
MEMORY = 12 * 2**30
LEAST = 0.05  # seconds: below, what a program takes is its fixed cost as much as the events'
FITTED = 4  # points at most, the hardest
FEWEST, SPAN = 3, 2  # points that make a fit, the hardest with so many times the x of the easiest
EXPONENTIAL = "exponential"
TOO_FEW = "too few points"


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

    @property
    def median(self) -> float:
        """The figure itself; the others are its spread."""
        return median(self.values)

    def as_json(self) -> dict[str, Any]:
        """For the file of results."""
        return {
            "case": self.case,
            "unit": self.unit,
            "median": self.median,
            "low": min(self.values),
            "high": max(self.values),
            "target": None if self.target is None else str(self.target),
            "met": None if self.target is None else self.target.met(self.median),
        }


@dataclass(frozen=True)
class Claim:
    """What should hold at a point: a rate (million events a second), a ratio of rates, or a size (MB)."""

    program: str
    x: float
    target: Target
    over: tuple[str, float] | None = None  # the other point of a ratio
    of: Literal["rate", "rate with sorting", "memory"] = "rate"

    def figure(self, points: Mapping[tuple[str, float], Point]) -> Figure | None:
        """What was measured; None where a point is missing."""
        point, other = points.get((self.program, self.x)), points.get(self.over) if self.over else None
        if point is None or point.lost or (self.over and (other is None or other.lost)):
            return None
        case = f"{self.program} at {self.x:,g}"
        if self.of == "memory":
            return Figure(f"{case}, memory", "MB", [(one.memory or 0) / 2**20 for one in point.rounds], self.target)
        sorts = self.of != "rate"
        rates = [one.events / (one.seconds + sorts * one.fit_seconds) / 1e6 for one in point.rounds]
        if other is None:
            return Figure(case + (", with sorting" if sorts else ""), "M events/s", rates, self.target)
        below = [one.events / one.seconds / 1e6 for one in other.rounds]
        ratios = [rate / under for rate, under in zip(rates, below, strict=False)]
        return Figure(f"{case} : {other.program} at {other.x:,g}", "×", ratios, self.target)


@dataclass(frozen=True)
class Experiment:
    """Programs that answer the same questions, one for each x, from easy to hard."""

    name: str
    title: str
    source: str  # the figure of a paper, or what is shown beyond them
    x: str  # what is varied
    xs: Sequence[float]
    programs: Sequence[str]
    ask: Callable[[float], Ask]
    quick: int = 2  # so many x of each program for a quick run
    theory: Mapping[str, str] = field(default_factory=dict)  # of a program, how its time grows with x
    claims: Sequence[Claim] = ()
    seconds: float = SECONDS
    rounds: int = ROUNDS
    only: Mapping[str, Sequence[float]] = field(default_factory=dict)  # of a program that has not all x: those it has
    asks: Mapping[str, Callable[[float], Ask]] = field(default_factory=dict)  # and its own questions

    def xs_of(self, program: str) -> Sequence[float]:
        """Where a program is measured."""
        return self.only.get(program, self.xs)

    def asked(self, program: str, x: float) -> Ask:
        """What it is asked there."""
        return self.asks.get(program, self.ask)(x)

    @property
    def query(self) -> str:
        """What is asked at the first x, with the programs before it where they are not all asked the same."""
        asked: dict[str, list[str]] = {}
        for program in self.programs:
            first = self.asked(program, self.xs_of(program)[0])
            size = f": {first.shape['size']:,} events" if program in self.asks else ""
            asked.setdefault(f"{size}\n{first.query.strip()}", []).append(program)
        if len(asked) == 1:
            return self.asked(self.programs[0], self.xs_of(self.programs[0])[0]).query
        return "\n\n".join(f"-- {', '.join(programs)}{query}" for query, programs in asked.items())


@dataclass(frozen=True)
class Point:
    """What a program took at an x, round by round."""

    program: str
    x: float
    rounds: tuple[Measured, ...]

    @property
    def lost(self) -> str | None:
        """Why it did not finish."""
        return next((one.lost for one in self.rounds if one.lost), None)

    @property
    def seconds(self) -> float:
        """The median of all rounds."""
        return median(one.seconds for one in self.rounds)

    def as_json(self) -> dict[str, Any]:
        """For the file of results."""
        last, taken = self.rounds[-1], [one.seconds for one in self.rounds]
        about = {
            "program": self.program, "x": self.x, "events": last.events, "lost": self.lost, "rounds": len(self.rounds)
        }  # fmt: skip
        if self.lost:
            return about
        memory = max((one.memory for one in self.rounds if one.memory is not None), default=None)
        more = {"seconds": median(taken), "low": min(taken), "high": max(taken), "memory": memory}
        facts = asdict(last)
        return about | more | {name: facts[name] for name in ("fit_seconds", "stored", "links", "rows", "log10")}


class DisagreementError(Exception):
    """Two programs gave different answers to the same question."""


def progress(text: str) -> None:
    """Say what is being done."""
    print(text, file=sys.stderr, flush=True)


def compare(experiment: Experiment, rounds: int | None = None, *, quick: bool = False) -> dict[str, Any]:
    """Measure an experiment: programs take turns, and one that did not finish is not tried on what is harder."""
    budget, rounds = Budget(experiment.seconds, MEMORY), rounds or experiment.rounds
    points: dict[tuple[str, float], Point] = {}
    lost: dict[str, str] = {}
    for x in experiment.xs:
        asks = {
            program: experiment.asked(program, x)
            for program in experiment.programs
            if x in experiment.xs_of(program)[: experiment.quick if quick else None]
        }
        slow = set()
        for number in range(rounds):
            for program in list(asks)[:: -1 if number % 2 else 1]:
                if program in lost or program in slow:
                    continue
                taken = measure(program, asks[program], budget)
                if taken.fit_seconds + taken.seconds > ONCE:
                    slow.add(program)
                before = points.get((program, x), Point(program, x, ()))
                points[program, x] = replace(before, rounds=(*before.rounds, taken))
                progress(f"  {experiment.x} {x:,g}, {program}: {taken.lost or f'{taken.seconds:.4g} s'}")
                if taken.lost:
                    lost[program] = taken.lost
        for ask in asks.values():
            alike = [points.get((program, x)) for program, other in asks.items() if other == ask]
            _check([point for point in alike if point and not point.lost], experiment)
    figures = [figure for claim in experiment.claims if (figure := claim.figure(points)) is not None]
    return {
        "title": experiment.title,
        "source": experiment.source,
        "x": experiment.x,
        "query": experiment.query,
        "programs": list(experiment.programs),
        "seconds": experiment.seconds,
        "rounds": rounds,
        "points": [point.as_json() for point in points.values()],
        "growth": [
            {"program": program, "theory": theory} | growth(list(points.values()), program, theory)
            for program, theory in experiment.theory.items()
        ],
        "figures": [figure.as_json() for figure in figures],
    }


def _check(points: Sequence[Point], experiment: Experiment) -> None:
    for one in points[1:]:
        if not one.rounds[0].agrees(points[0].rounds[0]):
            raise DisagreementError(
                f"{experiment.name}, {experiment.x} {one.x:,g}: {points[0].program} and {one.program} differ: "
                f"{points[0].rounds[0]} and {one.rounds[0]}"
            )


def growth(points: Sequence[Point], program: str, theory: str) -> dict[str, Any]:
    """How a program's time grew over its hardest points, in the form that theory gives it, and the x of these points.

    >>> def took(seconds):
    ...     return [Point("p", x, (Measured(1, seconds=seconds(x)),)) for x in (10, 20, 40, 80)]
    >>> growth(took(lambda x: 3 * x**2), "p", "x²")
    {'fitted': 'x^2.00', 'over': [10, 20, 40, 80]}
    >>> growth(took(lambda x: 2 ** (x / 8)), "p", "exponential")["fitted"]
    '2^(x/8)'
    """
    fitted = [one for one in points if one.program == program and not one.lost and one.seconds >= LEAST][-FITTED:]
    xs, logs = [one.x for one in fitted], [math.log(one.seconds) for one in fitted]
    return {"fitted": _fitted(xs, logs, theory), "over": xs}


def _fitted(xs: Sequence[float], logs: Sequence[float], theory: str) -> str:
    if len(xs) < FEWEST:
        return TOO_FEW
    if theory == EXPONENTIAL:
        slope = linear_regression(xs, logs).slope
        if slope <= 0:
            return "flat"
        twice = math.log(2) / slope  # so much more doubles the time
        return f"2^(x/{twice:,.0f})" if twice >= 100 else f"2^(x/{twice:.3g})"
    if max(xs) < SPAN * min(xs):
        return TOO_FEW
    return f"x^{linear_regression(list(map(math.log, xs)), logs).slope:.2f}"
