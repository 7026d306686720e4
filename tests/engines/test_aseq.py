"""A-Seq beyond its rows: the paper's examples counter by counter, its errors put right, Kleene operators, refusals."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given

from pipeline.approximate import Approximate
from pipeline.engines import aseq
from pipeline.engines.aseq import Aseq, Counting
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Cost, Limits, Value
from pipeline.engines.kernels import aseq as kernel
from pipeline.engines.kernels.status import DONE
from pipeline.engines.kernels.windows import PART
from pipeline.errors import CannotRunError, DidNotFinishError
from pipeline.events import Events
from pipeline.query.check import check
from pipeline.run import fit_events, run_rows
from tests.engines.test_against_oracle import many, same
from tests.engines.test_online import one_type
from tests.oracle import Event, Row, answer
from tests.oracle_query import Atom, Not, Or, Pattern, Query, Repeat, Seq
from tests.product import as_columns, product_rows
from tests.strategies import PREFIXES, cases, stream

GOLDEN = sorted((Path(__file__).parent / "golden").glob("aseq-*.txt"))


def rows_of(query: str, events: list[Event], cost: Cost | None = None) -> list[Row]:
    checked = check(query)
    return run_rows(checked, Aseq(), fit_events(checked, as_columns(events), "events"), Limits(), cost or Cost())


# ---- The paper's examples ----


def sets_after_events(query: str, events: list[Event]) -> Iterator[tuple[int, list[tuple[int, list[list[int]]]]]]:
    """Takes single steps: per event its number in the stream, and of each set its beginning and rounds of counters.

    An event has had its effect once its time is over; so that the last one has, too, a partition needs one more.
    """
    checked = check(query)
    run = Counting(checked, fit_events(checked, as_columns(events), "events").stream, Limits(), Cost())
    register, plan, work, seen = run.register, run.plan, run.work, -1
    while True:
        part = register[PART]
        if kernel.count(run.windows, plan, work, run.buffer.rows, run.pool.cells, run.weights, 1) == DONE:
            return
        at = int(register[kernel.AT])
        if register[kernel.TIE] != at or at - 1 == seen:
            continue
        seen = at - 1
        if register[PART] == part:
            alive = range(register[kernel.OLDEST], register[kernel.NEWEST] + 1)
            yield plan.event[seen], [_counters(run, number % len(work.begin)) for number in alive]


def _counters(run: Counting, slot: int) -> tuple[int, list[list[int]]]:
    first = [kernel.round_cell(run.plan, slot, number) for number in range(run.work.deep[slot])]
    counters = np.arange(run.plan.counters)
    return int(run.work.begin[slot]), [list(run.pool.columns(cell + counters)[0]) for cell in first]


def table(query: str, events: list[Event]) -> Iterator[str]:
    """The counters after each event, and the results, as the golden files have them; partitions are those of g."""
    checked = check(query)
    types = [state.types[0] for state in checked.automaton.states]
    within, by_group = int(checked.tree.within.size), lambda one: one.attrs.get("g", 0)
    ends = [Event(events[-1].time + 1, types[0], {"g": group}) for group in {by_group(one) for one in events}]
    lined_up = sorted([*events, *ends], key=by_group)
    prefixes = ["".join(types[: at + 1]) for at in range(len(types))]
    yield " ".join([f"{'event':6}{'from':>5}{'until':>7}", *(f"{prefix:>5}" for prefix in prefixes)])
    for at, sets in sets_after_events(query, [*events, *ends]):
        name = f"{lined_up[at].type.lower()}{lined_up[at].time}"
        for place, (counters,) in sets:
            yield " ".join([f"{name:6}{place:5}{place + within:7}", *(f"{counter:5}" for counter in counters)])
            name = ""
        if lined_up[at].type == types[-1]:
            result = sum(counters[-1] for _, (counters,) in sets)
            assert result == built(query, events[: events.index(lined_up[at]) + 1])
            yield f"       result {result}"


def built(query: str, events: list[Event]) -> object:
    """The result of the last event, from the trends themselves."""
    rows = product_rows(query, events, "sase")
    mine = [row for row in rows if row.get("g") in (None, events[-1].attrs.get("g"))]
    return mine[-1]["COUNT(*)"] if mine else 0


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_papers_examples(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    query, events, expected = f"RETURN COUNT(*) {lines[0]}", stream(lines[1]), lines[3:]
    assert list(table(query, events)) == expected


def test_a_kleene_pattern_is_counted_length_by_length() -> None:
    *_, (_, sets) = sets_after_events("RETURN COUNT(*) PATTERN A+ WITHIN 9 s SLIDE 9 s", stream("a1 a2 a3 a4 a5"))
    ((_, rounds),) = sets
    assert rounds == [[comb(4, length)] for length in range(1, 5)]


# ---- Where the paper's algorithm and its definitions disagree ----


def test_sums_are_not_scaled() -> None:
    query = "RETURN SUM(C.x), AVG(C.x) PATTERN SEQ(A, C, D) WITHIN 9 s SLIDE 9 s"
    assert rows_of(query, stream("a1 c2{x=10} d3 c4{x=1} d5"))[0]["SUM(C.x)"] == 21


def test_only_events_of_finished_trends_count() -> None:
    query = "RETURN MIN(C.x), MAX(C.x) PATTERN SEQ(A, C, D) WITHIN 9 s SLIDE 9 s"
    (row,) = rows_of(query, stream("c0{x=0} a1 c2{x=10} d3 c4{x=99}"))
    assert (row["MIN(C.x)"], row["MAX(C.x)"]) == (10, 10)


@pytest.mark.parametrize(
    ("pattern", "events", "trends"),
    [
        ("SEQ(A, B+, !C, D)", "a1 b2 b3 b4 c5 b6 b7 b8 d9", 56),
        ("SEQ(A, !C, B)", "a1 c1 b2", 1),  # not strictly between the two
        ("SEQ(A, !C, B)", "a1 c2 b2", 1),
        ("SEQ(A, !C, B)", "a1 c2 b3 a4 b5", 1),
        ("SEQ(A, B)", "a1 b1 a2 b2 b3", 3),  # events of one time are not adjacent
        ("SEQ(A, OR(!B, !C), D)", "a1 b2 d3 c4 d5", 1),  # either may come, not both
        ("SEQ(A, OR(SEQ(!B, !C), !E), D)", "a1 b2 d3 e4 d5", 1),
        ("SEQ(A, !B+, C)", "a1 c2 b3 c4", 1),  # a single b is a match of B+
        ("SEQ(A, !OR(B, D), C)", "a1 c2 d3 c4", 1),
        ("(SEQ(A+, B))+", "a1 b2 a3 a4 c5 b6 a7 b8", 43),
    ],
)
def test_trends_by_definition(pattern: str, events: str, trends: int) -> None:
    query = f"RETURN COUNT(*) PATTERN {pattern} WITHIN 100 s SLIDE 100 s"
    (row,) = rows_of(query, stream(events))
    assert row["COUNT(*)"] == trends
    assert [row] == product_rows(query, stream(events), "sase")


@pytest.mark.parametrize(
    ("query", "events", "rows"),
    [
        # The second window begins between two events of one time, after the negated one.
        ("PATTERN SEQ(!B, A) WITHIN 2 events SLIDE 1 event", "b1 a1 a2", [(0, 1), (1, 2), (2, 1)]),
        # No trend ends at b3, so that there is no row, although the other partition's trend lies in that window.
        ("PATTERN SEQ(A, B) WHERE [g] WITHIN 9 s", "a1{g=1} b2{g=1} b3{g=2}", [(-7, 1)]),
        # The second partition has no part in the row at a1, which comes before all of it.
        ("PATTERN A WHERE [g] WITHIN 5 s", "a1{g=1} a3{g=2}", [(-4, 1), (-2, 2)]),
    ],
)
def test_rows_by_definition(query: str, events: str, rows: list[tuple[int, int]]) -> None:
    found = rows_of(f"RETURN COUNT(*) {query}", stream(events))
    assert [(row["window_start"], row["COUNT(*)"]) for row in found] == rows
    assert found == product_rows(f"RETURN COUNT(*) {query}", stream(events), "sase")


# ---- Random queries ----


def negated(pattern: Pattern) -> Iterator[Pattern]:
    """What the negations of a pattern negate."""
    match pattern:
        case Not(part):
            yield part
        case Seq(parts) | Or(parts):
            for part in parts:
                yield from negated(part)
        case Repeat(part):
            yield from negated(part)


@many
@given(cases(PREFIXES))
def test_refuses_no_more_than_it_must(case: tuple[Query, list[Event]]) -> None:
    query, events = case
    refusal = Aseq().refuses(check(str(query)))
    negations = list(negated(query.pattern))
    event(refusal.reason if refusal else "runs")
    if refusal is not None:
        assert negations
        assert query.window.slide is None or not all(isinstance(one, Atom) for one in negations)
    elif not negations:
        assert same(product_rows(str(query), events, "aseq"), answer(query, events))


def about_the_same(query: str, events: Events, limits: Limits) -> list[tuple[Value, Value]]:
    """Compare with COGRA's exact numbers; those of both engines, side by side."""
    checked = check(query)
    fitted = fit_events(checked, events, "events")
    mine = sorted(Aseq().run(checked, fitted.stream, limits, Cost()))
    exact = sorted(Cogra().run(checked, fitted.stream, Limits(), Cost()))
    assert [row[:3] for row in mine] == [row[:3] for row in exact]
    pairs = [pair for a, b in zip(mine, exact, strict=True) for pair in zip(a.values, b.values, strict=True)]
    for a, b in pairs:
        assert (a is None) == (b is None)
        assert a is None or float(a) == pytest.approx(float(b), rel=1e-12, abs=1e-9)
    return pairs


