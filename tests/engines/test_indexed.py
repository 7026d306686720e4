"""Indexed aggregation: the oracle's rows for every form of index, plain and compiled, exact and as floats."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from pipeline.engines import compiled, indexed, measures
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.index_forms import can_index, index_forms, index_texts
from pipeline.engines.indexed import IndexedAggregation
from pipeline.engines.kernels import index, limbs, numbers
from pipeline.engines.stream import Stream
from pipeline.query.check import check
from pipeline.query.checked import Query as Checked
from tests.engines.test_against_oracle import many, report, same
from tests.oracle import Event, answer
from tests.oracle_query import Binary, Const, Negated, Query, Term
from tests.product import product_rows
from tests.strategies import COMPARISONS, Shape, _attr, cases, operands


@dataclass(frozen=True)
class Indexed:
    """An engine of nothing but indexes."""

    limits: Limits
    name: str = "indexed"
    source: str = "ours"
    idea: str = "Fenwick trees"
    can: str = "what indexes answer"

    def refuses(self, query: Checked) -> Refusal | None:
        reason = can_index(query)
        return None if reason is None else Refusal("WHERE", reason)

    def run(self, query: Checked, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        return IndexedAggregation(query, stream, self.limits, cost).rows()


ALIKE = Shape(semantics=("skip-till-any-match",), negations=0, conditions=("local",))


@st.composite
def compared(draw: st.DrawFn, x: str, y: str) -> Term:
    """A condition that an index may answer: x and y compared, or each of them with a constant."""
    roles = (x, y) if draw(st.booleans()) else (y, x)
    kind = draw(st.sampled_from(["numbers"] * 4 + ["equal"] * 2 + ["texts", "alone", "mixed"]))
    if kind == "alone":
        parts = [Binary(draw(st.sampled_from(COMPARISONS)), draw(operands(role)), Const(1)) for role in roles]
        return Negated(Binary("OR", *parts))
    if kind == "mixed":
        return Binary("<", Binary("-", _attr(roles[0], "x"), _attr(roles[1], "y")), Const(2))
    sign = "=" if kind == "equal" else draw(st.sampled_from(COMPARISONS))
    name = draw(st.sampled_from(["g", "h", "x"] if kind == "equal" else ["h"]))
    left, right = (draw(operands(r)) if kind == "numbers" else _attr(r, name) for r in roles)
    return Binary(sign, left, right)


@st.composite
def compared_cases(draw: st.DrawFn) -> tuple[Query, list[Event]]:
    """Windows with a SLIDE, and conditions on some of the automaton's edges."""
    query, events = draw(cases(ALIKE))
    states = check(str(query)).automaton.states
    edges = sorted((str(states[v].variable), str(states[w].variable)) for v, w in check(str(query)).automaton.follow)
    where = list(query.where)
    for x, y in draw(st.lists(st.sampled_from(edges), max_size=3)) if edges else ():
        where += draw(st.lists(compared(x, f"NEXT({y})"), min_size=1, max_size=3))
    window = replace(query.window, slide=query.window.slide or draw(st.integers(1, query.window.within)))
    return replace(query, where=tuple(where), window=window), events


def compare(query: Query, events: list[Event], limits: Limits | None = None) -> None:
    """Fail where the rows of a query that indexes can answer are not the oracle's."""
    checked = check(str(query))
    reason = can_index(checked)
    event(f"cannot: {reason.split()[0]}" if reason else "can")
    if reason is None:
        for way in {form.way for form in index_forms(checked).values() if form}:
            event(way)
        expected = answer(query, events)
        rows = product_rows(str(query), events, Indexed(limits or Limits()))
        assert same(rows, expected), report(query, events, "indexed", rows, expected)


@pytest.fixture(params=["separate windows", "shared traversals"])
def few_events(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed, "FEW_EVENTS", 0 if request.param == "shared traversals" else 10**9)


@pytest.mark.usefixtures("few_events")
def test_rows_are_the_oracles() -> None:
    many(given(compared_cases())(lambda case: compare(*case)))()


@pytest.mark.usefixtures("few_events")
@pytest.mark.parametrize("plain_steps", [1, 40], ids=["compiled", "plain, then compiled"])
def test_compiled_code_gives_the_same(monkeypatch: pytest.MonkeyPatch, plain_steps: int) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)
    many(given(compared_cases())(lambda case: compare(*case)))()


@pytest.mark.usefixtures("few_events")
def test_digits_that_overflow_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (limbs, measures, numbers):
        monkeypatch.setattr(module, "BITS", 2)
    for module in (limbs, measures, numbers, index):
        monkeypatch.setattr(module, "MASK", 3)
    monkeypatch.setattr(numbers, "BASE", 4.0)
    monkeypatch.setattr(numbers, "LIMIT", 32)
    many(given(compared_cases())(lambda case: compare(*case)))()


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
        ("S.price - NEXT(S).price > 1", "S → S: a scan"),
        ("(S.price < NEXT(S).price OR S.volume > NEXT(S).volume)", "S → S: a scan"),
        ("NOT (S.price < NEXT(S).price)", "S → S: a scan"),
    ],
)
def test_how_conditions_are_answered(condition: str, text: str) -> None:
    where = f"WHERE {condition}" if condition else ""
    query = check(f"RETURN COUNT(*) PATTERN S+ {where} WITHIN 1 hour SLIDE 1 minute")
    assert index_texts(query) == [text]
    assert (can_index(query) is None) == ("scan" not in text)
