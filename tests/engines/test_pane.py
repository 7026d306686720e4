"""Linear steps: windows one by one and out of panes, both against the oracle; what pane says of itself."""

from __future__ import annotations

import pytest
from hypothesis import event, given

from pipeline.engines import compiled
from pipeline.engines.affine import WindowAggregation, affine_refusal
from pipeline.engines.choice import choose
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.online import online_refusal
from pipeline.engines.pane import Pane
from pipeline.engines.panes import PaneAggregation, panes_pay
from pipeline.engines.stream import Stream
from pipeline.query.check import check
from pipeline.query.checked import Query as Checked
from pipeline.run import fit_events, run_rows
from tests.engines.test_against_oracle import agrees, many
from tests.engines.test_online import one_type
from tests.oracle import Event
from tests.oracle_query import Query
from tests.product import as_columns, product_rows
from tests.strategies import EVERYTHING, cases, stream


class Linear:
    """One of the two forms, whichever `pane` would choose."""

    name = source = idea = can = "linear"

    def __init__(self, form: type[PaneAggregation] | type[WindowAggregation]) -> None:
        self.form = form

    def refuses(self, query: Checked) -> Refusal | None:
        return affine_refusal(query) or online_refusal(query)

    def run(self, query: Checked, events: Stream, limits: Limits, cost: Cost) -> list[Row]:
        # A pane cannot end among events of equal time, as windows of events do.
        form = WindowAggregation if events.window.in_events else self.form
        return form(query, events, limits, cost).rows()


@pytest.mark.parametrize("plain_steps", [1, 20_000], ids=["compiled", "plain"])
@pytest.mark.parametrize("form", [PaneAggregation, WindowAggregation])
def test_linear_steps(
    monkeypatch: pytest.MonkeyPatch, plain_steps: int, form: type[PaneAggregation] | type[WindowAggregation]
) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)
    engine = Linear(form)

    @many
    @given(cases(EVERYTHING))
    def compare(case: tuple[Query, list[Event]]) -> None:
        refused = engine.refuses(check(str(case[0]))) is not None
        event("refused" if refused else "ran")
        if not refused:
            agrees(*case, engine)

    compare()


@pytest.mark.parametrize("size", [10, 1000, 3000])
@pytest.mark.parametrize("slide", ["SLIDE 100 s", ""])
def test_windows_of_many_panes(size: int, slide: str) -> None:
    """A window of n events holds 2^n - 1 trends, those at the stream's edges fewer."""
    query = check(f"RETURN COUNT(*) PATTERN A+ WITHIN 1000 s {slide}")
    fitted = fit_events(query, one_type([0] * size), "events")
    rows = PaneAggregation(query, fitted.stream, Limits(), Cost()).rows()
    expected = {}
    for start in range(-900, size, 100) if slide else range(-999, size - 999):
        held = min(start + 1000, size) - max(start, 0)
        # Without SLIDE the window is open at its start.
        expected[start if slide else start - 1] = 2**held - 1
    assert {row.window_start: row.values[0] for row in rows} == expected


def test_panes_where_windows_overlap_and_hold_much() -> None:
    busy = one_type([0] * 100_000)
    for text, pays in [
        ("WITHIN 10000 s SLIDE 10000 s", False),
        ("WITHIN 60000 s SLIDE 1000 s", True),
        ("WITHIN 60 s SLIDE 20 s", False),
        ("WITHIN 60000 events SLIDE 1000 events", False),
        ("WITHIN 60000 s", True),
        ("WITHIN 3 s", False),
    ]:
        query = check(f"RETURN COUNT(*) PATTERN A+ {text}")
        assert panes_pay(query, fit_events(query, busy, "events").stream) is pays, text


@pytest.mark.parametrize(("pattern", "pays"), [("SEQ(A, B)", False), ("SEQ(A, B, A)", True)])
def test_windows_that_move_are_few_where_few_events_end_a_trend(pattern: str, pays: bool) -> None:
    events = [Event(time, "B" if time % 50 == 0 else "A") for time in range(20_000)]
    query = check(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 2000 s")
    assert panes_pay(query, fit_events(query, as_columns(events), "events").stream) is pays


def test_a_small_count_beside_one_beyond_the_bits_is_exact() -> None:
    """The map of 300 b's is beyond the bits; but before the a there is nothing that they could extend."""
    events = [*(Event(time, "B") for time in range(300)), Event(300, "A"), Event(301, "B"), Event(302, "B")]
    query = check("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 400 s SLIDE 100 s")
    fitted = fit_events(query, as_columns(events), "events")
    for form in (PaneAggregation, WindowAggregation):
        rows = form(query, fitted.stream, Limits(bits=64), Cost()).rows()
        assert [row.values for row in rows] == [(3,)] * 4, form


@pytest.mark.parametrize(
    ("query", "how"),
    [
        ("PATTERN A+ WITHIN 5 s SLIDE 1 s", "a linear map"),
        ("PATTERN SEQ(A, !SEQ(B, C), D) SEMANTICS contiguous WITHIN 5 s SLIDE 1 s", "a linear map"),
        ("PATTERN A+ WHERE A.x < NEXT(A).x WITHIN 5 s SLIDE 1 s", "an index an edge: A → A: "),
        ("PATTERN A+ SEMANTICS contiguous WHERE A.x < NEXT(A).x WITHIN 5 s SLIDE 1 s", "each event once"),
        ("PATTERN A+ WHERE A.x + NEXT(A).x < 3 WITHIN 5 s SLIDE 1 s", "a scan of the earlier events, since no index"),
    ],
)
def test_it_says_how(query: str, how: str) -> None:
    checked = check(f"RETURN COUNT(*) {query}")
    assert Pane().how(checked).startswith(how)
    assert choose(checked).name == "pane"


def test_negated_sequences_as_seen_since_each_event() -> None:
    """The example of the definitions: the trends whose last b comes after c5."""
    events = stream("a1 b2 b3 b4 c5 b6 b7 b8 d9")
    text = "RETURN COUNT(*) PATTERN SEQ(A, B+, !C, D) WITHIN 10 s SLIDE 10 s"
    assert product_rows(text, events, "pane")[0]["COUNT(*)"] == 56
    fitted = fit_events(check(text), as_columns(events), "events")
    assert run_rows(check(text), Linear(PaneAggregation), fitted, Limits(), Cost())[0]["COUNT(*)"] == 56
