"""Trends of one state that are only counted, where no two events have the same time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines import compiled, neighbours
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.kernels import paths
from pipeline.events import Events
from pipeline.query.check import check
from pipeline.run import fit_events
from tests.engines.test_against_oracle import many, report, same
from tests.engines.test_neighbours import WINDOWS, Neighbours, random_events, waiting
from tests.oracle import Event, answer
from tests.oracle_query import Aggregate, Atom, Attr, Binary, Plus, Query, Window
from tests.product import product_rows
from tests.strategies import SEMANTICS

VALUES = st.one_of(st.none(), st.integers(0, 4))


@pytest.fixture(autouse=True)
def _only_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where another kernel is asked."""
    monkeypatch.setattr(neighbours.kernel, "aggregate", None)


@st.composite
def chains(draw: st.DrawFn) -> tuple[Query, list[Event]]:
    """Falling or rising runs over events with times of their own."""
    times = draw(st.lists(st.integers(0, 30), unique=True, max_size=12).map(sorted))
    events = [
        Event(time, draw(st.sampled_from("AAAB")), {"x": draw(VALUES), "g": draw(st.integers(0, 1))}) for time in times
    ]
    sign = draw(st.sampled_from(["<", "<=", ">", ">="]))
    slide = draw(st.integers(1, 12))
    return Query(
        pattern=Plus(Atom(("A",))),
        window=Window(draw(st.integers(slide, 3 * slide + 4)), slide, draw(st.sampled_from(["seconds", "events"]))),
        semantics=draw(st.sampled_from(SEMANTICS[1:])),
        where=(Binary(sign, Attr("A", "x"), Attr("A", "x", True)),),
        group_by=draw(st.sampled_from([(), ("g",)])),
        returns=(Aggregate("COUNT", "*"),),
    ), events


def agrees_with_oracle() -> None:
    @many
    @given(chains())
    def compare(case: tuple[Query, list[Event]]) -> None:
        query, events = case
        expected, rows = answer(query, events), product_rows(str(query), events, Neighbours())
        assert same(rows, expected), report(query, events, "paths", rows, expected)

    compare()


def test_rows_are_the_oracles() -> None:
    agrees_with_oracle()


def test_compiled_code_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", 1)
    agrees_with_oracle()


def test_stacks_cleared_and_rows_taken_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "FEW", 0)
    monkeypatch.setattr(neighbours, "COUNT_BUFFER", 1)
    agrees_with_oracle()


def counted(text: str, events: Events, cost: Cost | None = None) -> list[Row]:
    query = check(text)
    return Neighbours().run(query, fit_events(query, events, "events").stream, Limits(), cost or Cost())


CONTIGUOUS = ["A.x < NEXT(A).y", "A.h = NEXT(A).h", "A.x < NEXT(A).x OR A.h = NEXT(A).h", "A.wide > NEXT(A).wide"]


@pytest.mark.parametrize("where", ["A.x > NEXT(A).x", "A.x <= NEXT(A).x", *CONTIGUOUS])
@pytest.mark.parametrize("window", WINDOWS)
def test_like_the_general_kernel_on_longer_streams(where: str, window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = replace(random_events(3000, 5, ties=1), time=np.arange(3000))
    for semantics in SEMANTICS[1:] if where not in CONTIGUOUS else SEMANTICS[2:]:
        rest = f"PATTERN A+ SEMANTICS {semantics} WHERE {where} GROUP-BY g WITHIN {window}"
        rows = counted(f"RETURN g, COUNT(*) {rest}", events)
        with monkeypatch.context() as patched:
            patched.setattr(neighbours.kernel, "aggregate", AGGREGATE)
            expected = counted(f"RETURN g, COUNT(*), COUNT(A) {rest}", events)
        assert [row._replace(values=row.values[:1]) for row in sorted(expected)] == sorted(rows)
        assert len(rows) > 40


AGGREGATE = neighbours.kernel.aggregate


def test_what_shares_no_window_is_forgotten() -> None:
    rising = "RETURN COUNT(*) PATTERN A+ SEMANTICS skip-till-next-match WHERE A.x > NEXT(A).x WITHIN 100 s SLIDE 100 s"
    cost = Cost()
    assert sum(row.values[0] for row in counted(rising, waiting(5_050), cost)) == 5_050 + 49  # type: ignore[misc]
    assert cost.peak_stored < 2 * paths.FEW
