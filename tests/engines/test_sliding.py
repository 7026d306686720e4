"""Sliding aggregation: one traversal gives the rows of every window, over many eras, partitions and digits."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from pipeline.approximate import Approximate
from pipeline.engines import compiled, sliding, totals
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.indexed import IndexedAggregation
from pipeline.engines.kernels import eras
from pipeline.engines.kernels import sliding as kernel
from pipeline.engines.sliding import SlidingAggregation, slides
from pipeline.engines.stream import Stream
from pipeline.query.check import check
from pipeline.query.checked import Query
from pipeline.run import fit_events
from tests.engines.test_indexed import LARGE, Sliding, random_events
from tests.oracle import Event
from tests.product import as_columns, product_rows

WINDOWS = ["300 s SLIDE 7 s", "40 s SLIDE 30 s", "100 events SLIDE 3 events", "9 s SLIDE 1 s"]


def prepared(text: str, events: list[Event]) -> tuple[Query, Stream]:
    query = check(text)
    stream = fit_events(query, as_columns(events), "events").stream
    assert slides(query, stream)
    return query, stream


def in_blocks(query: Query, stream: Stream) -> list[Row]:
    """The rows, of which there must be some, by blocks of windows."""
    rows = sorted(IndexedAggregation(query, stream, Limits(), Cost()).rows())
    assert rows
    return rows


def sliding_rows(query: Query, stream: Stream, limits: Limits | None = None) -> list[Row]:
    return sorted(SlidingAggregation(query, stream, limits or Limits(), Cost()).rows())


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    "pattern", [pattern for pattern in LARGE if pattern[:2] not in ("SE", "OR")] + ["SEQ(A, A b+)"]
)
@pytest.mark.parametrize("grouped", ["", "GROUP-BY h"])
def test_many_eras_as_greta(pattern: str, window: str, grouped: str) -> None:
    counted = "b" if "b" in pattern else "A"
    aggregates = ", ".join(f"{name}({counted}.x)" for name in ("COUNT", "SUM", "AVG"))
    where = LARGE[pattern] + (" AND [g, h]" if grouped else "")
    text = f"RETURN COUNT(*), {aggregates} PATTERN {pattern} WHERE {where} {grouped} WITHIN {window}"
    events = random_events(1500, 5)
    rows = product_rows(text, events, Sliding())
    assert rows
    assert rows == product_rows(text, events, "greta")


def walk(size: int, *, seed: int = 4, step: int = 3, companies: int = 3) -> list[Event]:
    """Prices that move a little, of several companies, with ties of times and prices, and long pauses."""
    draw = random.Random(seed)
    prices, time, events = [1000] * companies, -500, []
    for _ in range(size):
        time += draw.choice([0, 1, 1, 1, 2, 400 if draw.random() < 0.01 else 0])
        company = draw.randrange(companies)
        prices[company] += draw.randint(-step, step)
        events.append(Event(time, "S", {"x": prices[company], "g": company, "h": "pq"[company % 2]}))
    return events


Q3 = "PATTERN S+ WHERE [g, h] AND S.x > NEXT(S).x GROUP-BY h WITHIN"


@pytest.mark.parametrize("window", ["200 s SLIDE 10 s", "90 s SLIDE 7 s", "64 s SLIDE 1 s", "3 s SLIDE 2 s"])
@pytest.mark.parametrize("aggregates", ["COUNT(*)", "COUNT(S), AVG(S.x)"])
@pytest.mark.parametrize("plain_steps", [1, 10**9], ids=["compiled", "plain"])
def test_down_trends(monkeypatch: pytest.MonkeyPatch, window: str, aggregates: str, plain_steps: int) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)
    query, stream = prepared(f"RETURN h, {aggregates} {Q3} {window}", walk(1200))
    assert sliding_rows(query, stream) == in_blocks(query, stream)


@pytest.mark.parametrize("sparse", [0, 10**6], ids=["sorted", "in tables"])
def test_keys_are_sorted_or_in_tables(monkeypatch: pytest.MonkeyPatch, sparse: int) -> None:
    query, stream = prepared(f"RETURN h, COUNT(*) {Q3} 200 s SLIDE 10 s", walk(800, step=30))
    expected = in_blocks(query, stream)
    monkeypatch.setattr(eras, "SPARSE", sparse)
    monkeypatch.setattr(compiled, "PLAIN_STEPS", 10**9)
    if sparse:  # as much room as there are keys
        make = SlidingAggregation._make_eras
        room = np.zeros(3000, np.int32)
        monkeypatch.setattr(SlidingAggregation, "_make_eras", lambda *most: make(*most)._replace(table=room))
    assert sliding_rows(query, stream) == expected


def test_rows_are_taken_away_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    query, stream = prepared(f"RETURN h, COUNT(*), SUM(S.x) {Q3} 200 s SLIDE 10 s", walk(1200))
    monkeypatch.setattr(sliding, "ROW_WORDS", 0)
    monkeypatch.setattr(totals, "FEW_WORDS", 20)
    assert sliding_rows(query, stream) == in_blocks(query, stream)


def test_numbers_grow_beyond_machine_words() -> None:
    """500 falling prices in a window have 2^500 down-trends, of which none may lose a digit."""
    events = [Event(time, "S", {"x": -time}) for time in range(1500)]
    text = "RETURN COUNT(*), SUM(S.x) PATTERN S+ WHERE S.x > NEXT(S).x WITHIN 500 s SLIDE 9 s"
    rows = sliding_rows(*prepared(text, events))
    assert len(rows) == 56 + 166
    for row in rows:
        inside = range(max(row.window_start, 0), min(row.window_end, 1500))
        assert row.values == (2 ** len(inside) - 1, -sum(inside) * 2 ** (len(inside) - 1))


def test_digits_of_any_size_and_sign() -> None:
    """Values whose sums cancel out, and far beyond a digit."""
    values = [2.0**80, -(2.0**80), 1.0, -0.5, 2.0**62, -(2.0**31), 2.0**29, 0.0, 1 - 2.0**50]
    events = [Event(time, "S", {"y": values[time * 7 % 9], "x": time * 5 % 11}) for time in range(400)]
    text = "RETURN COUNT(*), SUM(S.y) PATTERN S+ WHERE S.x <= NEXT(S).x WITHIN 60 s SLIDE 4 s"
    query, stream = prepared(text, events)
    assert sliding_rows(query, stream) == in_blocks(query, stream)


@pytest.mark.parametrize("limits", [Limits(bits=1), Limits(bits=300), Limits(memory=300_000)])
def test_beyond_the_budgets_windows_go_on_in_blocks(limits: Limits) -> None:
    events = [Event(time, "S", {"x": -time}) for time in range(1000)]
    text = "RETURN COUNT(*) PATTERN S+ WHERE S.x > NEXT(S).x WITHIN 600 s SLIDE 50 s"
    query, stream = prepared(text, events)
    cost = Cost()
    rows = sorted(SlidingAggregation(query, stream, replace(limits), cost).rows())
    assert cost.events == len(stream)
    assert any(isinstance(row.values[0], Approximate) for row in rows)
    for row, other in zip(rows, in_blocks(query, stream), strict=True):
        assert row[:3] == other[:3]
        assert float(Approximate.of(row.values[0]) / other.values[0]) == pytest.approx(1, rel=1e-9)  # type: ignore[arg-type, operator]


def test_trends_of_closed_windows_are_forgotten() -> None:
    """A number is as long as its window's own trends make it, however many windows there are."""
    query, stream = prepared(
        "RETURN COUNT(*) PATTERN S+ WHERE S.x > NEXT(S).x WITHIN 40 s SLIDE 1 s",
        [Event(time, "S", {"x": -time}) for time in range(2000)],
    )
    run = SlidingAggregation(query, stream, Limits(), Cost())
    assert {row.values[0] for row in run.rows() if 0 <= row.window_start <= 1960} == {2**40 - 1}
    assert run.sums.register[0] == 1
    assert run.work.register[kernel.PEAK] <= (1 + kernel.ERA) * 40