@pytest.mark.parametrize("window", ["WITHIN 170 s SLIDE 170 s", "WITHIN 170 s SLIDE 60 s", "WITHIN 170 s"])
def test_a_window_with_floats_leaves_the_others_exact(window: str) -> None:
    events = one_type([1, 2] * 170)
    events = replace(events, time=np.where(events.time < 300, events.time, events.time * 100))
    pairs = about_the_same(f"RETURN COUNT(*), MAX(A.x) PATTERN A+ {window}", events, Limits(bits=1))
    inexact = [isinstance(a, Approximate) for a, _ in pairs]
    assert any(inexact)
    assert not any(a for a, (_, b) in zip(inexact, pairs, strict=True) if b < 2**100)


# ---- Kleene operators ----


@pytest.mark.parametrize("window", ["40 s SLIDE 40 s", "40 s SLIDE 9 s", "40 s", "50 events"])
@pytest.mark.parametrize("pattern", ["SEQ(A, B+, C)", "(SEQ(A+, B))+", "SEQ(A*, B, C{2,})", "SEQ(A, OR(B+, !C), D+)"])
def test_lengths_add_up_to_cogras_numbers(pattern: str, window: str) -> None:
    draw = random.Random(3)
    times = sorted(draw.randrange(150) for _ in range(250))
    events = [Event(time, draw.choice("ABCD"), {"x": draw.randrange(9), "g": draw.randrange(3)}) for time in times]
    returns = "g, COUNT(*), COUNT(B), SUM(B.x), AVG(B.x), MIN(B.x), MAX(B.x)"
    query = f"RETURN {returns} PATTERN {pattern} WHERE B.x > 0 GROUP-BY g WITHIN {window}"
    rows = rows_of(query, events)
    assert rows
    assert rows == product_rows(query, events, "cogra")


