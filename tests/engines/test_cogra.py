"""COGRA's tables, value by value: what the engine keeps after each event of the paper's example."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline.engines.affine import WindowAggregation
from pipeline.engines.aggregates import Pool
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Cost, Limits
from pipeline.engines.online import Aggregation
from pipeline.query.check import check
from pipeline.run import fit_events
from tests.product import as_columns
from tests.strategies import stream

A, B = 0, 1  # states
EVENTS = stream("a1{x=1} b2{x=0} a3{x=1} a4{x=1} c5 b6{x=2} a7{x=1} b8{x=0}")
QUERY = "RETURN COUNT(*) PATTERN (SEQ(A+, B))+ SEMANTICS {} {} WITHIN 10 s SLIDE 10 s"
ANY = QUERY.format("skip-till-any-match", "")
JOINED = QUERY.format("skip-till-any-match", "WHERE B.x < NEXT(A).x")
NEXT = QUERY.format("skip-till-next-match", "")


def tables() -> dict[str, list[dict[str, str]]]:
    """By title, the rows of each table, by column."""
    found: dict[str, list[dict[str, str]]] = {}
    text = (Path(__file__).parent / "golden" / "cogra-tables.txt").read_text()
    for block in text.split("\n\n")[1:]:
        title, head, *rows = block.strip().splitlines()
        found[title] = [dict(zip(head.split(), row.split(), strict=True)) for row in rows]
    return found


def count(pool: Pool, cell: int) -> int:
    (trends,) = pool.columns(np.array([cell]))[0]
    assert isinstance(trends, int)
    return trends


def kept_after_each_event(
    query: str, read: Callable[..., dict[str, int]], form: type
) -> Iterator[tuple[str, dict[str, int]]]:
    checked = check(query)
    for size in range(1, len(EVENTS) + 1):
        fitted = fit_events(checked, as_columns(EVENTS[:size]), "events")
        coarse = {"coarse": True} if form is Aggregation else {}
        run = form(checked, fitted.stream, Limits(), Cost(), **coarse)
        run.rows()
        last = EVENTS[size - 1]
        yield f"{last.type.lower()}{last.time}", read(run)


def type_grained(run: WindowAggregation) -> dict[str, int]:
    base = run.affine.base
    return {"A.count": count(run.pool, base[A]), "B.count": count(run.pool, base[B])}


def mixed_grained(run: Aggregation) -> dict[str, int]:
    """One aggregate for A, in two cells: of the time at hand, and of those before; one an event of B."""
    cells = (run.places.total + A, run.places.fresh + A)
    kept = [count(run.pool, int(slot)) for slot in run.layout.slot if slot >= 0]
    return {"A.count": sum(count(run.pool, cell) for cell in cells), "B.count": sum(kept)}


def pattern_grained(run: WindowAggregation) -> dict[str, int]:
    affine = run.affine
    return {
        "a.count": count(run.pool, affine.base[A]),
        "b.count": count(run.pool, affine.base[B]),
        "final": count(run.pool, affine.final),
    }


@pytest.mark.parametrize(
    ("title", "query", "read", "form"),
    [
        ("table 6: type-grained", ANY, type_grained, WindowAggregation),
        ("table 7: mixed-grained", JOINED, mixed_grained, Aggregation),
        ("table 8: pattern-grained", NEXT, pattern_grained, WindowAggregation),
    ],
)
def test_tables(title: str, query: str, read: Callable[..., dict[str, int]], form: type) -> None:
    assert Cogra().how(check(query)).startswith(title.split(": ")[1])
    kept = dict(kept_after_each_event(query, read, form))
    before: dict[str, int] = {}
    for row in tables()[title]:
        name = row.pop("event")
        # What an event counts is what it adds to its type's count; only the last matched event's is kept in table 8.
        added = {
            column.lower(): value - before.get(column, 0) for column, value in kept[name].items() if column[0].isupper()
        }
        for column, value in row.items():
            if value != ".":
                assert (kept[name] | added)[column] == int(value), (title, name, column)
        before = kept[name]


def test_it_stores_what_the_paper_says() -> None:
    """Table 5: two counts; one for A and one an event of B; the two counts that wait, and the final one."""
    stored = {}
    for query in (ANY, JOINED, NEXT):
        checked, cost = check(query), Cost()
        Cogra().run(checked, fit_events(checked, as_columns(EVENTS), "events").stream, Limits(), cost)
        stored[query] = cost.peak_stored
    assert stored == {ANY: 2, JOINED: 1 + 3, NEXT: 3}