def test_closed_windows_are_forgotten_where_few_trends_start() -> None:
    """Trends start twice a minute and go on with every event: those of closed windows are not counted on and on."""
    events = [Event(time, "B" if time % 30 else "A", {"x": -time}) for time in range(1200)]
    text = "RETURN COUNT(*) PATTERN SEQ(A, B b+) WHERE b.x > NEXT(b).x WITHIN 40 s SLIDE 1 s"
    query, stream = prepared(text, events)
    run = SlidingAggregation(query, stream, Limits(), Cost())
    assert sorted(run.rows()) == in_blocks(query, stream)
    assert run.sums.register[0] * run.sums.bits <= (1 + kernel.ERA) * 40 + run.sums.bits


@pytest.mark.parametrize("slide", [1, 2])
def test_windows_of_events_that_are_over_while_a_time_goes_on(slide: int) -> None:
    """What waits for the time's end is no part of the later windows that have the slots by then."""
    events = [Event(at // 45, "A", {"x": -at}) for at in range(135)]
    text = f"RETURN COUNT(*) PATTERN A a+ WHERE a.x > NEXT(a).x WITHIN 6 events SLIDE {slide} events"
    query, stream = prepared(text, events)
    rows = sliding_rows(query, stream)
    assert rows == in_blocks(query, stream)
    # Trends of one event, and of one before and one after a time's end.
    counts = {row.window_start: row.values[0] for row in rows}
    assert (counts[0], counts[42]) == (6, 6 + 3 * 3)


def test_a_time_goes_on_after_all_windows_of_a_partition_are_over() -> None:
    places = [(0, "own")] * 8 + [(0, "other")] * 20 + [(0, "own")] * 2 + [(1, "own")] * 3
    events = [Event(time, "A", {"x": -at, "g": g}) for at, (time, g) in enumerate(places)]
    text = "RETURN g, COUNT(*) PATTERN A a+ WHERE [g] AND a.x > NEXT(a).x GROUP-BY g WITHIN 6 events SLIDE 1 events"
    query, stream = prepared(text, events)
    rows = sliding_rows(query, stream)
    assert rows == in_blocks(query, stream)
    # The last two and three events, and the pairs of both times.
    assert (5 + 2 * 3,) in [row.values for row in rows if row.window_start == 27]


def test_slots_are_for_times_with_events() -> None:
    """A window of a million slides, in which there are few events, has few slots."""
    events = [Event(time * 1000, "S", {"x": -time % 7}) for time in range(100)]
    query, stream = prepared("RETURN COUNT(*) PATTERN S+ WHERE S.x > NEXT(S).x WITHIN 9001 s SLIDE 1 s", events)
    run = SlidingAggregation(query, stream, Limits(), Cost())
    assert run.slots <= 16
    assert sorted(run.rows()) == in_blocks(query, stream)


def test_too_many_slots_go_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    query, stream = prepared(f"RETURN h, COUNT(*) {Q3} 200 s SLIDE 10 s", walk(300))
    monkeypatch.setattr(sliding, "MAX_SLOTS", 10)
    assert sliding_rows(query, stream) == in_blocks(query, stream)


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("RETURN COUNT(*) PATTERN S+ WHERE S.x > NEXT(S).x WITHIN 9 s SLIDE 3 s", True),
        ("RETURN COUNT(*) PATTERN S+ WHERE S.x > NEXT(S).x WITHIN 9 s SLIDE 9 s", False),
        ("RETURN MIN(S.x) PATTERN S+ WHERE S.x > NEXT(S).x WITHIN 9 s SLIDE 3 s", False),
        ("RETURN COUNT(*) PATTERN S+ WHERE S.x > NEXT(S).x AND S.y < NEXT(S).y WITHIN 9 s SLIDE 3 s", False),
    ],
)
def test_what_slides(text: str, yes: bool) -> None:
    events = as_columns([Event(1, "S", {"x": 1, "y": 2})])
    query = check(text)
    assert slides(query, fit_events(query, events, "events").stream) == yes


def test_digits_leave_room_for_all_that_is_added_up() -> None:
    query, stream = prepared(f"RETURN h, COUNT(*) {Q3} 200 s SLIDE 10 s", walk(1200))
    run = SlidingAggregation(query, stream, Limits(), Cost())
    run.rows()
    assert run.sums.bits % 2 == 0
    assert run.most * 2**run.sums.bits < 2**62
