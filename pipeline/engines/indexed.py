"""Indexed aggregation: skip-till-any-match with conditions between neighbours, without a scan over earlier events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.kernels import conquer, fenwick
from pipeline.engines.kernels import index as kernel
from pipeline.engines.kernels.numbers import BITS
from pipeline.engines.kernels.status import GROW
from pipeline.engines.lookups import Lookups, by_state, make_keys, make_lookups
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


class IndexedAggregation:
    """One run, of a query for which `can_index` gives no reason against it."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> None:
        self.query, self.stream, self.limits, self.cost = query, stream, limits, cost
        self.measures = Measures.needed(query, stream)
        self.weights = make_weights(self.measures)
        lookups = make_lookups(query)
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
        self.pool.add_to(found, work.row_window[:count], groups, work.row)

    # ------------------------------------------------------------------------------------------------------- arrays

    def _keys(self, lookups: Lookups) -> tuple[fenwick.Keys, conquer.Halves]:
        keys, rows = make_keys(lookups, self.stream)
        conquered = np.array([number for number, lookup in enumerate(lookups) if lookup.conquers], np.int64)
        first = np.zeros((2, len(rows), len(self.stream) if len(conquered) else 0), np.int64)
        for number, row in enumerate(rows):
            if len(row.x_first):
                first[:, number] = row.x_first, row.y_first
        nothing = np.zeros(0, np.int64)
        states = len(self.query.automaton.states)
        return keys, conquer.Halves(conquered, first[0], first[1], nothing, nothing, nothing, states)

    def _plan(self, lookups: Lookups) -> kernel.Plan:
        stream, automaton, window = self.stream, self.query.automaton, self.stream.window
        states = np.arange(len(automaton.states))
        symbols = make_symbols([self.query.machine], stream)
        width, slide = self._choose_width(), window.slide or 0
        return kernel.Plan(
            stream.time,
            stream.place,
            stream.begins,
            symbols.symbol,
            symbols.members[0],
            np.isin(states, list(automaton.first)),
            np.isin(states, list(automaton.last)),
            *by_state(lookups, len(states)),
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