def test_refuses_lengths_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aseq, "MAX_LENGTH", 4)
    query = "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s SLIDE 10 s"
    events = stream("a0 b1 b2 b2 b3 b4 b11 b12 b13")
    assert rows_of(query, events) == product_rows(query, events, "cogra")
    with pytest.raises(CannotRunError, match=r"PATTERN: Kleene operators may take 5 events .* up to 4 .*\n.* cogra"):
        rows_of(query, [*events, *stream("b14 b15")])
    assert CannotRunError.exit_code == 3


# ---- Refusals, cost, limits ----


@pytest.mark.parametrize(
    ("query", "clause", "reason"),
    [
        ("PATTERN SEQ(A, B) SEMANTICS contiguous WITHIN 5 s", "SEMANTICS", "skip-till-any-match only, not contiguous"),
        ("PATTERN SEQ(A, B) WHERE A.x < B.x WITHIN 5 s", "WHERE", "A.x < B.x joins neighbours"),
        ("PATTERN A+ WHERE A.x < NEXT(A).x WITHIN 5 s", "WHERE", "joins neighbours"),
        ("PATTERN SEQ(A, B, C) WHERE A.x < C.x WITHIN 5 s", "WHERE", "A.x < C.x joins events that are not neighbours"),
        ("PATTERN SEQ(A, !SEQ(B, C), D) WITHIN 5 s", "PATTERN", "single events match, which SEQ(B, C) is not"),
        ("PATTERN SEQ(A, !OR(B, SEQ(C, E)), D) WITHIN 5 s", "PATTERN", "single events match"),
        ("PATTERN SEQ(A, !B, C) WHERE A.x = B.x WITHIN 5 s", "PATTERN", "depends on the trend around it"),
        ("PATTERN SEQ(A, !B) WITHIN 5 s", "WITHIN", "judged for each trend"),
        (f"PATTERN SEQ(A, OR({', '.join(f'!N{n}' for n in range(9))}), B) WITHIN 5 s", "PATTERN", "more than 8 ways"),
        ("PATTERN A WITHIN 1000 days SLIDE 1 ms", "WITHIN", "more than 10,000,000 windows"),
    ],
)
def test_refuses_with_the_reason(query: str, clause: str, reason: str) -> None:
    refusal = Aseq().refuses(check(f"RETURN COUNT(*) {query}"))
    assert refusal is not None
    assert refusal.clause == clause
    assert reason in refusal.reason


