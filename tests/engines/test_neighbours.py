"""Skip-till-next-match and contiguous with conditions between neighbours, against the oracle and against COGRA."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from pipeline.approximate import Approximate
from pipeline.engines import compiled, measures, neighbours
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.kernels import numbers
from pipeline.engines.neighbours import NeighbourAggregation, refusal
from pipeline.engines.stream import Stream
from pipeline.errors import DidNotFinishError
from pipeline.events import Clock, Events, Numbers, Texts, TimeStyle
from pipeline.query.check import check
from pipeline.query.checked import Query as Checked
from pipeline.run import fit_events
from tests.engines.test_against_oracle import many, report, same
from tests.oracle import Event, answer
from tests.oracle_query import Query
from tests.product import product_rows
from tests.strategies import SEMANTICS, Shape, cases

NEIGHBOURS = Shape(semantics=SEMANTICS[1:], negations=0, conditions=("local", "pair", "next", "next"))


class Neighbours:
    """The aggregation alone, as an engine."""

    name = source = idea = can = "neighbours"

    def refuses(self, query: Checked) -> Refusal | None:
        reason = refusal(query)
        return Refusal("PATTERN", reason) if reason else None

    def run(self, query: Checked, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        return NeighbourAggregation(query, stream, limits, cost).rows()


def agrees_with_oracle() -> None:
    @many
    @given(cases(NEIGHBOURS))
    def compare(case: tuple[Query, list[Event]]) -> None:
        query, events = case
        if query.window.slide is None:
            query = replace(query, window=replace(query.window, slide=1))
        if refusal(check(str(query))) is None:
            expected, rows = answer(query, events), product_rows(str(query), events, Neighbours())
            assert same(rows, expected), report(query, events, "neighbours", rows, expected)

    compare()


def test_rows_are_the_oracles() -> None:
    agrees_with_oracle()


def test_compiled_code_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", 1)
    agrees_with_oracle()


def test_few_cells_and_rows_to_begin_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "CELLS", 1)
    monkeypatch.setattr(neighbours, "ROW_BUFFER", 1)
    agrees_with_oracle()


def test_digits_that_overflow_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (measures, numbers):
        monkeypatch.setattr(module, "BITS", 2)
        monkeypatch.setattr(module, "MASK", 3)
    monkeypatch.setattr(numbers, "BASE", 4.0)
    monkeypatch.setattr(numbers, "LIMIT", 32)
    monkeypatch.setattr(neighbours, "CELLS", 1)
    agrees_with_oracle()


def random_events(size: int, seed: int, *, ties: int) -> Events:
    """Events of types A and B, up to `ties` or so at a time, with ranks x and y, null now and then, and a text h."""
    some = np.random.default_rng(seed)

    def column() -> Numbers:
        return Numbers(some.integers(0, 50, size), some.random(size) < 0.05)

    return Events(
        time=np.cumsum(some.integers(0, 2 * ties, size) < 2),
        clock=Clock(1, TimeStyle.INTEGER),
        types=(Texts(some.integers(0, 2, size).astype(np.int32), ("A", "B")),),
        attributes={
            "x": column(),
            "y": column(),
            "g": Numbers(some.integers(0, 3, size), np.zeros(size, bool)),
            "h": Texts(some.integers(-1, 3, size).astype(np.int32), ("p", "q", "r")),
            "wide": Numbers(some.integers(0, 50, size) + 2**60, np.zeros(size, bool)),
        },
        known=("x", "y", "g", "h", "wide"),
        open_schema=False,
    )


RETURN = "COUNT(*), COUNT(A), SUM(A.y), AVG(A.y), MIN(A.y), MAX(A.y)"
CONDITIONS = [
    "A.x > NEXT(A).x",
    "A.x <= NEXT(A).x",
    "A.x >= NEXT(A).y AND A.x < B.x",
    "A.x + 1 < NEXT(A).y * 2 AND -A.x < B.y - 3",
    "A.h = NEXT(A).h",
    "A.h = NEXT(A).h AND A.x < NEXT(A).x AND A.h = B.h",
    "A.h = NEXT(A).h AND A.g = NEXT(A).g AND A.x >= NEXT(A).x AND A.g = B.x",
    "A.h < NEXT(A).h AND A.h != B.h",
    "A.wide < NEXT(A).wide AND A.wide >= B.wide",
    "A.x < NEXT(A).x AND A.y > NEXT(A).y",
    "(A.x < NEXT(A).x OR A.h = NEXT(A).h) AND A.x + B.x > 50",
    "NOT A.x < NEXT(A).x AND NOT A.y > B.y",
]
WINDOWS = [
    "100 s SLIDE 100 s",
    "60 s SLIDE 1 s",
    "50 s SLIDE 30 s",
    "90 events SLIDE 90 events",
    "70 events SLIDE 4 events",
]


def by_both(text: str, events: Events, **limits: Any) -> tuple[list[Row], list[Row]]:
    query = check(text)
    assert refusal(query) is None
    stream = fit_events(query, events, "events").stream
    return sorted(Neighbours().run(query, stream, Limits(**limits), Cost())), sorted(
        Cogra().run(query, stream, Limits(), Cost())
    )


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("semantics", SEMANTICS[1:])
def test_like_cogra_on_longer_streams(where: str, semantics: str) -> None:
    found = 0
    for number, window in enumerate(WINDOWS):
        pattern = ["(SEQ(A+, B?))+", "SEQ(A, A, A?, B)", "SEQ(A{2,4}, B*)"][number % 3]
        keys, group = [("", ""), ("[g] AND ", "GROUP-BY g")][number % 2]
        text = f"RETURN {RETURN} PATTERN {pattern} SEMANTICS {semantics} WHERE {keys}{where} {group} WITHIN {window}"
        rows, expected = by_both(text, random_events(1500, number, ties=1 + number % 3))
        assert rows == expected, text
        found += len(rows)
    assert found


def rising(size: int) -> Events:
    """Two events of type A at each time, with greater x at later times."""
    events = random_events(size, 1, ties=1)
    x = Numbers(np.arange(size) // 2, np.zeros(size, bool))
    return replace(
        events, time=np.arange(size) // 2, types=(Texts(np.zeros(size, np.int32), ("A",)),), attributes={"x": x}
    )


@pytest.mark.parametrize("semantics", SEMANTICS[1:])
def test_counts_beyond_the_budgets_are_floats(semantics: str) -> None:
    text = (
        f"RETURN COUNT(*), SUM(A.x) PATTERN A+ SEMANTICS {semantics} WHERE A.x < NEXT(A).x WITHIN 1 week SLIDE 1 week"
    )
    ((row,), (expected,)) = by_both(text, rising(2000), bits=100)
    for mine, exact in zip(row.values, expected.values, strict=True):
        assert isinstance(mine, Approximate)
        assert float(mine / exact) == pytest.approx(1, rel=1e-12)


def waiting(size: int) -> Events:
    """Rising x, then one low one, which is what extends them all."""
    events = random_events(size, 1, ties=1)
    x = Numbers(np.append(np.arange(1, size), 0), np.zeros(size, bool))
    return replace(events, time=np.arange(size), types=(Texts(np.zeros(size, np.int32), ("A",)),), attributes={"x": x})


NEXT = "RETURN COUNT(*), COUNT(A) PATTERN A+ SEMANTICS skip-till-next-match WHERE A.x > NEXT(A).x"


def test_as_many_aggregates_as_events_wait() -> None:
    query = check(f"{NEXT} WITHIN 1 week SLIDE 1 week")
    stream, cost = fit_events(query, waiting(50_000), "events").stream, Cost()
    (row,) = Neighbours().run(query, stream, Limits(), cost)
    assert row.values == (2 * 50_000 - 1, 3 * 50_000 - 2)
    assert 50_000 <= cost.peak_stored < 50_010
    with pytest.raises(DidNotFinishError, match="aggregates at once"):
        Neighbours().run(query, stream, Limits(memory=1_000_000), Cost())


def test_nothing_waits_for_another_window() -> None:
    query = check(f"{NEXT} WITHIN 100 s SLIDE 100 s")
    cost = Cost()
    Neighbours().run(query, fit_events(query, waiting(5_050), "events").stream, Limits(), cost)
    assert cost.peak_stored < 60


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("PATTERN A+ WITHIN 5 s SLIDE 5 s", "any later time"),
        ("PATTERN A+ SEMANTICS contiguous WITHIN 5 s", "SLIDE"),
        ("PATTERN SEQ(A, !B, C) SEMANTICS contiguous WITHIN 5 s SLIDE 5 s", "negation"),
        ("PATTERN SEQ(A, B, C) SEMANTICS contiguous WHERE A.x < C.x WITHIN 5 s SLIDE 5 s", "not neighbours"),
        ("PATTERN A+ SEMANTICS contiguous WITHIN 1000 days SLIDE 1 ms", "more than 10,000,000 windows"),
    ],
)
def test_refusals(query: str, reason: str) -> None:
    assert reason in (refusal(check(f"RETURN COUNT(*) {query}")) or "")
