"""Windows one at a time: which are tried, how much of them, and that a window by itself gives the rows it should."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from pipeline.aggregate import windows
from pipeline.aggregate.columns import SilverTable
from pipeline.aggregate.partials import finished, gold_rows
from pipeline.aggregate.reach import MICROS, Reach
from pipeline.aggregate.trials import Budget, Trial, check_night, stepping_up
from pipeline.aggregate.windows import FIRST_STEP, Candidates, Counts, Stretch, candidates, chosen, prefixes
from pipeline.engines.choice import ENGINES, choose
from pipeline.engines.sase import Sase
from pipeline.publish.engine_runs import CANNOT_RUN, FINISHED
from pipeline.questions import Question
from tests.aggregate.local import SECOND, as_oracle, question, table
from tests.aggregate.test_tasks import same
from tests.engines.test_against_oracle import many, report
from tests.oracle import Event, answer
from tests.oracle_query import Query
from tests.strategies import cases

DAY = date(2030, 1, 7)
MINUTE = 60 * MICROS
AMPLE = Budget(seconds=60, trends=10**9)


def trial(asked: Question, stretch: Stretch, events: list[Event]) -> Trial:
    """The events that a window needs, as a task reads them."""
    low, high = stretch.events
    inside = [e for e in sorted(events, key=lambda e: e.time) if low <= e.time * SECOND < high]
    return Trial(asked, stretch, SilverTable(table(inside)).events(asked), AMPLE)


# ---- prefixes ----


@given(st.lists(st.integers(0, 60), max_size=200).map(sorted))
def test_sizes_step_up_and_never_cut_a_time_in_two(times: list[int]) -> None:
    found = prefixes(np.array(times, np.int64))
    assert found[-1][1] == len(times)
    assert all(step < after and size < bigger for (step, size), (after, bigger) in pairwise(found))
    for number, (step, size) in enumerate(found):
        assert size <= step
        assert size > step // 2 or step == FIRST_STEP or number == 0
        assert size in (0, len(times)) or times[size - 1] < times[size]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=200).map(sorted), st.integers(1, 60))
def test_no_size_between_two_steps_is_left_out(times: list[int], cut: int) -> None:
    """Whatever time events are cut at, a prefix lies within a step of it."""
    before = sum(time < cut for time in times)
    steps = [FIRST_STEP * 2**power for power in range(10)]
    step = next(step for step in steps if before <= step)
    sizes = dict(prefixes(np.array(times, np.int64)))
    if 0 < before < len(times) and step < len(times):
        assert max(size for at, size in sizes.items() if at <= step) >= before


# ---- which windows ----


@pytest.mark.parametrize(("within", "slide"), [(10, 1), (10, 10), (10, 3), (3000, 7)])
def test_every_window_of_an_interval_is_a_candidate(within: int, slide: int) -> None:
    reach = Reach(within * MINUTE, slide * MINUTE)
    low, high = reach.ends(DAY)
    found = candidates(reach, (low, high))
    ends = [one.ends[0] for one in found]
    assert all(low <= end < high and (end - within * MINUTE) % (slide * MINUTE) == 0 for end in ends)
    assert {after - before for before, after in pairwise(ends)} == {slide * MINUTE}
    assert ends[0] - slide * MINUTE < low
    assert ends[-1] + slide * MINUTE >= high
    assert all(one.events == (end - within * MINUTE, end) for one, end in zip(found, ends, strict=True))


@pytest.mark.parametrize("within", [7, 10, 3000])
def test_without_slide_stretches_cover_the_interval(within: int) -> None:
    reach = Reach(within * MINUTE, None)
    low, high = reach.ends(DAY)
    found = candidates(reach, (low, high))
    assert (found[0].ends[0], found[-1].ends[1]) == (low, high)
    assert all(one.ends[1] == two.ends[0] for one, two in pairwise(found))


def test_of_very_many_windows_some_are_looked_at() -> None:
    reach = Reach(MINUTE, 1)
    found = candidates(reach, reach.ends(DAY))
    assert windows.MOST_CANDIDATES / 2 < len(found) <= windows.MOST_CANDIDATES


def counted(reach: Reach, minutes: list[int]) -> tuple[Candidates, Counts]:
    """Windows of a day, and the counts of events at some minutes of it."""
    ends = reach.ends(DAY)
    start = ends[0] - 1
    whole = reach.events(*ends)
    return candidates(reach, ends), Counts.of(reach, whole, np.array([start + at * MINUTE for at in minutes], np.int64))


def test_windows_with_most_and_fewest_events_and_some_between() -> None:
    reach = Reach(10 * MINUTE, 10 * MINUTE)
    minutes = [at for number in range(40) for at in [number * 10 + 5] * (number + 1)]
    stretches, counts = counted(reach, minutes)
    found = chosen(stretches, counts, 6)
    numbers = [stretches.index(one) for one in found]
    assert numbers == sorted(numbers)
    assert {0, 1, 38, 39} < {*numbers}
    assert len({*numbers}) == 6
    assert found == chosen(stretches, counts, 6)


def test_windows_without_events_are_not_chosen() -> None:
    reach = Reach(10 * MINUTE, 10 * MINUTE)
    stretches, counts = counted(reach, [5, 705])
    assert chosen(stretches, counts, 6) == [stretches[0], stretches[70]]


def test_of_a_very_large_window_only_the_beginning_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MOST_EVENTS", 100)
    reach = Reach(60 * MINUTE, 60 * MINUTE)
    stretches, counts = counted(reach, [at for at in range(60) for _ in range(4)])
    large = max(chosen(stretches, counts, 3), key=lambda one: not one.whole)
    assert not large.whole
    low, high = large.events
    assert 24 * MINUTE <= high - low <= 27 * MINUTE


# ---- one window by itself ----


def test_a_window_by_itself_has_the_rows_of_the_whole() -> None:
    @many
    @given(cases(units=("seconds",)), st.data())
    def check(case: tuple[Query, list[Event]], data: st.DataObject) -> None:
        query, events = case
        asked = question(str(query))
        expected = answer(query, events)
        every = candidates(asked.reach, (-30 * SECOND, 300 * SECOND))
        stretch = data.draw(st.sampled_from(every), label="window")
        for row in expected:  # more often one that has rows
            if data.draw(st.booleans(), label="of a row"):
                stretch = next(one for one in every if one.holds(row["window_end"] * SECOND))
                break
        alone = trial(asked, stretch, events)
        wanted = [row for row in expected if stretch.holds(row["window_end"] * SECOND)]
        event("rows" if wanted else "no rows")
        for engine in ENGINES:
            attempt, rows = alone.run(engine, 0, len(alone.events))
            if attempt.status == CANNOT_RUN:
                continue
            assert attempt.status == FINISHED, attempt.reason
            assert rows is not None
            assert asked.reach.slide is None or all(stretch.holds(end) for _, end, _ in rows), "of other windows"
            own = {key: values for key, values in rows.items() if stretch.holds(key[1])}
            found = as_oracle(asked, gold_rows(asked, finished(asked.query, own)).to_pylist())
            assert same(found, wanted), report(query, events, f"{engine.name} {stretch}", found, wanted)

    check()


def test_all_engines_agree_on_all_sizes_of_a_window() -> None:
    @many
    @given(cases(units=("seconds",)), st.data())
    def check(case: tuple[Query, list[Event]], data: st.DataObject) -> None:
        query, events = case
        asked = question(str(query))
        stretch = data.draw(st.sampled_from(candidates(asked.reach, (-5 * SECOND, 140 * SECOND))), label="window")
        alone = trial(asked, stretch, events)
        found = stepping_up(alone, (Sase(), *(engine for engine in ENGINES if engine.name != "sase")))
        assert {one.status for one in found} <= {FINISHED, CANNOT_RUN}
        assert not [difference for one in found for difference in one.differences]
        night = choose(asked.query)
        checked = check_night(alone, night, [one for one in ENGINES if one.name in ("cogra", "greta")], Sase())
        assert not [difference for one in checked.attempts for difference in one.differences]

    check()
