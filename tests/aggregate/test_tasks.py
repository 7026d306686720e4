"""The tasks of a job give the oracle's rows, however events are spread over files, times, slices and buckets."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from pipeline.aggregate.cut import Strategy
from pipeline.engines.choice import ENGINES, choose
from pipeline.engines.summary import summary_refusal
from pipeline.errors import CannotRunError
from tests.aggregate.local import SECOND, answers, as_oracle, files, plan, question
from tests.engines.test_against_oracle import many, report
from tests.engines.test_against_oracle import same as same_rows
from tests.oracle import Event, Row, answer
from tests.oracle_query import Query
from tests.strategies import cases, stream


def same(rows: list[Row], expected: list[Row]) -> bool:
    """Where x and y are doubles, their aggregates are floats."""
    numbers = [
        {
            name: float(value) if "." in name and not name.startswith("COUNT") and isinstance(value, int) else value
            for name, value in row.items()
        }
        for row in expected
    ]
    return same_rows(rows, numbers)


@pytest.mark.parametrize("strategy", Strategy)
def test_the_union_of_parts_is_the_whole(strategy: Strategy) -> None:
    @many
    @given(cases(units=("seconds",)), st.data())
    def check(case: tuple[Query, list[Event]], data: st.DataObject) -> None:
        query, events = case
        asked = question(str(query))
        engine = data.draw(st.sampled_from(["auto", *(one.name for one in ENGINES)]), label="engine")
        try:
            chosen = choose(asked.query, "pane" if strategy is Strategy.PANES else engine)
        except CannotRunError:
            event("cannot run")
            return
        if strategy is Strategy.PANES and (summary_refusal(asked.query) or asked.reach.slide is None):
            event("no panes")
            return
        expected = answer(query, events)
        # Late files: every event may be in any of them.
        places = data.draw(st.lists(st.integers(0, 2), min_size=len(events), max_size=len(events)), label="files")
        spread = [[e for e, place in zip(events, places, strict=True) if place == number] for number in range(3)]
        cuts = sorted(data.draw(st.sets(st.integers(-5, 30), max_size=2), label="intervals"))
        parts = data.draw(st.integers(1, 3), label="tasks")
        rows: list[Row] = []
        with tempfile.TemporaryDirectory() as folder:
            held = files(Path(folder), spread)
            bounds = [-100 * SECOND, *(at * SECOND for at in cuts), 200 * SECOND]
            for low, high in pairwise(bounds):
                rows += as_oracle(asked, answers(plan(asked, chosen.name, held, strategy, (low, high), parts)))
        rows.sort(key=lambda row: [row[name] for name in ("window_start", "window_end", *query.group_by)])
        event("rows" if expected else "no rows")
        assert same(rows, expected), report(query, events, f"{strategy} {chosen.name}", rows, expected)

    check()


@pytest.mark.parametrize("pattern", ["SEQ(!C, A, B)", "SEQ(A, B, !C)"])
def test_negations_at_the_edges_see_as_far_as_in_one_run(pattern: str, tmp_path: Path) -> None:
    asked = question(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 5 seconds")
    # Each c forbids only some of the trends, and lies in another interval than the rows they are in.
    events = stream("c1 a5 b6 a7 b9 a11 b12 c15 a17 b18 a19 b21")
    held = files(tmp_path, [events])
    whole = answers(plan(asked, "sase", held, Strategy.SLICES, (-100 * SECOND, 200 * SECOND), 1))
    assert whole
    for at in range(0, 25):
        cut = at * SECOND
        parts = [(-100 * SECOND, cut), (cut, 200 * SECOND)]
        assert [row for ends in parts for row in answers(plan(asked, "sase", held, Strategy.SLICES, ends, 1))] == whole


def test_questions_share_a_read_of_overlapping_files(tmp_path: Path) -> None:
    texts = ["WITHIN 2 seconds SLIDE 1 second", "WITHIN 9 seconds SLIDE 3 seconds", "WITHIN 4 seconds"]
    asked = [question(f"RETURN COUNT(*) PATTERN SEQ(A+, B) {window}") for window in texts]
    events = stream("a1 a2 b3 a3 b4 a7 b8 a9 a11 b12 b13")
    # The first file's times go back and forth over the second's.
    held = files(tmp_path, [events[::3], events[1::3] + events[2::3]])
    ends = (-100 * SECOND, 200 * SECOND)
    alone = [plan(one, "pane", held, Strategy.SLICES, ends, 3) for one in asked]
    together = replace(alone[0], works=tuple(one.works[0] for one in alone))
    for number, one in enumerate(alone):
        assert answers(together, number) == answers(one) != []


@pytest.mark.parametrize("group", ["", "GROUP-BY h"])
def test_windows_that_move_are_of_all_partitions_of_a_group(group: str, tmp_path: Path) -> None:
    """A trend of one partition ends while those of others are in the window: whichever tasks have these."""
    asked = question(f"RETURN COUNT(*) PATTERN A WHERE [g] {group} WITHIN 10 seconds")
    events = [Event(time, "A", {"x": 0, "y": 0, "g": time % 7, "h": "pq"[time % 2]}) for time in range(40)]
    held = files(tmp_path, [events])
    rows = as_oracle(asked, answers(plan(asked, "pane", held, Strategy.KEYS, (-100 * SECOND, 200 * SECOND), 3)))
    # In each window, as many events as it has seconds, or half of them where these alternate between groups.
    assert [row["COUNT(*)"] for row in rows] == [
        min(at // (2 if group else 1) + 1, 5 if group else 10) for at in range(40)
    ]
