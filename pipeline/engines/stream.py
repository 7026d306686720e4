"""Events → stream: partitioned by the query's keys, sorted by time, with the window measured in the stream's units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pipeline.engines.evaluate import holds, take
from pipeline.errors import QueryError
from pipeline.events import Array, Clock, Column, Events, Texts
from pipeline.query import tree
from pipeline.query.automaton import State
from pipeline.query.checked import Query


@dataclass(frozen=True)
class Window:
    """`WITHIN` and `SLIDE` in ticks of the clock, or in events."""

    within: int
    slide: int | None
    in_events: bool

    def bounds(self, number: int) -> tuple[int, int]:
        """Start and end of a window: by its number k, or without SLIDE by the time t that it ends at."""
        if self.slide is None:
            return number - self.within, number
        return number * self.slide, number * self.slide + self.within


@dataclass(frozen=True)
class Stream:
    """The events that lie in some partition, sorted by partition, then time, then input order."""

    row: Array  # of each event in the input
    time: Array
    place: Array  # what windows measure: the time, or the position in the whole input
    part: Array
    group: Array
    tie: Array  # where the events of the same partition and time begin
    tie_end: Array  # and end
    columns: Mapping[str, Column]
    groups: tuple[Array, ...]  # per GROUP-BY attribute, the value of each group
    masks: Mapping[tuple[str, ...], Array]  # by types: which events have one of them
    window: Window
    clock: Clock

    def __len__(self) -> int:
        return len(self.row)

    def is_of(self, state: State) -> Array:
        """Which events have the type that an occurrence asks for."""
        return self.masks[state.types]


def make_stream(query: Query, events: Events) -> Stream:
    """Partition and sort the events of an input for a query."""
    time, clock, window = _measured(query, events)
    by_time = np.argsort(time, kind="stable") if np.any(time[1:] < time[:-1]) else np.arange(len(time))
    kept = _kept(query, events)[by_time]
    position = np.flatnonzero(kept)
    row = by_time[position]
    part, _ = _numbered([take(events.attributes[key], row) for key in query.keys], len(row))
    by_part = np.argsort(part, kind="stable")
    row, position, part = row[by_part], position[by_part], part[by_part]
    time = time[row]
    columns = {name: take(column, row) for name, column in events.attributes.items()}
    group, groups = _numbered([columns[name] for name in query.group_by], len(row))
    begins = np.ones(len(row), bool)
    begins[1:] = (part[1:] != part[:-1]) | (time[1:] != time[:-1])
    starts = np.append(np.flatnonzero(begins), len(row))
    tie_number = np.cumsum(begins) - 1
    return Stream(
        row=row,
        time=time,
        place=position if window.in_events else time,
        part=part,
        group=group,
        tie=starts[tie_number],
        tie_end=starts[tie_number + 1],
        columns=columns,
        groups=groups,
        masks=_masks(query, events, row),
        window=window,
        clock=clock,
    )


def _measured(query: Query, events: Events) -> tuple[Array, Clock, Window]:
    """Times and window in ticks fine enough for both."""
    within, slide = query.tree.within, query.tree.slide
    if within.in_events:
        return events.time, events.clock, Window(int(within.size), None if slide is None else int(slide.size), True)
    sizes = [within.size] + ([slide.size] if slide else [])
    ticks = events.clock.ticks_per_second
    while any((Fraction(size) * ticks).denominator != 1 for size in sizes):
        ticks *= 10
    factor = ticks // events.clock.ticks_per_second
    if len(events) and max(abs(int(events.time.max())), abs(int(events.time.min()))) > 2**62 // factor:
        message = "the input's times are too large for so fine a window"
        raise QueryError(message, query.text, within.span, query.file, "use longer units, or times of fewer digits")
    lengths = [int(Fraction(size) * ticks) for size in sizes]
    if lengths[0] > 2**62:
        message = "this window is too long for so fine times"
        raise QueryError(message, query.text, within.span, query.file, "use a shorter window")
    window = Window(lengths[0], lengths[1] if slide else None, False)
    return events.time * factor, Clock(ticks, events.clock.style), window


def _kept(query: Query, events: Events) -> Array:
    """Which events are in a partition that can match: no null in a key, and the values that [a = 'v'] asks for."""
    kept = np.ones(len(events), bool)
    for key in query.keys:
        kept &= ~events.attributes[key].null
    for key, constant in query.key_values.items():
        wanted = tree.Comparison("=", tree.Attribute("", key, False), constant)
        kept &= holds(wanted, lambda attribute: events.attributes[attribute.attribute])
    return kept


def _numbered(columns: list[Column], size: int) -> tuple[Array, tuple[Array, ...]]:
    """Number the distinct combinations of values in their order; also the values of each combination."""
    number = np.zeros(size, np.int64)
    codes = []
    for column in columns:
        if isinstance(column, Texts):
            values, code = np.array([*column.words, None], object)[:-1], column.codes
        else:
            values, code = np.unique(column.values, return_inverse=True)
        codes.append((values, code))
        number = np.unique(number * (len(values) + 1) + code, return_inverse=True)[1].astype(np.int64)
    first = np.unique(number, return_index=True)[1]
    return number, tuple(values[code[first]] for values, code in codes)


def _masks(query: Query, events: Events, row: Array) -> dict[tuple[str, ...], Array]:
    columns = [take(column, row) for column in events.types]
    everything = (query.tree.source or "").casefold()
    masks = {}
    for types in query.occurrence_types:
        mask = np.zeros(len(row), bool)
        for name in types:
            if name.casefold() == everything:
                mask[:] = True
            for column in columns:
                assert isinstance(column, Texts)
                codes = [code for code, word in enumerate(column.words) if word == name]
                mask |= np.isin(column.codes, codes) if codes else False
        masks[types] = mask
    return masks
