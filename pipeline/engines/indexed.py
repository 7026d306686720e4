"""Indexed aggregation: skip-till-any-match with conditions between neighbours, without a scan over earlier events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.edges import as_rows
from pipeline.engines.index_forms import Form, index_forms
from pipeline.engines.index_keys import make_row
from pipeline.engines.kernels import conquer, fenwick
from pipeline.engines.kernels import index as kernel
from pipeline.engines.kernels.numbers import BITS
from pipeline.engines.kernels.status import GROW
from pipeline.engines.measures import Measures
from pipeline.engines.stream import Stream
from pipeline.engines.symbols import make_symbols
from pipeline.engines.windows import NEVER, most_within
from pipeline.events import Array
from pipeline.query.checked import Query

ROW_BUFFER = 1024
MAX_WIDTH = 256
FEW_EVENTS = 50  # in a window, so that its one row costs less than the parts of it that blocks would give
FEW_CELLS = 4096  # so few that it does not matter whether all are used


class _Lookup(NamedTuple):
    """What is asked of the events of a state."""

    source: int
    form: Form
    target: int | None  # None: any state may ask; divide and conquer is for one alone

    @property
    def conquers(self) -> bool:
        return self.target is not None


# With the states that ask.
_Lookups = dict[_Lookup, list[int]]


class IndexedAggregation:
    """One run, of a query for which `can_index` gives no reason against it."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> None:
        self.query, self.stream, self.limits, self.cost = query, stream, limits, cost
        self.measures = Measures.needed(query, stream)
        self.weights = make_weights(self.measures)
        lookups = _lookups(query)
        self.keys, self.halves = self._keys(lookups)
        self.plan = self._plan(lookups)
        self.trees, self.work, self.pool = self._work()
        cost.events += len(stream)

    def rows(self) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        found = Found(self.query, self.measures)
        for status in self._pauses():
            self._take(found)
            if status == GROW:
                self.pool.grow()
        self.cost.peak_stored = max(self.cost.peak_stored, int(self.work.register[kernel.PEAK]))
        return found.rows(self.stream.window)

    def _pauses(self) -> Iterator[int]:
        return run(
            kernel.aggregate,
            lambda: (self.plan, self.keys, self.trees, self.halves, self.work, self.pool.cells, self.weights),
            self.limits,
            self._so_far,
            steps=4 * len(self.stream),
        )

    def _so_far(self) -> str:
        done, parts = int(self.work.register[kernel.PART]), len(self.plan.part) - 1
        return f"{done:,} of {parts:,} partitions aggregated"

    def _take(self, found: Found) -> None:
        work, count = self.work, int(self.work.register[kernel.ROWS])
        work.register[kernel.ROWS] = 0
        groups = self.stream.part_group[work.row_part[:count]]
        found.add(work.row_window[:count], groups, self.pool.columns(work.row, count))

    # ------------------------------------------------------------------------------------------------------- arrays

    def _keys(self, lookups: _Lookups) -> tuple[fenwick.Keys, conquer.Halves]:
        forms = list(dict.fromkeys(lookup.form for lookup in lookups))
        rows = [make_row(form, self.stream) for form in forms]
        fields = [(forms.index(one.form), one.source, -1 if one.target is None else one.target) for one in lookups]
        conquered = [number for number, lookup in enumerate(lookups) if lookup.conquers]
        size = len(self.stream)
        first = np.zeros((2, len(rows), size if conquered else 0), np.int64)
        columns: dict[int, Array] = {id(column): column for row in rows for column in row[:4] if column is not None}
        places = {None: -1} | {key: place for place, key in enumerate(columns)}
        for number, row in enumerate(rows):
            if len(row.x_first):
                first[:, number] = row.x_first, row.y_first
        fields_of = [[places[None if column is None else id(column)] for column in row[:4]] for row in rows]
        keys = fenwick.Keys(
            lookup=np.array(fields, np.int64).reshape(-1, 3),
            field=np.array(fields_of, np.int64).reshape(-1, 4),
            column=as_rows(list(columns.values()), size, np.int32),
            segment=np.concatenate([np.zeros(0, np.int32), *(row.segment for row in rows)]),
            segment_begin=np.cumsum([0, *(len(row.segment) for row in rows)]),
            distinct=np.array([row.segment[-1] for row in rows], np.int64),
        )
        nothing = np.zeros(0, np.int64)
        states = len(self.query.automaton.states)
        halves = conquer.Halves(np.array(conquered, np.int64), first[0], first[1], nothing, nothing, nothing, states)
        return keys, halves

    def _plan(self, lookups: _Lookups) -> kernel.Plan:
        stream, automaton, window = self.stream, self.query.automaton, self.stream.window
        states = np.arange(len(automaton.states))
        symbols = make_symbols([self.query.machine], stream)
        stored = [(number, lookup) for number, lookup in enumerate(lookups) if not lookup.conquers]
        into = [(target, number) for number, lookup in stored for target in lookups[lookup]]
        out = [(lookup.source, number) for number, lookup in stored]
        width, slide = self._choose_width(), window.slide or 0
        return kernel.Plan(
            stream.time,
            stream.place,
            stream.begins,
            symbols.symbol,
            symbols.members[0],
            np.isin(states, list(automaton.first)),
            np.isin(states, list(automaton.last)),
            *_listed(into, len(states)),
            *_listed(out, len(states)),
            within=window.within,
            slide=slide,
            width=width,
            before=-(-window.within // slide) - 1 if width > 1 else 0,
            span=width * slide if width > 1 else window.within,
            first_window=0 if window.in_events else -NEVER,
            keeps=len(self.halves.lookup) > 0,
        )

    def _choose_width(self) -> int:
        """How many windows share a traversal; 1: each has its own.

        Blocks of b windows, each of which overlaps w others, take 1 + w / b traversals with aggregates b times as long.
        Whether it is their length that costs or their number, b = w / 3 is not far from the best.
        """
        begins, place, slide = self.stream.begins, self.stream.place, self.stream.window.slide or 0
        overlap = -(-self.stream.window.within // slide)
        # About how many windows hold events.
        windows = (place[begins[1:] - 1] - place[begins[:-1]]) // slide + overlap
        windows = np.minimum(windows, np.diff(begins) * overlap).sum()
        if overlap <= 3 or len(self.stream) * overlap < FEW_EVENTS * windows:
            return 1
        width = min(-(-overlap // 3), MAX_WIDTH)
        return width if self._fits(width) else 1

    def _fits(self, width: int) -> bool:
        """Whether there is memory for so many slots without numbers becoming inexact that otherwise would not."""
        most, states = self._most_in_block(width), self.halves.states
        bits = min(self.limits.bits, most * states.bit_length())
        cells = self._tree_cells(most) + most * states
        return 8 * (bits // BITS + 8) * (1 + len(self.measures.kinds)) * cells * width <= self.limits.memory

    def _most_in_block(self, width: int) -> int:
        """How many events a block of so many windows has at most, or a partition where that is little."""
        stream = self.stream
        longest = int(np.diff(stream.begins).max(initial=0))
        if longest <= FEW_CELLS:
            return longest
        length = (width - 1) * (stream.window.slide or 0) + stream.window.within
        return most_within(self._part, stream.place, length)

    @property
    def _part(self) -> Array:
        """The partition of each event, as the smallest numbers that do."""
        return np.repeat(np.arange(len(self.stream.part_group), dtype=np.int32), np.diff(self.stream.begins))

    def _tree_cells(self, most: int) -> int:
        """How many cells the trees of a block have, at most, in which there are so many events."""
        distinct = self.keys.distinct[self.keys.lookup[:, fenwick.ROW]]
        return int(np.minimum(distinct, fenwick.SPARSE * most).sum())

    def _work(self) -> tuple[fenwick.Trees, kernel.Work, Pool]:
        width = self.plan.width
        most = self._most_in_block(width)
        cells, waiting = self._tree_cells(most), self._most_waiting(most)
        kept = waiting
        if self.plan.keeps:
            kept = most * self.halves.states
            room = np.zeros((3, most + 1), np.int64)
            self.halves = self.halves._replace(earlier=room[0], later=room[1], moment=room[2])
        rows = max(ROW_BUFFER // width, 16)
        trees = fenwick.Trees(np.zeros((len(self.keys.lookup), 3), np.int64), np.zeros(cells, np.int32))
        work = kernel.Work(
            register=np.zeros(16, np.int64),
            event_cell=cells,
            waiting_event=np.zeros(waiting, np.int64),
            waiting_state=np.zeros(waiting, np.int64),
            waiting_cell=np.zeros(waiting, np.int64),
            result=cells + kept,
            row=cells + kept + 1,
            row_part=np.zeros(rows, np.int64),
            row_window=np.zeros(rows, np.int64),
        )
        work.register[kernel.INSIDE] = -1
        return trees, work, Pool(self.measures, work.row + rows, self.limits, slots=width)

    def _most_waiting(self, most: int) -> int:
        """How many events there are at most at one time, each as often as it can be bound to a state."""
        stream, states = self.stream, int(self.plan.member.sum(axis=1).max(initial=0))
        if most * states > FEW_CELLS:
            most = most_within(self._part, stream.time, 1)
        return most * states


def _lookups(query: Query) -> _Lookups:
    lookups: _Lookups = {}
    for (source, target), form in index_forms(query).items():
        assert form is not None
        for one in form.lookups():
            lookup = _Lookup(source, one, target if len(one.ordered) == 2 else None)
            lookups.setdefault(lookup, []).append(target)
    return lookups


def _listed(pairs: list[tuple[int, int]], count: int) -> tuple[Array, Array]:
    """Numbers by their keys: where each key's begin, and the numbers."""
    ordered = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return np.searchsorted(ordered[:, 0], np.arange(count + 1)), np.ascontiguousarray(ordered[:, 1])
