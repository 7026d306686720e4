"""Online aggregation over a scan: what GRETA and COGRA share; they differ in what they keep an aggregate of."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

import numpy as np

from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Refusal, Row, overlap_refusal
from pipeline.engines.kernels import online as kernel
from pipeline.engines.kernels import sase
from pipeline.engines.kernels.limbs import BITS
from pipeline.engines.kernels.status import DONE, GROW
from pipeline.engines.measures import integers
from pipeline.engines.negation_index import is_indexed
from pipeline.engines.scan import Optimisations, Scan, changes, most_within
from pipeline.engines.stream import Stream
from pipeline.errors import DidNotFinishError
from pipeline.memory import available_memory
from pipeline.query.automaton import FREE
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics

ROW_BUFFER = 4096


def online_refusal(query: Query) -> Refusal | None:
    """Why no aggregate of partial trends answers a query."""
    if query.machine.other:
        joined = query.machine.other[0].condition
        return Refusal("WHERE", f"{joined} joins events that are not neighbours, so that whole trends must be built")
    if not all(map(is_indexed, query.machine.guards)):
        return Refusal("PATTERN", "a negated pattern depends on the trend around it")
    automaton = query.automaton
    ends = {*automaton.first.values(), *automaton.last.values()}
    if query.tree.slide is None and ends != {FREE}:
        return Refusal("WITHIN", "without SLIDE, a negation before or after a trend is judged for each trend")
    return overlap_refusal(query)


class Aggregation:
    """One run: lays out the cells, then lets the kernel aggregate window after window."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost, *, coarse: bool) -> None:
        """`coarse`: keep one aggregate a state instead of one an event, where no condition needs the events."""
        self.query, self.limits, self.cost = query, limits, cost
        self.scan = Scan(Optimisations(), query, stream, limits)
        self.plan, self.code = self.scan.plan()
        if query.semantics is Semantics.NEXT:
            self.plan = self._extended()
        self.layout, self.slots = self._layout(coarse)
        components = 1 + sum(kind in (sase.COUNT, sase.SUM) for kind in self.plan.measure)
        # A product has as many digits as its factors, and the last one stays free for its sign.
        self.cells = self._cells(components, digits=self.plan.limb.shape[1] + 2)
        cost.events += len(stream)
        cost.peak_stored = max(cost.peak_stored, self.slots + int(self.layout.totalled.sum()))

    def rows(self) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        found: dict[tuple[int, int], list[int]] = {}
        for status in self._pauses():
            self._take(found)
            if status == GROW:
                self.cells = self._cells(self.cells.number.shape[1], 2 * self.cells.number.shape[2])
        if self.plan.slide == 0:
            found = {key: values for key, values in found.items() if values[-1]}
        columns = list(zip(*found.values(), strict=True)) or [()] * (len(self.plan.measure) + 2)
        trends, measured = list(columns[0]), [list(column) for column in columns[1:-1]]
        values = [self.scan.measures.values(aggregate, trends, measured) for aggregate in self.query.aggregates]
        bounds = self.scan.stream.window.bounds
        return [
            Row(*bounds(window), group, tuple(column[number] for column in values))
            for number, (window, group) in enumerate(found)
        ]

    def _pauses(self) -> Iterator[int]:
        return run(
            kernel.aggregate,
            lambda: (self.plan, self.layout, self.cells, self.code),
            self.limits,
            self._so_far,
            steps=2 * len(self.plan.event),
        )

    def _so_far(self) -> str:
        done, parts = int(self.cells.register[kernel.PART]), len(self.layout.part) - 1
        return f"{done:,} of {parts:,} partitions aggregated"

    def _take(self, found: dict[tuple[int, int], list[int]]) -> None:
        """Take finished rows away, and add up those of one group and window."""
        cells, count = self.cells, int(self.cells.register[kernel.ROWS])
        cells.register[kernel.ROWS] = 0
        groups = self.plan.group[self.layout.part[cells.row_part[:count]]].tolist()
        numbers = (integers(cells.row[:count, component]) for component in range(cells.row.shape[1]))
        columns = [next(numbers)]
        for at, kind in enumerate(self.plan.measure):
            columns.append(next(numbers) if kind in (sase.COUNT, sase.SUM) else cells.row_rank[:count, at].tolist())
        columns.append(cells.row_ended[:count].tolist())
        join = [_JOIN[kind] for kind in (sase.COUNT, *self.plan.measure, sase.COUNT)]
        for window, group, *row in zip(cells.row_window[:count].tolist(), groups, *columns, strict=True):
            before = found.get((window, group))
            found[window, group] = (
                row if before is None else [f(a, b) for f, a, b in zip(join, before, row, strict=True)]
            )

    # ------------------------------------------------------------------------------------------------------- arrays

    def _extended(self) -> sase.Plan:
        work = self.scan.work(self.plan, matches=False)
        pauses = run(
            sase.extend,
            lambda: (self.plan, work, self.code, None),
            self.limits,
            lambda: "the next events were being looked for",
            steps=len(self.plan.event),
        )
        assert list(pauses) == [DONE]
        return self.scan.extended(self.plan, work.extension)

    def _layout(self, coarse: bool) -> tuple[kernel.Layout, int]:
        plan, automaton = self.plan, self.query.automaton
        states = np.arange(len(automaton.states))
        guarded = np.array([automaton.follow[edge] != FREE for edge in self.scan.edges], bool)
        coarse &= self.query.semantics is Semantics.ANY
        total = (plan.program < 0) & ~guarded & coarse
        kept = np.isin(states, plan.source[~total])
        order = np.argsort(plan.event, kind="stable")
        is_kept = kept[plan.state[order]]
        slot = np.full(len(order), -1)
        slot[order[is_kept]] = np.arange(int(is_kept.sum()))
        begin = np.searchsorted(plan.event[order], np.arange(len(plan.time) + 1))
        ends = plan.event[plan.root]  # by group and place
        ends = ends[changes(plan.group[ends], plan.place[ends])]
        groups = int(plan.group.max(initial=-1)) + 1
        layout = kernel.Layout(
            instance=order,
            begin=begin,
            part=np.append(np.flatnonzero(changes(plan.part)), len(plan.time)),
            slot=slot,
            first_slot=np.concatenate([[0], np.cumsum(is_kept)])[begin],
            total=total,
            totalled=np.isin(states, plan.source[total]),
            last=np.isin(states, list(automaton.last)),
            moment=np.searchsorted(plan.group[ends], np.arange(groups + 1)),
            moments=plan.place[ends],
        )
        events = plan.event[order[is_kept]]
        return layout, most_within(plan.part[events], plan.place[events], plan.within)

    def _cells(self, components: int, digits: int) -> kernel.Cells:
        """Empty cells with so many digits, and the registers of those before."""
        states, measures = len(self.plan.first), len(self.plan.measure)
        needed = 8 * components * digits * (self.slots + 2 * states + ROW_BUFFER)
        if needed > available_memory():
            raise DidNotFinishError(
                f"did not finish: integers of {digits * BITS:,} bits for {self.slots:,} events need "
                f"{needed / 1e9:.1f} GB\nhint: fewer events in a window"
            )
        if hasattr(self, "cells"):
            register = self.cells.register
        else:
            register = np.zeros(16, np.int64)
            register[kernel.INSIDE] = -1

        def cells(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
            return np.zeros((count, components, digits), np.int64)

        def ranks(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
            return np.zeros((count, measures), np.int64)

        return kernel.Cells(
            register=register,
            number=cells(self.slots),
            rank=ranks(self.slots),
            total=cells(states),
            total_rank=ranks(states),
            fresh=cells(states),
            fresh_rank=ranks(states),
            scratch=cells(2),
            scratch_rank=ranks(2),
            row_part=np.zeros(ROW_BUFFER, np.int64),
            row_window=np.zeros(ROW_BUFFER, np.int64),
            row_ended=np.zeros(ROW_BUFFER, np.int64),
            row=cells(ROW_BUFFER),
            row_rank=ranks(ROW_BUFFER),
        )


_JOIN: dict[int, Callable[[int, int], int]] = {
    sase.COUNT: operator.add,
    sase.SUM: operator.add,
    sase.MINIMUM: min,
    sase.MAXIMUM: max,
}
