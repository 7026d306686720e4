"""Indexed aggregation: the oracle's rows for every form of index, plain and compiled, exact and as floats."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import HealthCheck, Phase, event, find, given, settings
from hypothesis import strategies as st

from pipeline.approximate import Approximate
from pipeline.engines import compiled, indexed, measures, sliding
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.index_forms import can_index, index_forms, index_texts
from pipeline.engines.indexed import IndexedAggregation
from pipeline.engines.kernels import conquer, limbs, numbers, slots, sums
from pipeline.engines.sliding import SlidingAggregation, slides
from pipeline.engines.stream import Stream
from pipeline.query.check import check
from pipeline.query.checked import Query as Checked
from pipeline.run import fit_events
from tests.engines.test_against_oracle import many, report, same
from tests.engines.test_online import one_type
from tests.oracle import Event, Value, answer
from tests.oracle_query import Aggregate, Atom, Binary, Const, Negated, Or, Plus, Query, Repeat, Seq, Term, Window
from tests.product import as_columns, product_rows
from tests.strategies import COMPARISONS, Shape, _attr, aggregates, cases, once_in, operands, scopes, streams


@dataclass(frozen=True)
class Indexed:
    """An engine of nothing but indexes."""

    name: str = "indexed"
    source: str = "ours"
    idea: str = "Fenwick trees"
    can: str = "what indexes answer"

    def refuses(self, query: Checked) -> Refusal | None:
        reason = can_index(query)
        return None if reason is None else Refusal("WHERE", reason)

    def run(self, query: Checked, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        return IndexedAggregation(query, stream, limits, cost).rows()


class Sliding(Indexed):
    """One traversal for all windows, where it is for them."""

    def run(self, query: Checked, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        way = SlidingAggregation if slides(query, stream) else IndexedAggregation
        return way(query, stream, limits, cost).rows()


ALIKE = Shape(semantics=("skip-till-any-match",), negations=0, conditions=("local",))


@st.composite
def compared(draw: st.DrawFn, x: str, y: str) -> Term:
    """A condition that an index may answer: x and y compared, or each of them with a constant."""
    roles = (x, y) if draw(st.booleans()) else (y, x)
    kind = draw(st.sampled_from(["numbers"] * 8 + ["="] * 4 + ["!="] * 2 + ["texts"] * 2 + ["alone", "mixed"]))
    if kind == "alone":
        parts = [Binary(draw(st.sampled_from(COMPARISONS)), draw(operands(role)), Const(1)) for role in roles]
        return Negated(Binary("OR", *parts))
    if kind == "mixed":
        return Binary("<", Binary("-", _attr(roles[0], "x"), _attr(roles[1], "y")), Const(2))
    sign = kind if kind in ("=", "!=") else draw(st.sampled_from(COMPARISONS))
    name = "h" if kind == "texts" else draw(st.sampled_from(["g", "h", "x"]))
    left, right = (draw(operands(r)) if kind == "numbers" else _attr(r, name) for r in roles)
    return Binary(sign, left, right)


A, B, C = Atom(("A",)), Atom(("B",)), Atom(("A", "B"), "C")
PATTERNS = [
    Plus(A),
    Plus(Seq((Plus(A), B))),
    Seq((A, Plus(C))),
    Plus(Or((A, B))),
    Seq((Plus(C), A)),
    Repeat(C, 2, None),
]


@st.composite
def compared_cases(draw: st.DrawFn) -> tuple[Query, list[Event]]:
    """Patterns of many trends, now and then any pattern, with conditions on at least one of its edges."""
    query, events = draw(cases(ALIKE))
    if not draw(once_in(4)):
        events = draw(streams(("A", "B")).filter(lambda events: len(events) >= 5))
        window = Window(draw(st.sampled_from([100, 9, 8, 5])), 1, query.window.unit)
        pattern = draw(st.sampled_from(PATTERNS))
        measured = draw(st.lists(aggregates(sorted(next(scopes(pattern))[0])), max_size=3))
        returns = tuple(dict.fromkeys([Aggregate("COUNT"), *measured]))
        query = Query(pattern, window, returns, keys=query.keys, group_by=query.group_by)
    states = check(str(query)).automaton.states
    edges = sorted((str(states[v].variable), str(states[w].variable)) for v, w in check(str(query)).automaton.follow)
    where = list(query.where)
    for x, y in draw(st.lists(st.sampled_from(edges), min_size=1, max_size=2)) if edges else ():
        where += draw(st.lists(compared(x, f"NEXT({y})"), min_size=1, max_size=3))
    within = query.window.within
    slide = draw(st.sampled_from([within, max(within // 4, 1), draw(st.integers(1, within))]))
    return replace(query, where=tuple(where), window=replace(query.window, slide=slide)), events


def compare(case: tuple[Query, list[Event]], way: str) -> None:
    """Fail where the rows of a query that indexes can answer are not the oracle's."""
    query, events = case
    for index in ways(query):
        event(index)
    if can_index(check(str(query))) is None:
        expected = answer(query, events)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(indexed, "FEW_EVENTS", 0 if way == "blocks" else 10**9)
            rows = product_rows(str(query), events, Sliding() if way == "sliding" else Indexed())
        assert same(rows, expected), report(query, events, "indexed", rows, expected)


