"""An interval's windows one at a time: which there are, which of them are tried, and the events of each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from pipeline.aggregate.cut import Range
from pipeline.aggregate.partials import in_parts
from pipeline.aggregate.reach import Reach
from pipeline.engines.evaluate import take
from pipeline.events import Array, Events
from pipeline.query import tree
from pipeline.query.checked import Query

MOST_CANDIDATES = 100_000  # windows that are looked at before some are chosen
MOST_EVENTS = 1_000_000  # of one window that are read
MOST_BUCKETS = 100_000  # of an interval's time, whose events are counted
FIRST_STEP = 8  # events

TRENDS = tree.Aggregate("COUNT", None, None)


@dataclass(frozen=True)
class Stretch:
    """One window, or without SLIDE those that end in a stretch of time; ranges are half-open."""

    ends: Range  # of its windows
    events: Range  # the times of the events that are read
    whole: bool = True  # all that it needs are read

    def holds(self, end: int) -> bool:
        """Whether a window with this end is one of its windows."""
        return self.ends[0] <= end < self.ends[1]


@dataclass(frozen=True)
class Counts:
    """How many events lie where in a range of time, by buckets."""

    start: int
    width: int
    buckets: Array

    @classmethod
    def of(cls, reach: Reach, whole: Range, time: Array) -> Counts:
        """Count events, all of which lie in a range. Buckets are panes, so that windows are whole ones, or longer."""
        pane = reach.within if reach.slide is None else gcd(reach.within, reach.slide)
        width = max(pane, -(-(whole[1] - whole[0]) // MOST_BUCKETS))
        first = whole[0] // width
        buckets = np.bincount(time // width - first, minlength=(whole[1] - 1) // width - first + 1)
        return cls(first * width, width, buckets)

    def __add__(self, other: Counts) -> Counts:
        """The counts of both, which are of one range."""
        return replace(self, buckets=self.buckets + other.buckets)

    def before(self, times: Array) -> Array:
        """About how many events come before some times: within a bucket they count as evenly spread."""
        return np.asarray(np.interp(times - self.start, *self._line))

    def after(self, low: int, events: int) -> int:
        """About when this many events have come since a time."""
        edges, below = self._line
        return self.start + int(np.interp(self.before(np.array([low]))[0] + events, below, edges))

    @property
    def _line(self) -> tuple[Array, Array]:
        return np.arange(len(self.buckets) + 1) * self.width, np.append(0, np.cumsum(self.buckets))


class Candidates(Sequence[Stretch]):
    """The windows of an interval, of which there may be very many: each is made when it is asked for."""

    def __init__(self, reach: Reach, ends: range, high: int) -> None:
        self.reach, self.ends, self.high = reach, ends, high

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, at: int) -> Stretch:  # type: ignore[override]
        low = self.ends[at]
        ends = low, low + 1 if self.reach.slide is not None else min(low + self.reach.within, self.high)
        return Stretch(ends, self.reach.events(*ends))

    def events(self) -> tuple[Array, Array]:
        """The times of the events of each: from, and up to."""
        lows = np.arange(self.ends.start, self.ends.stop, self.ends.step)
        highs = lows + 1 if self.reach.slide is not None else np.minimum(lows + self.reach.within, self.high)
        return self.reach.events(lows, highs)  # type: ignore[arg-type, return-value]


def candidates(reach: Reach, ends: Range) -> Candidates:
    """The windows with these ends, or without SLIDE stretches of WITHIN; if there are very many, some of them."""
    low, high = ends
    step = reach.within if reach.slide is None else reach.slide
    first = low if reach.slide is None else -((reach.within - low) // step) * step + reach.within
    every = max(1, -(-(high - first) // (step * MOST_CANDIDATES)))
    return Candidates(reach, range(first, high, step * every), high)


def chosen(stretches: Candidates, counts: Counts, number: int) -> list[Stretch]:
    """Some windows that have events, always the same: those with most and with fewest, the others spread evenly."""
    lows, highs = stretches.events()
    events = counts.before(highs) - counts.before(lows)
    by_size = np.argsort(-events, kind="stable")[: int((events > 0).sum())]
    third = number // 3
    if len(by_size) > number:
        between = np.sort(by_size[third : len(by_size) - third])
        spread = between[np.linspace(0, len(between) - 1, number - 2 * third).astype(np.int64)]
        by_size = np.concatenate([by_size[:third], spread, by_size[len(by_size) - third :]])
    return [_shortened(stretches[at], counts, float(events[at])) for at in np.sort(by_size).tolist()]


def _shortened(stretch: Stretch, counts: Counts, events: float) -> Stretch:
    if events <= MOST_EVENTS:
        return stretch
    low, high = stretch.events
    return replace(stretch, events=(low, min(high, counts.after(low, MOST_EVENTS))), whole=False)


# -------------------------------------------------------------------------------------------------------- one by itself


def alone(query: Query) -> Query:
    """The query for one window by itself, whose events' times are counted from its start: no other overlaps it.

    Its aggregates can be added up, and the number of trends is among them, which every engine has anyway.
    """
    parts = in_parts(query)
    slide = None if query.tree.slide is None else query.tree.within
    aggregates = tuple(dict.fromkeys((*parts.aggregates, TRENDS)))
    return replace(parts, tree=replace(query.tree, slide=slide), aggregates=aggregates)


def origin(reach: Reach, stretch: Stretch) -> int:
    """From when the times of its events are counted: so is the window number 0, by `alone`. Attributes stay."""
    return 0 if reach.slide is None else stretch.ends[0] - reach.within


def first_events(events: Events, number: int) -> Events:
    """The first events."""
    if number == len(events):
        return events
    rows = np.arange(number)
    return replace(
        events,
        time=events.time[rows],
        types=tuple(take(column, rows) for column in events.types),  # type: ignore[misc]
        attributes={name: take(column, rows) for name, column in events.attributes.items()},
    )


def prefixes(time: Array) -> list[tuple[int, int]]:
    """Sizes that step up to the whole of some events in order, each with its step, which is 8, 16, 32 …

    A size is cut between two different times, so that it may be less than its step, but never as small as one before.

    >>> prefixes(np.arange(20)), prefixes(np.array([1] * 5 + [2] * 30 + [3]))
    ([(8, 8), (16, 16), (32, 20)], [(8, 5), (64, 36)])
    """
    sizes, step = [(0, 0)], FIRST_STEP
    while step < len(time):
        size = int(np.searchsorted(time, time[step]))
        if size > sizes[-1][1]:
            sizes.append((step, size))
        step *= 2
    return [*sizes[1:], (step, len(time))]
