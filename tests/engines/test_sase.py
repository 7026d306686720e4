"""SASE beyond its rows: optimisations on and off, plain and compiled, the trends themselves, and giving up."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines import compiled, scan
from pipeline.engines.contract import Cost, Limits
from pipeline.engines.sase import OPTIMISATIONS, Sase
from pipeline.errors import DidNotFinishError
from pipeline.query.check import check
from pipeline.run import fit_events, run_matches, run_rows
from tests.engines.test_against_oracle import agrees, many, report, same
from tests.oracle import Event, answer, trends
from tests.oracle_query import Query
from tests.product import as_columns, product_rows
from tests.strategies import EVERYTHING, cases, stream

OFF = [names for size in range(1, 5) for names in combinations(OPTIMISATIONS, size)]


@pytest.mark.parametrize("off", OFF, ids="+".join)
def test_an_optimisation_changes_no_answer(off: tuple[str, ...]) -> None:
    @many.__class__(many, max_examples=max(20, many.max_examples // len(OFF)))
    @given(cases(EVERYTHING))
    def compare(case: tuple[Query, list[Event]]) -> None:
        query, events = case
        engine = Sase().without(*off)
        if engine.refuses(check(str(query))) is None:
            rows, expected = product_rows(str(query), events, engine), answer(query, events)
            assert same(rows, expected), report(query, events, "sase", rows, expected)

    compare()


@pytest.mark.parametrize("plain_steps", [1, 40], ids=["compiled", "plain, then compiled"])
def test_compiled_code_gives_the_same(monkeypatch: pytest.MonkeyPatch, plain_steps: int) -> None:
    monkeypatch.setattr(compiled, "PLAIN_STEPS", plain_steps)

    @many
    @given(cases(EVERYTHING))
    def compare(case: tuple[Query, list[Event]]) -> None:
        agrees(*case, "sase")

    compare()


@pytest.mark.parametrize("off", [(), ("partitions",), OPTIMISATIONS], ids=lambda off: "+".join(off) or "all on")
def test_matches_are_the_trends(off: tuple[str, ...]) -> None:
    @many
    @given(cases(EVERYTHING))
    def compare(case: tuple[Query, list[Event]]) -> None:
        query, events = case
        checked, engine = check(str(query)), Sase().without(*off)
        if engine.refuses(checked):
            return
        fitted = fit_events(checked, as_columns(events), "events")
        found = Counter(
            tuple(
                sorted(
                    (variable, event["time"], event["g"])
                    for variable, bound in match.items()
                    if isinstance(bound, list)
                    for event in bound
                )
            )
            for match in run_matches(checked, engine, fitted, Limits(), Cost())
        )
        assert found == Counter(
            tuple(sorted((variable, event.time, event.attrs.get("g")) for variable, event in trend))
            for trend in trends(query, events)
        )

    compare()


@given(st.integers(1, 40))
def test_gives_up_beyond_max_trends(limit: int) -> None:
    query = check("RETURN COUNT(*) PATTERN (SEQ(A+, B))+ WITHIN 1 minute SLIDE 1 minute")
    fitted = fit_events(query, as_columns(stream("a1 b2 a3 a4 c5 b6 a7 b8")), "events")
    with pytest.raises(DidNotFinishError, match="--max-trends") as error:
        run_rows(query, Sase(), fitted, Limits(trends=limit), Cost())
    assert error.value.exit_code == 4


def test_finishes_at_max_trends() -> None:
    query = check("RETURN COUNT(*) PATTERN (SEQ(A+, B))+ WITHIN 1 minute SLIDE 1 minute")
    fitted = fit_events(query, as_columns(stream("a1 b2 a3 a4 c5 b6 a7 b8")), "events")
    assert run_rows(query, Sase(), fitted, Limits(trends=43), Cost())[0]["COUNT(*)"] == 43


def test_gives_up_after_timeout() -> None:
    query = check("RETURN COUNT(*) PATTERN A+ WITHIN 1 hour SLIDE 1 hour")
    fitted = fit_events(query, as_columns([Event(time, "A") for time in range(200)]), "events")
    cost = Cost()
    with pytest.raises(DidNotFinishError, match="--timeout"):
        run_rows(query, Sase(), fitted, Limits(seconds=0.2), cost)
    assert cost.trends > 0


def test_counts_what_it_stores() -> None:
    query = check("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 1 minute SLIDE 1 minute")
    fitted = fit_events(query, as_columns(stream("a1 b2 a3 c4 b5")), "events")
    cost = Cost()
    run_rows(query, Sase(), fitted, Limits(), cost)
    assert (cost.events, cost.trends) == (5, 3)


def test_a_long_gap_is_searched_for_a_negated_pattern() -> None:
    query = check("RETURN COUNT(*) PATTERN SEQ(A, !SEQ(B+, C), D) WITHIN 1 day SLIDE 1 day")
    gap = [Event(time, "B") for time in range(2, 3000)]
    for last, counts in [("D", [2]), ("C", [])]:
        events = [Event(1, "A"), *gap, Event(3000, last), Event(3001, "D")]
        rows = product_rows(str(query.tree), events, "sase")
        assert [row["COUNT(*)"] for row in rows] == counts


def test_a_search_for_a_negated_pattern_gives_up_too() -> None:
    query = check("RETURN COUNT(*) PATTERN SEQ(A, !SEQ(B+, X, C), D) WHERE B.x < C.x WITHIN 1 day SLIDE 1 day")
    gap = [*(Event(time, "B", {"x": 2}) for time in range(2, 60)), Event(60, "X"), Event(61, "C", {"x": 1})]
    events = [Event(1, "A"), *gap]
    fitted = fit_events(query, as_columns([*events, Event(62, "D")]), "events")
    with pytest.raises(DidNotFinishError, match="--timeout"):
        run_rows(query, Sase(), fitted, Limits(seconds=0.3), Cost())


def test_gives_up_before_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "available_memory", lambda: 1000)
    with pytest.raises(DidNotFinishError, match="GB are free"):
        product_rows("RETURN COUNT(*) PATTERN A+ WITHIN 1 s", stream("a1 a2 a3 a4 a5 a6 a7 a8 a9"), "sase")