def ways(query: Query) -> set[str]:
    """What answers the query's edges."""
    return {form.way if form else "a scan" for form in index_forms(check(str(query))).values()}


compare_many = many(given(compared_cases(), st.sampled_from(["sliding", "blocks", "windows"]))(compare))


def test_rows_are_the_oracles() -> None:
    compare_many()


@pytest.mark.parametrize("plain_steps", [1, 40], ids=["compiled", "plain, then compiled"])
def test_compiled_code_gives_the_same(monkeypatch: pytest.MonkeyPatch, plain_steps: int) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)
    compare_many()


def test_digits_that_overflow_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (limbs, measures, numbers, sums):
        monkeypatch.setattr(module, "BITS", 2)
    for module in (limbs, measures, numbers, slots, sums):
        monkeypatch.setattr(module, "MASK", 3)
    monkeypatch.setattr(sliding, "SUM_BITS", 2)
    monkeypatch.setattr(numbers, "BASE", 4.0)
    monkeypatch.setattr(numbers, "LIMIT", 32)
    compare_many()


def test_no_pairs_are_compared_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves are sorted and looked up as large ones are."""
    monkeypatch.setattr(conquer, "FEW_PAIRS", 0)
    compare_many()


WAYS = ["a scan", "a total", "a table of keys", "divide and conquer"]
WAYS += ["a Fenwick tree", "a Fenwick tree a key", "two Fenwick trees", "two Fenwick trees a key"]


@pytest.mark.parametrize("way", WAYS)
def test_every_index_is_compared_with_the_oracle(way: str) -> None:
    few = settings(max_examples=1000, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    find(compared_cases(), lambda case: way in ways(case[0]) and bool(answer(*case)), settings=few)


def random_events(size: int, seed: int) -> list[Event]:
    """Two types, ties, gaps and nulls."""
    draw = random.Random(seed)
    time, events = -50, []
    for _ in range(size):
        time += draw.choice([0, 0, 1, 1, 2, 1, 1, 9])
        attrs: dict[str, Value] = {"x": draw.randrange(100), "y": draw.randrange(8000) / 64, "g": draw.randrange(4)}
        attrs |= {"h": draw.choice(["p", "q", None])}
        events.append(Event(time, draw.choice("AAB"), attrs))
    return events


LARGE = {
    "A+": "A.x > NEXT(A).x",
    "SEQ(A, A b+)": "b.h != NEXT(b).h",
    "(SEQ(A+, B))+": "A.x <= B.x AND A.h = B.h AND B.y + 1 > NEXT(A).x",
    "SEQ(A a+, B b*)": "a.g = NEXT(a).g AND a.h = NEXT(a).h AND b.x < NEXT(b).y AND b.g < NEXT(b).g",
    "OR(A, B c)+": "A.x < NEXT(A).x AND A.y >= NEXT(A).y AND c.x != NEXT(c).x AND c.y > NEXT(c).y AND c.g = NEXT(c).g",
}


@pytest.mark.parametrize("window", ["2000 s SLIDE 2000 s", "300 s SLIDE 7 s", "300 events SLIDE 20 events"])
@pytest.mark.parametrize("pattern", LARGE)
def test_larger_streams_as_greta(pattern: str, window: str) -> None:
    counted = "c" if "c" in pattern else "b" if "b" in pattern else "A"
    aggregates = ", ".join(f"{name}({counted}.x)" for name in ("COUNT", "SUM", "AVG", "MIN", "MAX"))
    text = f"RETURN COUNT(*), {aggregates} PATTERN {pattern} WHERE {LARGE[pattern]} WITHIN {window}"
    events = random_events(1500, 7)
    assert product_rows(text, events, Indexed()) == product_rows(text, events, "greta")


@pytest.mark.parametrize("slide", [2000, 50])
@pytest.mark.parametrize("condition", ["A.g <= NEXT(A).g", "A.g <= NEXT(A).g AND A.y / 500 <= NEXT(A).x"])
def test_numbers_beyond_the_budget_become_floats(condition: str, slide: int) -> None:
    """With a few digits, all that outgrows them is close to the exact number."""
    query = check(f"RETURN COUNT(*), SUM(A.x) PATTERN A+ WHERE {condition} WITHIN 2000 s SLIDE {slide} s")
    stream = fit_events(query, as_columns(random_events(3000, 3)), "events").stream
    exact = sorted(IndexedAggregation(query, stream, Limits(), Cost()).rows())
    rounded = sorted(IndexedAggregation(query, stream, Limits(bits=1), Cost()).rows())
    assert any(isinstance(row.values[1], Approximate) for row in rounded)
    for row, other in zip(exact, rounded, strict=True):
        assert row[:3] == other[:3]
        for value, close in zip(row.values, other.values, strict=True):
            assert float(Approximate.of(close) / value) == pytest.approx(1, rel=1e-9)  # type: ignore[arg-type, operator]


def test_windows_are_separate_where_memory_is_short() -> None:
    query = check("RETURN COUNT(*), MIN(A.y) PATTERN A+ WHERE A.x < NEXT(A).x WITHIN 600 s SLIDE 10 s")
    stream = fit_events(query, as_columns(random_events(1500, 3)), "events").stream
    runs = [IndexedAggregation(query, stream, limits, Cost()) for limits in (Limits(), Limits(memory=2_000_000))]
    assert [run.plan.width for run in runs] == [20, 1]
    assert sorted(runs[0].rows()) == sorted(runs[1].rows())


@pytest.mark.parametrize(
    ("values", "condition", "count"),
    [
        ([2**53, 2**53 + 1, 2**53 + 2], "A.x < NEXT(A).x", 7),
        ([2**70 + 1, 2**70, 2**70 + 1], "A.x = NEXT(A).x", 4),
        ([0.0, -0.0, 0.0], "A.x = NEXT(A).x", 7),
        ([0.0, -0.0, 0.0], "A.x < NEXT(A).x", 3),
        ([2**53 + 1, 2**53], "A.x * 1 > NEXT(A).x + 0.0", 3),
        ([-(2**62), 2**62, 5], "A.x * 4 < NEXT(A).x", 5),
    ],
)
def test_values_are_compared_exactly(values: list[int] | list[float], condition: str, count: int) -> None:
    query = check(f"RETURN COUNT(*) PATTERN A+ WHERE {condition} WITHIN 9 s SLIDE 9 s")
    stream = fit_events(query, one_type(values), "events").stream
    assert [row.values for row in IndexedAggregation(query, stream, Limits(), Cost()).rows()] == [(count,)]


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("", "S → S: a total"),
        ("S.price > NEXT(S).price", "S → S: S.price > NEXT(S).price by a Fenwick tree"),
        ("NEXT(S).price + 1 <= S.price", "S → S: S.price >= NEXT(S).price + 1 by a Fenwick tree"),
        ("S.day = NEXT(S).day", "S → S: S.day = NEXT(S).day by a table of keys"),
        (
            "S.day = NEXT(S).day AND S.price != NEXT(S).price",
            "S → S: S.day = NEXT(S).day AND S.price != NEXT(S).price by two Fenwick trees a key",
        ),
        (
            "S.price < NEXT(S).price AND S.volume > NEXT(S).volume",
            "S → S: S.price < NEXT(S).price AND S.volume > NEXT(S).volume by divide and conquer",
        ),
        ("S.price - NEXT(S).price > 1", "S → S: a scan"),
        ("(S.price < NEXT(S).price OR S.volume > NEXT(S).volume)", "S → S: a scan"),
        ("NOT (S.price < NEXT(S).price)", "S → S: a scan"),
        ("S.a < NEXT(S).a AND S.b < NEXT(S).b AND S.c != NEXT(S).c", "S → S: a scan"),
    ],
)
def test_how_conditions_are_answered(condition: str, text: str) -> None:
    where = f"WHERE {condition}" if condition else ""
    query = check(f"RETURN COUNT(*) PATTERN S+ {where} WITHIN 1 hour SLIDE 1 minute")
    assert index_texts(query) == [text]
    assert (can_index(query) is None) == ("scan" not in text)
