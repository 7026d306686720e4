"""Online aggregation over a scan: what GRETA and COGRA share; they differ in what they keep an aggregate of."""

from __future__ import annotations

import numpy as np

from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Refusal, Row, overlap_refusal
from pipeline.engines.kernels import online as kernel
from pipeline.engines.kernels import sase
from pipeline.engines.kernels.status import DONE, GROW
from pipeline.engines.negation_index import is_indexed
from pipeline.engines.scan import Optimisations, Scan
from pipeline.engines.stream import Stream
from pipeline.engines.windows import RowBuffer, make_windows, most_within, row_buffer
from pipeline.query.automaton import FREE
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics


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
        states = len(query.automaton.states)
        self.weights = make_weights(self.scan.measures)
        first = self.slots + 2 * states
        self.pool = Pool(self.scan.measures, first + 2 + row_buffer(stream), limits)
        self.places = kernel.Places(self.slots, self.slots + states, first, first + 1)
        self.windows = make_windows(stream, lambda: self.plan.event[self.plan.root])
        self.buffer = RowBuffer(stream, first + 2)
        cost.events += len(stream)
        cost.peak_stored = max(cost.peak_stored, self.slots + int(self.layout.totalled.sum()))

    def rows(self) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        found = Found(self.query, self.scan.measures)
        pauses = run(
            kernel.aggregate,
            lambda: (
                *(self.plan, self.layout, self.windows, self.places),
                *(self.buffer.rows, self.pool.cells, self.weights, self.code),
            ),
            self.limits,
            self.buffer.so_far,
            steps=2 * len(self.plan.event),
        )
        for status in pauses:
            self.buffer.take(found, self.pool, self.windows)
            if status == GROW:
                self.pool.grow()
        return found.rows(self.scan.stream.window)

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
        layout = kernel.Layout(
            instance=order,
            begin=begin,
            slot=slot,
            first_slot=np.concatenate([[0], np.cumsum(is_kept)])[begin],
            total=total,
            totalled=np.isin(states, plan.source[total]),
            last=np.isin(states, list(automaton.last)),
        )
        events = plan.event[order[is_kept]]
        return layout, most_within(plan.part[events], plan.place[events], plan.within)
