"""Summaries: parts of a stream, cut between any two times and joined in any association, equal one run."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from pipeline.engines import compiled
from pipeline.engines.contract import Cost, Limits
from pipeline.engines.evaluate import take
from pipeline.engines.summary import Summary, combine, finish, summarise, summary_refusal
from pipeline.events import Events
from pipeline.query.check import check
from pipeline.query.checked import Query as Checked
from pipeline.results import result_rows
from tests.engines.test_against_oracle import many, report, same
from tests.oracle import Event, Row, answer
from tests.oracle_query import Query
from tests.product import as_columns
from tests.strategies import EVERYTHING, cases


def part(events: list[Event], low: int, high: int) -> Events:
    """The events of some times, with columns as the whole stream has them."""
    whole = as_columns(events)
    rows = np.flatnonzero((whole.time >= low) & (whole.time < high))
    return replace(
        whole,
        time=whole.time[rows],
        types=tuple(take(column, rows) for column in whole.types),
        attributes={name: take(column, rows) for name, column in whole.attributes.items()},
    )


def finished(query: Checked, summary: Summary, limits: Limits) -> list[Row]:
    whole, rows = finish(query, pickle.loads(pickle.dumps(summary)), limits, Cost())
    return result_rows(query, whole, rows, limits.bits)


@pytest.mark.parametrize("plain_steps", [20_000, 1], ids=["plain", "compiled"])
def test_parts_joined_in_any_association_are_the_whole(monkeypatch: pytest.MonkeyPatch, plain_steps: int) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)

    @many
    @given(cases(EVERYTHING, units=("seconds",)), st.data())
    def check_parts(case: tuple[Query, list[Event]], data: st.DataObject) -> None:
        query, events = case
        checked, limits = check(str(query)), Limits()
        if summary_refusal(checked) is not None:
            event("cannot be summarised")
            return
        times = sorted({event.time for event in events})
        cuts = sorted(data.draw(st.sets(st.sampled_from(times)))) if times else []
        bounds = zip([-(10**9), *cuts], [*cuts, 10**9], strict=True)
        summaries = [summarise(checked, part(events, low, high), limits) for low, high in bounds]
        event(f"{min(len(summaries), 4)} parts")
        while len(summaries) > 1:
            at = data.draw(st.integers(0, len(summaries) - 2))
            summaries[at : at + 2] = [combine(checked, *summaries[at : at + 2], limits)]
        rows, expected = finished(checked, summaries[0], limits), answer(query, events)
        assert same(rows, expected), report(query, events, f"summaries cut at {cuts}", rows, expected)

    check_parts()


def test_sums_of_other_scales_and_values_of_other_parts() -> None:
    """The parts' sums are integers times different powers of two, and their ranks count different values."""
    text = "RETURN COUNT(*), SUM(A.x), MIN(A.x), MAX(A.x) PATTERN A+ WITHIN 10 s SLIDE 5 s"
    query, limits = check(text), Limits()
    values = {1: 0.5, 2: 3.0, 3: 0.0009765625, 4: 1e40, 6: -7.0}
    events = [Event(time, "A", {"x": x}) for time, x in values.items()]
    one, two, three = (summarise(query, part(events, *times), limits) for times in ((1, 3), (3, 4), (4, 7)))
    for whole in (
        combine(query, combine(query, one, two, limits), three, limits),
        combine(query, one, combine(query, two, three, limits), limits),
    ):
        rows = finished(query, whole, limits)
        # Each of n events is in half of the 2^n subsets.
        assert [(row["COUNT(*)"], row["MIN(A.x)"], row["MAX(A.x)"]) for row in rows] == [
            (15, 0.0009765625, 1e40),
            (31, -7, 1e40),
            (1, -7, -7),
        ]
        assert [row["SUM(A.x)"] for row in rows] == [8 * (1e40 + 3.5009765625), 16 * (1e40 - 3.4990234375), -7]


def test_counts_beyond_the_bits_stay_marked() -> None:
    query, limits = check("RETURN COUNT(*) PATTERN A+ WITHIN 2000 s SLIDE 1000 s"), Limits(bits=100)
    events = [Event(time, "A") for time in range(600)]
    parts = [summarise(query, part(events, low, low + 300), limits) for low in (0, 300)]
    (early, row) = finished(query, combine(query, *parts, limits), limits)
    assert early["exact"] is row["exact"] is False
    assert row["COUNT(*)"] == "4.1495e180"  # 2 ** 600


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("PATTERN A+ WITHIN 5 events SLIDE 5 events", "positions"),
        ("PATTERN A+ WHERE A.x < NEXT(A).x WITHIN 5 s SLIDE 5 s", "neighbouring"),
        ("PATTERN SEQ(A, !B, C) WHERE A.x = B.x WITHIN 5 s SLIDE 5 s", "negated"),
    ],
)
def test_what_cannot_be_summarised(query: str, reason: str) -> None:
    refusal = summary_refusal(check(f"RETURN COUNT(*) {query}"))
    assert refusal is not None
    assert reason in refusal.reason