@pytest.mark.parametrize(
    "query",
    [
        "PATTERN SEQ(A, B?, OR(C, D)) WITHIN 5 s",
        "PATTERN SEQ(!A, B, !C, D, !E) WHERE C.x > 1 AND B.x = 2 WITHIN 5 events SLIDE 2 events",
        "PATTERN SEQ(A, !SEQ(B, C*), D) WITHIN 5 s",
        "PATTERN SEQ(A, !B, A) WHERE [g] GROUP-BY h WITHIN 5 s",
    ],
)
def test_runs_what_prefix_counters_can(query: str) -> None:
    assert Aseq().refuses(check(f"RETURN COUNT(*) {query}")) is None


@pytest.mark.parametrize(
    ("query", "counters"),
    [
        ("PATTERN SEQ(A, B, C) WITHIN 4 s SLIDE 4 s", 3),
        ("PATTERN SEQ(A, B, C) WITHIN 4 s SLIDE 2 s", 6),
        ("PATTERN SEQ(A, B, C) WITHIN 4 s", 9),  # three STARTs at once: at 1, 2 and 4
        ("PATTERN SEQ(A, B, C) WHERE [g] WITHIN 4 s SLIDE 4 s", 3),
        ("PATTERN A+ WITHIN 6 s SLIDE 6 s", 3),  # one a length
    ],
)
def test_says_how_many_counters_it_kept(query: str, counters: int) -> None:
    cost = Cost()
    rows_of(f"RETURN COUNT(*) {query}", stream("a1{g=1} a2{g=1} b3{g=1} a4{g=1} a4{g=2} c5{g=1} a9{g=1}"), cost=cost)
    assert (cost.peak_stored, cost.events, cost.trends) == (counters, 7, 0)


def test_gives_up_after_timeout() -> None:
    query = check("RETURN COUNT(*) PATTERN A+ WITHIN 900 s")
    fitted = fit_events(query, one_type([1] * 2000), "events")
    with pytest.raises(DidNotFinishError, match=r"of 2,000 events counted \(--timeout\)"):
        Aseq().run(query, fitted.stream, Limits(seconds=0.5), Cost())
