"""How an interval's work is cut into tasks, and why: time slices, panes or keys.

All questions of a job share one cut of time, so that they share one read of silver. In its range of time a task does,
for each question, one of these:

- slices of time: it aggregates the windows that end in its range, for which it reads the WITHIN before them too, as
  the task before it does. Nothing is shuffled.
- panes: it keeps one linear map a key and pane of its own events; only these are shuffled, and multiplied.
- keys: it splits the columns of its own events by the hash of the key, and by slices of time where one key may not fit
  into memory; the parts of a key come together in another task, as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from pipeline.aggregate.snapshot import DataFile
from pipeline.engines.contract import Engine
from pipeline.engines.pane import Pane
from pipeline.engines.summary import summary_refusal
from pipeline.questions import Question

EVENTS_A_TASK = 5_000_000  # whose columns and aggregates take some hundred megabytes
EVENTS_A_KEY = 4 * EVENTS_A_TASK  # that one task can hold as columns
FEW_EVENTS = 200_000  # for which a second task costs more than it saves
MOST_AGAIN = 0.5  # of the events may be read twice, so that nothing is shuffled
EVENTS_A_PANE = 20  # below, the maps of panes cost more than the events they stand for

Range = tuple[int, int]  # in microseconds, half-open
Held = Sequence[tuple[int, int, float]]  # stretches of time, and how many rows they hold


class Strategy(Enum):
    """What tasks do with the events of their range of time."""

    SLICES = "time slices"  # aggregate the windows that end in it
    PANES = "panes"  # make maps of panes, to be joined
    KEYS = "keys"  # split columns by key


@dataclass(frozen=True)
class Cut:
    """How one question's work is done in a job."""

    strategy: Strategy
    why: str
    slices: tuple[Range, ...]  # of the ends of windows that a key's task takes at once
    buckets: int  # that keys are spread over

    def __str__(self) -> str:
        return f"{self.strategy.value}: {self.why}"


def task_ranges(files: Sequence[DataFile], events: Range, cores: int) -> tuple[Range, ...]:
    """The ranges of time that a job's tasks take."""
    held = spread(files, events)
    rows = sum(count for _, _, count in held)
    # As many for each core, so that none waits for the others at the end.
    rounds = -(-int(rows) // (EVENTS_A_TASK * cores))
    return cut_times(held, events, 1 if rows <= FEW_EVENTS else rounds * cores)


def cut(
    question: Question,
    engine: Engine,
    files: Sequence[DataFile],
    ends: Range,
    tasks: int,
    events_a_pane: Callable[[], float | None],
    strategy: Strategy | None = None,
) -> Cut:
    """How a question's windows with these ends are aggregated; `events_a_pane` of one key is asked if it matters."""
    reach = question.reach
    held = spread(files, reach.events(*ends))
    rows = sum(count for _, _, count in held)
    span = sum(stop - start for start, stop in _covered(held))
    again = (tasks - 1) * reach.within / max(span, 1)
    summarised = isinstance(engine, Pane) and summary_refusal(question.query) is None and reach.slide is not None
    held_by_a_pane = None
    if strategy is None and again <= MOST_AGAIN:
        strategy = Strategy.SLICES
    elif strategy is None and summarised:
        held_by_a_pane = events_a_pane()
        fine = held_by_a_pane is not None and held_by_a_pane < EVENTS_A_PANE
        strategy = Strategy.KEYS if fine else Strategy.PANES
    elif strategy is None:
        strategy = Strategy.KEYS
    if strategy is Strategy.SLICES:
        why = "one task can do all" if tasks == 1 else f"WITHIN is short: {again:.0%} is read twice, nothing shuffled"
        return Cut(strategy, why, (ends,), 1)
    if strategy is Strategy.PANES:
        return Cut(strategy, "no conditions join neighbours: only maps of panes are shuffled", (ends,), tasks)
    if not isinstance(engine, Pane):
        reason = f"{engine.name} has no maps of panes"
    elif not summarised:
        reason = "conditions join neighbours, or windows have no SLIDE"
    elif held_by_a_pane is not None:
        reason = f"a pane holds {held_by_a_pane:.0f} events of a key"
    else:
        reason = "Spark reads the files, in no order of time"
    slices = max(1, min(-(-int(rows) // EVENTS_A_KEY), int(MOST_AGAIN * span // reach.within)))
    return Cut(strategy, f"{reason}: columns are shuffled by key", cut_times(held, ends, slices), tasks)


def spread_by(question: Question) -> tuple[str, ...]:
    """The attributes by whose hash events are spread over buckets: those of a partition.

    Where windows move with every event those of a group: a row is of all its partitions, at a time when any of them has
    a trend that ends.
    """
    query = question.query
    return query.group_by if question.reach.slide is None else query.keys


def cut_times(held: Held, whole: Range, parts: int) -> tuple[Range, ...]:
    """Cut a range of time so that the parts hold about as many rows each, where files begin if these are many."""
    low, high = whole
    rows = sum(count for _, _, count in held)
    if parts <= 1 or not rows:
        return (whole,)
    points = np.array(sorted({point for start, stop, _ in held for point in (start, stop)}))
    below = np.zeros(len(points))
    for start, stop, count in held:
        below += count * np.clip((points - start) / (stop - start), 0, 1)
    wanted = [rows * number / parts for number in range(1, parts)]
    times = np.interp(wanted, below, points).astype(np.int64)
    starts = np.array(sorted({start for start, _, _ in held}))
    if len(starts) >= 2 * parts:
        times = starts[np.abs(starts[None] - times[:, None]).argmin(axis=1)]
    inner = sorted({time for time in times.tolist() if low < time < high})
    return tuple(zip([low, *inner], [*inner, high], strict=True))


def spread(files: Sequence[DataFile], within: Range) -> list[tuple[int, int, float]]:
    """The part of each file within a range of time, and how many rows it holds if they are spread evenly."""
    held = []
    for file in files:
        start, stop = max(file.low, within[0]), min(file.high, within[1])
        if start < stop:
            held.append((start, stop, file.rows * (stop - start) / (file.high - file.low)))
    return held


def _covered(held: Held) -> list[Range]:
    """The stretches of time in which there are rows."""
    stretches: list[Range] = []
    for start, stop, _ in sorted(held):
        if stretches and start <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(stop, stretches[-1][1]))
        else:
            stretches.append((start, stop))
    return stretches
