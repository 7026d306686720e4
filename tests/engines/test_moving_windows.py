"""Windows that move with every event, over groups of several partitions: each is looked at where its part changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.approximate import Approximate
from pipeline.engines.choice import ENGINES
from pipeline.engines.contract import Cost, Limits
from pipeline.engines.windows import make_windows
from pipeline.query.check import check
from pipeline.run import fit_events
from tests.engines.test_against_oracle import report, same
from tests.oracle import Event, answer
from tests.oracle_query import Aggregate, Atom, Not, Plus, Query, Seq, Window
from tests.product import as_columns, product_rows

A, B = Atom("A", "a"), Atom("B", "b")
COUNTS = (Aggregate("COUNT"), Aggregate("SUM", "a", "x"))
PATTERNS = [Plus(A), Seq((A, B)), Seq((A, Not(Atom("C")), B)), Seq((Plus(A), B))]
BY_NAME = {engine.name: engine for engine in ENGINES}
ONLINE = ["pane", "cogra", "aseq", "greta"]

# Dense in time, so that windows of several partitions overlap and events leave them.
streams = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from("AABBC"), st.integers(1, 3), st.sampled_from([5, -2, 0, None])),
    min_size=6,
    max_size=14,
)


@pytest.mark.parametrize("engine", ONLINE)
@pytest.mark.parametrize("returns", [COUNTS, (*COUNTS, Aggregate("MIN", "a", "x"))], ids=["sums", "least"])
@settings(max_examples=60, deadline=None)
@given(streams, st.sampled_from(PATTERNS), st.integers(1, 6), st.sampled_from(["seconds", "events"]), st.booleans())
def test_rows_are_the_oracles(
    engine: str, returns: tuple[Aggregate, ...], found: list[tuple], pattern: Seq, within: int, unit: str, grouped: bool
) -> None:
    events = [Event(time, name, {"g": g, "h": "pq"[g % 2], "x": x}) for time, name, g, x in sorted(found, key=str)]
    events.sort(key=lambda event: event.time)
    query = Query(pattern, Window(within, None, unit), returns, keys=("g",), group_by=("h",) if grouped else ())
    expected, rows = answer(query, events), product_rows(str(query), events, engine)
    assert same(rows, expected), report(query, events, engine, rows, expected)


def many(size: int) -> list[Event]:
    """Events of ten partitions in turn."""
    return [Event(time, "A", {"g": time % 10, "x": time % 7}) for time in range(size)]


@pytest.mark.parametrize("engine", ONLINE)
def test_rounded_numbers_are_never_subtracted(engine: str) -> None:
    """A small number beside large ones that are over would be lost in their difference."""
    query = check("RETURN COUNT(*) PATTERN A+ WHERE [g] WITHIN 320 s")
    dense = [Event(time, "A", {"g": 0}) for time in range(300)]
    sparse = [Event(time, "A", {"g": 1}) for time in range(290, 1200, 80)]
    stream = fit_events(query, as_columns(sorted(dense + sparse, key=lambda e: e.time)), "events").stream
    rounded, exact = (sorted(BY_NAME[engine].run(query, stream, bits, Cost())) for bits in (Limits(bits=1), Limits()))
    assert [row[:3] for row in rounded] == [row[:3] for row in exact]
    pairs = [(mine.values[0], other.values[0]) for mine, other in zip(rounded, exact, strict=True)]
    assert any(isinstance(mine, Approximate) for mine, _ in pairs)
    assert all(float(mine) == pytest.approx(float(other), rel=1e-12) for mine, other in pairs)
    assert pairs[-1][1] == 15  # four events a window


def test_partitions_are_looked_at_a_few_times() -> None:
    query = check("RETURN COUNT(*) PATTERN A+ WHERE [g] WITHIN 30 s")
    stream = fit_events(query, as_columns(many(2000)), "events").stream
    windows = make_windows(stream, lambda: np.arange(len(stream)))
    # 2,000 moments of ten partitions: at each, one event has come, and one has left.
    assert len(windows.moments) <= 2 * len(stream)
    assert sum(windows.moment_end - windows.moment) == len(windows.moments)
