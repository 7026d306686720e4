"""Indexed aggregation: skip-till-any-match with conditions between neighbours, without a scan over earlier events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.index_forms import Form, index_forms
from pipeline.engines.index_keys import make_row
from pipeline.engines.kernels import index as kernel
from pipeline.engines.kernels.status import GROW
from pipeline.engines.measures import Measures
from pipeline.engines.stream import Stream
from pipeline.engines.symbols import make_symbols
from pipeline.engines.windows import NEVER, most_within
from pipeline.events import Array
from pipeline.query.checked import Query

ROW_BUFFER = 4096
MAX_WIDTH = 256
FEW_EVENTS = 50  # in a window, so that its one row costs less than the parts of it that blocks would give
FEW_CELLS = 4096  # so few that it does not matter whether all are used

# The state whose events are stored, and what is asked of them; with the states that ask.
Lookups = dict[tuple[int, Form], list[int]]


class IndexedAggregation:
    """One run, of a query for which `can_index` gives no reason against it."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> None:
        self.query, self.stream, self.limits, self.cost = query, stream, limits, cost
        self.measures = Measures(query.automaton, dict(stream.columns), len(stream))
        for aggregate in query.aggregates:
            self.measures.need(aggregate)
        self.weights = make_weights(self.measures)
        lookups = _lookups(query)
        self.keys = self._keys(lookups)
        self.plan = self._plan(lookups)
        self.work, self.pool = self._work()
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
            lambda: (self.plan, self.keys, self.work, self.pool.cells, self.weights),
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

    def _keys(self, lookups: Lookups) -> kernel.Keys:
        forms = list(dict.fromkeys(form for _, form in lookups))
        rows = [make_row(form, self.stream) for form in forms]
        columns = ([row[at] for row in rows] for at in range(4))
        return kernel.Keys(
            np.array([forms.index(form) for _, form in lookups], np.int64),
            np.array([source for source, _ in lookups], np.int64),
            np.array([row.distinct for row in rows], np.int64),
            np.concatenate([np.zeros(0, np.int32), *(row.segment for row in rows)]),
            np.cumsum([0, *(len(row.segment) for row in rows)]),
            *(np.array(column, np.int32).reshape(len(rows), len(self.stream)) for column in columns),
        )

    def _plan(self, lookups: Lookups) -> kernel.Plan:
        stream, automaton, window = self.stream, self.query.automaton, self.stream.window
        states = np.arange(len(automaton.states))
        symbols = make_symbols([self.query.machine], stream)
        into = [(target, number) for number, targets in enumerate(lookups.values()) for target in targets]
        out = [(source, number) for number, (source, _) in enumerate(lookups)]
        assert window.slide is not None
        width = self._width(window.within, window.slide)
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
            slide=window.slide,
            width=width,
            before=-(-window.within // window.slide) - 1 if width > 1 else 0,
            span=width * window.slide if width > 1 else window.within,
            first_window=0 if window.in_events else -NEVER,
        )

    def _width(self, within: int, slide: int) -> int:
        """How many windows share a traversal; 1: each has its own.

        Blocks of b windows, each of which overlaps w others, take 1 + w / b traversals with aggregates b times as long.
        Whether it is their length that costs or their number, b = w / 3 is not far from the best.
        """
        overlap = -(-within // slide)
        if overlap <= 3 or len(self.stream) * overlap < FEW_EVENTS * self._windows(overlap, slide):
            return 1
        return min(-(-overlap // 3), MAX_WIDTH)

    def _windows(self, overlap: int, slide: int) -> int:
        """About how many windows hold events, over all partitions."""
        begins, place = self.stream.begins, self.stream.place
        lengths = (place[begins[1:] - 1] - place[begins[:-1]]) // slide + overlap
        return int(np.minimum(lengths, np.diff(begins) * overlap).sum())

    def _work(self) -> tuple[kernel.Work, Pool]:
        plan = self.plan
        tree_cells, waiting = self._cells(plan.width), self._most_waiting()
        row_buffer = max(ROW_BUFFER // plan.width, 16)
        work = kernel.Work(
            register=np.zeros(16, np.int64),
            tree=np.zeros(len(self.keys.row), np.int64),
            size=np.zeros(len(self.keys.row), np.int64),
            dense=np.zeros(len(self.keys.row), bool),
            key=np.zeros(tree_cells, np.int32),
            waiting=tree_cells,
            waiting_event=np.zeros(waiting, np.int64),
            waiting_state=np.zeros(waiting, np.int64),
            result=tree_cells + waiting,
            row=tree_cells + waiting + 1,
            row_part=np.zeros(row_buffer, np.int64),
            row_window=np.zeros(row_buffer, np.int64),
        )
        work.register[kernel.INSIDE] = -1
        return work, Pool(self.measures, work.row + row_buffer, self.limits, slots=plan.width)

    def _cells(self, width: int) -> int:
        """How many cells the trees of one block have at most."""
        window, distinct = self.stream.window, self.keys.distinct[self.keys.row]
        most = self._longest
        if min(most, int(distinct.max(initial=0))) > FEW_CELLS:
            assert window.slide is not None
            most = most_within(self.stream.part, self.stream.place, (width - 1) * window.slide + window.within)
        return int(np.minimum(distinct, most).sum())

    def _most_waiting(self) -> int:
        """How many events there are at most at one time, each as often as it can be bound to a state."""
        stream, states = self.stream, int(self.plan.member.sum(axis=1).max(initial=0))
        if self._longest * states <= FEW_CELLS:
            return self._longest * states
        return int((stream.tie_end - stream.tie).max()) * states

    @property
    def _longest(self) -> int:
        return int(np.diff(self.stream.begins).max(initial=0))


def _lookups(query: Query) -> Lookups:
    lookups: Lookups = {}
    for (source, target), form in index_forms(query).items():
        assert form is not None
        for lookup in form.lookups():
            lookups.setdefault((source, lookup), []).append(target)
    return lookups


def _listed(pairs: list[tuple[int, int]], count: int) -> tuple[Array, Array]:
    """Numbers by their keys: where each key's begin, and the numbers."""
    ordered = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return np.searchsorted(ordered[:, 0], np.arange(count + 1)), np.ascontiguousarray(ordered[:, 1])
