"""Sliding aggregation: skip-till-any-match with conditions between neighbours, all windows in one traversal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.engines.aggregates import Found, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.indexed import IndexedAggregation
from pipeline.engines.kernels import fenwick, numbers
from pipeline.engines.kernels import sliding as kernel
from pipeline.engines.kernels.eras import TABLE, Eras
from pipeline.engines.kernels.sase import SUM
from pipeline.engines.kernels.status import GROW
from pipeline.engines.kernels.sums import ALARM, AT_ONCE, Sums
from pipeline.engines.lookups import Lookups, by_state, make_keys, make_lookups
from pipeline.engines.measures import Measures
from pipeline.engines.stream import Stream
from pipeline.engines.symbols import make_symbols
from pipeline.engines.totals import Totals
from pipeline.engines.windows import NEVER, most_within
from pipeline.events import Array
from pipeline.query.checked import Query

ROW_WORDS = 1 << 20  # that finished rows may take until they are added up
MAX_SLOTS = 4096
SUM_BITS = 62  # that the sum of digits may have
CACHE_LINE = 64  # bytes
VECTOR = 8  # words that a machine adds at once, or a multiple of that


def slides(query: Query, stream: Stream) -> bool:
    """Whether windows overlap, and nothing is asked for but numbers that add up."""
    window = stream.window
    return (
        window.slide is not None
        and window.slide < window.within
        and all(aggregate.function in ("COUNT", "SUM", "AVG") for aggregate in query.aggregates)
        and not any(lookup.conquers for lookup in make_lookups(query))
    )


class SlidingAggregation:
    """One run, of a query for which `can_index` gives no reason against it, and which `slides`."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> None:
        self.query, self.stream, self.limits, self.cost = query, stream, limits, cost
        window = stream.window
        assert window.slide is not None
        self.overlap = -(-window.within // window.slide)
        part = np.repeat(np.arange(len(stream.part_group), dtype=np.int32), np.diff(stream.begins))
        most = most_within(part, stream.place, self.overlap * window.slide)
        self.slots = _rounded(min(self.overlap, most))
        # A slot's trends are forgotten when the era is over in which its window ends.
        longest = int(np.diff(stream.begins).max(initial=0))
        self.most = min((1 + kernel.ERA) * most, longest)
        ties = np.any((stream.time[1:] == stream.time[:-1]) & (part[1:] == part[:-1]))
        self.most_at_once = most_within(part, stream.time, 1) if ties else min(most, 1)
        self.states = len(query.automaton.states)

    def rows(self) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        if self.slots <= MAX_SLOTS and self._prepare():
            found = Found(self.query, self.measures)
            if self._add_to(found):
                self.cost.events += len(self.stream)
                self.cost.peak_stored = max(self.cost.peak_stored, int(self.work.register[kernel.PEAK]))
                return found.rows(self.stream.window)
        return IndexedAggregation(self.query, self.stream, self.limits, self.cost).rows()

    def _add_to(self, found: Found) -> bool:
        """Whether there was room for all numbers."""
        totals = Totals(self.sums.parts, self.sums.bits)
        for status in self._pauses():
            self._take(totals)
            if status == GROW and not self._give(2 * self.room):
                return False
        self._take(totals)
        windows, groups, columns, _ = totals.columns()
        found.add(windows, groups, columns)
        return True

    def _pauses(self) -> Iterator[int]:
        return run(
            kernel.aggregate,
            lambda: (self.plan, self.keys, self.eras, self.work, self.sums, self.weights),
            self.limits,
            self._so_far,
            steps=len(self.stream) * (1 + self.slots),
        )

    def _so_far(self) -> str:
        done, parts = int(self.work.register[kernel.PART]), len(self.plan.part) - 1
        return f"{max(done, 0):,} of {parts:,} partitions aggregated"

    def _take(self, totals: Totals) -> None:
        work, count = self.work, int(self.work.register[kernel.ROWS])
        work.register[kernel.ROWS] = 0
        groups = self.stream.part_group[work.row_part[:count]]
        totals.add(work.row_window[:count], groups, work.row_digits[:count])

    # ------------------------------------------------------------------------------------------------------- arrays

    def _prepare(self) -> bool:
        """Make the arrays; whether there is memory for them."""
        self.measures = Measures.needed(self.query, self.stream)
        self.weights = make_weights(self.measures)
        lookups = make_lookups(self.query)
        self.keys, _ = make_keys(lookups, self.stream)
        self.plan = self._make_plan(lookups)
        waiting = int(self.plan.member.sum(axis=1).max(initial=0)) * self.most_at_once
        self.eras = self._make_eras(self.most + waiting)
        cells = 2 * self.eras.cells + waiting + 2
        parts = 1 + len(self.measures.kinds)
        digit_size = max((len(column.limbs) for column in self.measures.sums), default=0)
        self.room, self._margin = 0, digit_size + 4  # one step adds a value, and carries
        self.sums = Sums(
            digits=np.zeros((cells * parts, 0), np.int64),
            size=np.zeros(cells * parts, np.int64),
            register=np.zeros(2, np.int64),
            slots=self.slots,
            parts=parts,
            bits=numbers.BITS if SUM in self.measures.kinds else self._bits(),
        )
        nothing = np.zeros(0, np.int64)
        self.work = kernel.Work(
            register=np.zeros(16, np.int64),
            pane=np.zeros(self.slots, np.int64),
            event_cell=2 * self.eras.cells + 1,
            waiting_event=np.zeros(waiting, np.int64),
            waiting_state=np.zeros(waiting, np.int64),
            result=2 * self.eras.cells,
            row_digits=np.zeros((0, 0), np.int64),
            row_part=nothing,
            row_window=nothing,
        )
        self.work.register[kernel.PART] = -1
        return self._give(self._margin + 1)

    def _give(self, room: int) -> bool:
        """Give all numbers up to so much room; False where the budgets allow no more than there is."""
        n = self.sums
        room = min(room, self.limits.bits // n.bits + 1 + self._margin)
        if room <= self.room or 8 * len(n.size) * n.slots * room > self.limits.memory:
            return False
        self.room = room
        digits = _aligned(len(n.size), room * n.slots)
        digits[:, : n.digits.shape[1]] = n.digits
        n.register[ALARM] = room - self._margin
        self.sums = n._replace(digits=digits)
        rows = max(ROW_WORDS // (n.parts * room), 16)
        self.work = self.work._replace(
            row_digits=np.zeros((rows, n.parts * room), np.int64),
            row_part=np.zeros(rows, np.int64),
            row_window=np.zeros(rows, np.int64),
        )
        return True

    def _bits(self) -> int:
        """How many a digit may have, so that a word can hold the sum of all that is ever added up; an even number."""
        lookups = max(len(self.keys.lookup), 1)
        most = max(self.most * self.states * lookups + 1, self.slots)
        return max((SUM_BITS - most.bit_length()) // 2 * 2, 2)

    def _make_plan(self, lookups: Lookups) -> kernel.Plan:
        stream, automaton, window = self.stream, self.query.automaton, self.stream.window
        states = np.arange(self.states)
        symbols = make_symbols([self.query.machine], stream)
        return kernel.Plan(
            stream.time,
            stream.place,
            stream.begins,
            symbols.symbol,
            symbols.members[0],
            np.isin(states, list(automaton.first)),
            np.isin(states, list(automaton.last)),
            *by_state(lookups, self.states),
            within=window.within,
            slide=window.slide or 0,
            overlap=self.overlap,
            first_window=0 if window.in_events else -NEVER,
        )

    def _make_eras(self, most: int) -> Eras:
        """Room for the trees of eras in which there are so many events, with those that are stored."""
        count = len(self.keys.lookup)
        cells = int(np.minimum(self.keys.distinct[self.keys.lookup[:, fenwick.ROW]], most).sum())
        tree = np.zeros((count, 5), np.int64)
        tree[:, TABLE] = np.arange(count) * fenwick.SPARSE * most
        return Eras(
            tree=tree,
            key=np.zeros(2 * cells, np.int32),
            unsorted=np.zeros(most, np.int32),
            table=np.zeros(count * fenwick.SPARSE * most, np.int32),
            cells=cells,
        )


def _rounded(slots: int) -> int:
    """More slots, so that some are cleared at once, and so many that no loop over all of them is slower for it."""
    return -(-(slots + AT_ONCE - 1) // VECTOR) * VECTOR


def _aligned(rows: int, columns: int) -> Array:
    """Words that begin where a cache line does, and an odd number of lines further: so no rows crowd each other out."""
    line = CACHE_LINE // 8
    columns = (-(-columns // line) | 1) * line
    words = np.zeros(rows * columns + line, np.int64)
    begin = -words.ctypes.data % CACHE_LINE // 8
    return words[begin : begin + rows * columns].reshape(rows, columns)
