"""How time grows with events, WITHIN / SLIDE, groups and the length of a pattern: every engine, under all semantics.

A program that builds every trend is as slow on tens of events as one that builds none on millions. So each has its own
x and, where x is not the events, its own stream; only those that have the same one are compared in their answers.
Theory is of the steps on one core: n are the events, which do not vary unless they are x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.harness import EXPONENTIAL, Experiment
from benchmarks.points import Ask
from benchmarks.queries import ANY, CONTIGUOUS, FALLING, NEXT, ask, seconds, sequence
from benchmarks.variants import SEPARATE
from pipeline.query.tree import Semantics

MILLION = 1_000_000
PARTITIONS = 50
THREE = "SEQ(Stock R, Stock S, Stock T)"  # counts of few bits, so that what grows is the number of steps
FALL = "R.price > S.price AND S.price > T.price"
TWO_STEP = ("sase", "fla", "prc")
SHOWN = "growth, and what theory says of it"
CONSTANT = "1"
SHARED = "1, then x"  # windows share what builds trends, or finds them; then each adds up its own


class Line(NamedTuple):
    """One program, or several that are alike."""

    programs: Sequence[str]
    theory: str
    xs: Sequence[float]
    ask: Callable[[float], Ask]


def _growth(name: str, title: str, x: str, *lines: Line) -> Experiment:
    each = [(program, line) for line in lines for program in line.programs]
    return Experiment(
        f"growth-{name}", title, SHOWN, x, sorted({one for line in lines for one in line.xs}),
        [program for program, _ in each], lines[0].ask, quick=1, rounds=2,
        theory={program: line.theory for program, line in each},
        only={program: line.xs for program, line in each},
        asks={program: line.ask for program, line in each},
    )  # fmt: skip


def _letters(size: float, within: float | None = None, overlap: float = 1) -> Ask:
    within = within or size
    query = ask(sequence(3), seconds(within), seconds(within / overlap))
    return Ask(query, "random_letters", {"size": size, "types": 3})


def _kleene(events: float) -> Ask:
    size = PARTITIONS * events
    return Ask(ask("Stock S+", seconds(size), where="[company]"), "trades", {"size": size, "companies": PARTITIONS})


def _falling(size: float, within: float | None = None, overlap: float = 1) -> Ask:
    within = within or size
    query = ask(THREE, seconds(within), seconds(within / overlap), FALL)
    return Ask(query, "trades", {"size": size, "companies": 1})


def _runs(semantics: Semantics, size: float) -> Ask:
    return Ask(ask("A+", seconds(size), semantics=semantics), "random_letters", {"size": size, "types": 1})


def _sliding(semantics: Semantics, size: int, within: int, overlap: float) -> Ask:
    query = ask("Stock S+", seconds(within), seconds(within / overlap), FALLING, semantics)
    return Ask(query, "trades", {"size": size, "companies": 1})


def _grouped(key: str, pattern: str, semantics: Semantics, size: int) -> str:
    query = ask(pattern, seconds(size), None, f"[{key}]", semantics)
    return query.replace("RETURN", f"RETURN {key},").replace(" WITHIN", f" GROUP-BY {key} WITHIN")


def _keyed(size: int, groups: float) -> Ask:
    shape = {"size": size, "types": 3, "first": round(groups)}
    return Ask(_grouped("attr1", sequence(3), ANY, size), "attributed_letters", shape)


def _companies(semantics: Semantics, size: int, groups: float) -> Ask:
    query = _grouped("company", "Stock S+", semantics, size)
    return Ask(query, "trades", {"size": size, "companies": round(groups)})


def _length(semantics: Semantics, size: int, within: int, length: float) -> Ask:
    """Each event can be any of the sequence, so that there is as much to do for each."""
    pattern = f"SEQ({', '.join(f'A A{at}' for at in range(round(length)))})"
    return Ask(ask(pattern, seconds(within), semantics=semantics), "random_letters", {"size": size, "types": 1})


ONE_BY_ONE = ((NEXT, "next", "next-match"), (CONTIGUOUS, "contiguous", "contiguous"))
OVERLAPS = [4, 8, 16, 32]
LENGTHS = [4, 8, 16, 24]

EXPERIMENTS = [
    _growth(
        "events-any", "events of a window, a sequence of three, any-match", "events",
        Line(TWO_STEP, "x³", [500, 700, 1_000, 1_400], _letters),
        Line(["aseq"], "x", [400_000, 800_000, 1_600_000, 3_200_000], _letters),
        Line(["greta"], "x²", [15_000, 20_000, 30_000, 50_000], _letters),
        Line(["cogra", "pane"], "x", [8 * MILLION, 16 * MILLION, 24 * MILLION, 32 * MILLION], _letters),
    ),
    _growth(
        "events-kleene", f"events of each of {PARTITIONS} partitions, a Kleene closure, any-match", "events",
        Line(["sase"], EXPONENTIAL, [15, 16, 17, 18], _kleene),
        Line(["aseq"], "x² additions", [400, 500, 700, 1_000], _kleene),
        Line(["greta"], "x² additions", [1_000, 1_500, 2_000, 3_000], _kleene),
        Line(["cogra", "pane"], "x additions", [30_000, 40_000, 50_000, 60_000], _kleene),
    ),
    _growth(
        "events-comparison", "events of a window, three with comparisons between neighbours, any-match", "events",
        Line(TWO_STEP, "x³", [300, 400, 500, 700], _falling),
        Line(["greta", "cogra"], "x²", [3_000, 4_000, 6_000, 9_000], _falling),
        Line(["pane"], "x log x", [100_000, 150_000, 200_000, 300_000], _falling),
    ),
    *(
        _growth(
            f"events-{name}", f"events of a window, a Kleene closure, {title}", "events",
            Line(["sase"], "x²", [1_500, 2_000, 3_000, 4_500], partial(_runs, semantics)),
            Line(["cogra", "pane"], "x", [3 * MILLION, 6 * MILLION, 10 * MILLION, 16 * MILLION],
                 partial(_runs, semantics)),
        )
        for semantics, name, title in ONE_BY_ONE
    ),
    _growth(
        "overlap-any", "windows that an event is in, a sequence of three, any-match", "WITHIN / SLIDE",
        Line(TWO_STEP, SHARED, [20, 50, 100, 200], partial(_letters, 800, 400)),
        Line(["aseq"], "x", OVERLAPS, partial(_letters, 200_000, 20_000)),
        Line(["greta"], "x", OVERLAPS, partial(_letters, 50_000, 1_000)),
        Line(["cogra"], "x", OVERLAPS, partial(_letters, 2 * MILLION, 200_000)),
        Line(["pane"], CONSTANT, [1, 4, 16, 64], partial(_letters, 8 * MILLION, 800_000)),
    ),
    _growth(
        "overlap-comparison", "windows that an event is in, three with comparisons between neighbours, any-match",
        "WITHIN / SLIDE",
        Line(["sase"], SHARED, [20, 50, 100, 200], partial(_falling, 400, 200)),
        Line(["greta", "cogra"], "x", OVERLAPS, partial(_falling, 3_000, 500)),
        Line([SEPARATE], "x", OVERLAPS, partial(_falling, 40_000, 4_000)),
        Line(["pane"], SHARED, [4, 16, 64, 128], partial(_falling, 50_000, 5_000)),
    ),
    *(
        _growth(
            f"overlap-{name}", f"windows that an event is in, a comparison between neighbours, {title}",
            "WITHIN / SLIDE",
            Line(["sase"], SHARED, [50, 100, 150, 200], partial(_sliding, semantics, 200_000, 20_000)),
            Line(["cogra"], "x", OVERLAPS, partial(_sliding, semantics, 150_000, 15_000)),
            Line(["pane"], CONSTANT, [1, 4, 16, 64], partial(_sliding, semantics, 10 * MILLION, MILLION)),
        )
        for semantics, name, title in ONE_BY_ONE
    ),
    _growth(
        "groups-any", "groups of the same events, a sequence of three, any-match", "groups",
        Line(TWO_STEP, "x⁻²", [2, 3, 4, 5], partial(_keyed, 1_500)),
        Line(["aseq"], CONSTANT, [10, 100, 1_000, 10_000], partial(_keyed, MILLION)),
        Line(["greta"], "x⁻¹", [8, 15, 30, 50], partial(_keyed, 100_000)),
        Line(["cogra", "pane"], CONSTANT, [10, 100, 1_000, 10_000], partial(_keyed, 4 * MILLION)),
    ),
    *(
        _growth(
            f"groups-{name}", f"groups of the same events, a Kleene closure, {title}", "groups",
            Line(["sase"], "x⁻¹", [10, 20, 50, 100], partial(_companies, semantics, 12_000)),
            Line(["cogra", "pane"], CONSTANT, [10, 100, 1_000, 10_000], partial(_companies, semantics, 4 * MILLION)),
        )
        for semantics, name, title in ONE_BY_ONE
    ),
    _growth(
        "length-any", "length of a sequence, any-match", "length",
        Line(TWO_STEP, EXPONENTIAL, [5, 6, 7, 8], partial(_length, ANY, 34, 34)),
        Line(["greta"], "x", LENGTHS, partial(_length, ANY, 100_000, 100)),
        Line(["aseq"], "x", LENGTHS, partial(_length, ANY, MILLION // 2, 100)),
        Line(["cogra", "pane"], "x", LENGTHS, partial(_length, ANY, 2 * MILLION, 100)),
    ),
    *(
        _growth(
            f"length-{name}", f"length of a sequence, {title}", "length",
            Line(["sase"], "x", LENGTHS, partial(_length, semantics, 150_000, 100)),
            Line(["cogra", "pane"], "x", LENGTHS, partial(_length, semantics, 2 * MILLION, 100)),
        )
        for semantics, name, title in ONE_BY_ONE
    ),
]  # fmt: skip
