"""Events → stream: partitioned by the query's keys, sorted by time, with the window measured in the stream's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa

from pipeline.engines.evaluate import holds, take
from pipeline.engines.kernels.order import sort
from pipeline.engines.kernels.status import DONE
from pipeline.errors import QueryError
from pipeline.events import Array, Clock, Column, Events, Texts
from pipeline.query import tree
from pipeline.query.automaton import State
from pipeline.query.checked import Query

SCALES = (1, 100, 10_000)  # that make numbers whole which were written with few decimals
SAMPLE = 1000  # values that say which one does


@dataclass(frozen=True)
class Window:
    """`WITHIN` and `SLIDE` in ticks of the clock, or in events."""

    within: int
    slide: int | None
    in_events: bool

    def bounds(self, number: Array) -> tuple[Array, Array]:
        """Starts and ends of windows: by their numbers k, or without SLIDE by the times t that they end at."""
        if self.slide is None:
            return number - self.within, number
        return number * self.slide, number * self.slide + self.within


@dataclass(frozen=True)
class Stream:
    """The events that lie in some partition, sorted by partition, then time, then input order."""

    order: Array | None  # of each event, its row of the input; None: all rows, as they come
    time: Array
    position: Array | None  # of each event in the whole input, if windows are measured in events
    begins: Array  # where each partition's events begin, and the last one's end
    part_group: Array  # the group of each partition
    types: tuple[Texts, ...]
    columns: Mapping[str, Column]
    groups: tuple[Array, ...]  # per GROUP-BY attribute, the value of each group
    source: str  # the type that all events have
    window: Window
    clock: Clock

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def row(self) -> Array:
        """Of each event in the input."""
        return np.arange(len(self)) if self.order is None else self.order

    @property
    def place(self) -> Array:
        """What windows measure: the time, or the position in the whole input."""
        return self.time if self.position is None else self.position

    @cached_property
    def part(self) -> Array:
        """The partition of each event."""
        return np.repeat(np.arange(len(self.part_group)), np.diff(self.begins))

    @cached_property
    def group(self) -> Array:
        """The group of each event."""
        return np.repeat(self.part_group, np.diff(self.begins))

    @cached_property
    def tie(self) -> Array:
        """Where the events of the same partition and time begin."""
        return self._ties[0]

    @cached_property
    def tie_end(self) -> Array:
        """And end."""
        return self._ties[1]

    @cached_property
    def _ties(self) -> tuple[Array, Array]:
        begins = np.ones(len(self), bool)
        begins[1:] = self.time[1:] != self.time[:-1]
        begins[self.begins[:-1]] = True
        starts = np.append(np.flatnonzero(begins), len(self))
        number = np.cumsum(begins) - 1
        return starts[number], starts[number + 1]

    def is_of(self, state: State) -> Array:
        """Which events have the type that an occurrence asks for."""
        mask = np.zeros(len(self), bool)
        for name in state.types:
            if name.casefold() == self.source:
                mask[:] = True
            for column in self.types:
                if name in column.words:
                    mask |= column.codes == column.words.index(name)
        return mask


def make_stream(query: Query, events: Events) -> Stream:
    """Partition and sort the events of an input for a query."""
    time, clock, window = _measured(query, events)
    order = np.argsort(time, kind="stable") if np.any(time[1:] < time[:-1]) else None
    kept = in_partitions(query, events)
    position = None
    if kept is not None or window.in_events:
        position = np.arange(len(time)) if kept is None else np.flatnonzero(kept if order is None else kept[order])
        order = position if order is None else order[position]
    size = len(time) if order is None else len(order)
    part = numbered([_taken(events.attributes[key], order) for key in query.keys])
    if part is None:
        begins = np.array([0, size] if size else [0])
    else:
        begins = np.concatenate([[0], np.cumsum(np.bincount(part))])
        if np.any(part[1:] < part[:-1]):
            by_part = _sorted_order(part, begins)
            order = by_part if order is None else order[by_part]
            position = None if position is None else position[by_part]
    columns = {name: _taken(column, order) for name, column in events.attributes.items() if name not in query.keys}
    first_rows = begins[:-1] if order is None else order[begins[:-1]]
    for name in query.keys:  # which are the same in all events of a partition
        column = events.attributes[name]
        columns[name] = column if order is None else take(column, np.repeat(first_rows, np.diff(begins)))
    keys = [take(events.attributes[name], first_rows) for name in query.group_by]
    group = numbered(keys)
    group = np.zeros(len(begins) - 1, np.int64) if group is None else group.astype(np.int64)
    first = np.unique(group, return_index=True)[1]
    return Stream(
        order=order,
        time=time if order is None else time[order],
        position=position if window.in_events else None,
        begins=begins,
        part_group=group,
        types=tuple(_taken(column, order) for column in events.types),  # type: ignore[misc]
        columns=columns,
        groups=tuple(_plain_values(take(key, first)) for key in keys),
        source=(query.tree.source or "").casefold(),
        window=window,
        clock=clock,
    )


def _taken(column: Column, order: Array | None) -> Column:
    return column if order is None else take(column, order)


def _plain_values(column: Column) -> Array:
    return np.array([*column.words, None], object)[column.codes] if isinstance(column, Texts) else column.values


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
    time = events.time if factor == 1 else events.time * factor
    return time, Clock(ticks, events.clock.style), window


def in_partitions(query: Query, events: Events) -> Array | None:
    """Which events are in a partition that can match: no null in a key, the values of [a = 'v']; None: all."""
    kept = [~column.null for key in query.keys if (column := events.attributes[key]).null.any()]
    for key, constant in query.key_values.items():
        wanted = tree.Comparison("=", tree.Attribute("", key, False), constant)
        kept.append(holds(wanted, lambda attribute: events.attributes[attribute.attribute]))
    return np.logical_and.reduce(kept) if kept else None


def numbered(columns: Sequence[Column]) -> Array | None:
    """Number the distinct combinations of values, which have no nulls, in their order; None: there are no columns."""
    number = None
    for column in columns:
        codes = column.codes if isinstance(column, Texts) else _codes(column.values)
        radix = np.int64(codes.max(initial=-1)) + 1
        number = compact(codes if number is None else number * radix + codes)
    return number


def compact(numbers: Array) -> Array:
    """The same numbers without gaps, in their order, as int32."""
    most = int(numbers.max(initial=-1)) + 1
    if most > 4 * len(numbers) + 1000:
        return np.unique(numbers, return_inverse=True)[1].astype(np.int32)
    used = np.zeros(most, bool)
    used[numbers] = True
    if used.all():
        return numbers.astype(np.int32, copy=False)
    return (np.cumsum(used, dtype=np.int32) - np.int32(1))[numbers]


def _codes(values: Array) -> Array:
    if values.dtype == object:
        return np.unique(values, return_inverse=True)[1].astype(np.int32)
    whole = _as_whole(values)
    if whole is not None and len(whole):
        least = whole.min()
        if whole.max() - least < min(4 * len(whole), 2**31):
            codes = np.empty(len(whole), np.int32)
            np.subtract(whole, least, out=codes, casting="unsafe")
            return codes
    # Arrow numbers values by hashing, which is faster than sorting them all; to it, -0.0 is not 0.0.
    encoded = pa.array(values + 0.0 if values.dtype == np.float64 else values).dictionary_encode()
    order = np.argsort(encoded.dictionary.to_numpy(), kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return np.asarray(rank[encoded.indices.to_numpy()])


def _as_whole(values: Array) -> Array | None:
    """Numbers of few decimals, such as prices, as whole ones in the same order, of the same type; None: has others."""
    if values.dtype == np.int64:
        return values
    with np.errstate(over="ignore"):  # what becomes infinite is not equal
        for scale in SCALES:
            if np.array_equal(np.rint(values[:SAMPLE] * scale) / scale, values[:SAMPLE]):
                whole = np.rint(values * scale)
                return whole if np.array_equal(whole / scale, values) else None
    return None


def _sorted_order(numbers: Array, begins: Array) -> Array:
    """The stable order of numbers, where it is known at which place each of them begins."""
    from pipeline.engines.compiled import run
    from pipeline.engines.contract import Limits

    codes = numbers.astype(np.int32, copy=False)
    order, register, place = np.empty(len(numbers), np.int64), np.zeros(1, np.int64), begins.copy()
    pauses = run(
        sort,
        lambda: (codes, place, order, register),
        Limits(),
        lambda: "events were being sorted",
        steps=len(numbers),
    )
    assert list(pauses) == [DONE]
    return order
