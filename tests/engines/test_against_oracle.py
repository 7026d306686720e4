"""Every engine gives the oracle's rows on random queries and streams. `TRENDS_EXAMPLES` sets how many an engine."""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.oracle import Event, Row, Value, answer
from tests.oracle_query import Query
from tests.product import CannotRun, product_rows
from tests.strategies import ANY_MATCH, EVERYTHING, LINKED_SEQUENCES, PREFIXES, Shape, cases, stream_text

ENGINES: dict[str, Shape] = {
    "auto": EVERYTHING,
    "pane": EVERYTHING,
    "cogra": EVERYTHING,
    "aseq": PREFIXES,
    "greta": ANY_MATCH,
    "fla": LINKED_SEQUENCES,
    "prc": LINKED_SEQUENCES,
    "sase": EVERYTHING,
}
RUN_EVERYTHING = ("auto", "sase")

many = settings(
    max_examples=int(os.environ.get("TRENDS_EXAMPLES", "150")),
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_are_the_oracles(engine: str) -> None:
    @many
    @given(cases(ENGINES[engine]))
    def check(case: tuple[Query, list[Event]]) -> None:
        agrees(*case, engine)

    check()


@pytest.mark.parametrize("engine", ENGINES)
def test_order_of_equal_times_does_not_matter(engine: str) -> None:
    @many
    @given(cases(ENGINES[engine], units=("seconds",)), st.data())
    def check(case: tuple[Query, list[Event]], data: st.DataObject) -> None:
        query, events = case
        shuffled = sorted(data.draw(st.permutations(events)), key=lambda e: e.time)
        rows, others = rows_or_refusal(query, events, engine), rows_or_refusal(query, shuffled, engine)
        assert rows == others or (rows is not None and others is not None and same(rows, others)), report(
            query, events, engine, rows, others
        )

    check()


def agrees(query: Query, events: list[Event], engine: str) -> None:
    """Fail where an engine that runs a query gives other rows than the oracle."""
    expected = answer(query, events)
    event("rows" if expected else "no rows")
    rows = rows_or_refusal(query, events, engine)
    assert rows is None or same(rows, expected), report(query, events, engine, rows, expected)


def rows_or_refusal(query: Query, events: list[Event], engine: str) -> list[Row] | None:
    try:
        return product_rows(str(query), events, engine)
    except CannotRun:
        if engine in RUN_EVERYTHING:
            raise
        event("cannot run")
        return None


def same(rows: list[Row], expected: list[Row]) -> bool:
    return len(rows) == len(expected) and all(
        row.keys() == other.keys() and all(same_value(name, row[name], other[name]) for name in other)
        for row, other in zip(rows, expected, strict=True)
    )


def same_value(name: str, mine: Value, other: Value) -> bool:
    if isinstance(mine, float) and isinstance(other, float) and not name.startswith("AVG"):
        return math.isclose(mine, other, rel_tol=1e-12)
    whole = not name.startswith("COUNT") or isinstance(mine, int)
    return whole and mine == other


def report(query: Query, events: list[Event], engine: str, rows: list[Row] | None, expected: list[Row] | None) -> str:
    lines = [f"{engine} differs", f"query    {query}", f"stream   {stream_text(events)}"]
    return "\n".join([*lines, f"product  {rows}", f"expected {expected}"])
