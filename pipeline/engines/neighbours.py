"""Aggregation under contiguous and skip-till-next-match, whatever neighbours must satisfy: one pass for all windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Row, overlap_refusal
from pipeline.engines.edges import make_edges
from pipeline.engines.kernels import extensions, numbers, paths
from pipeline.engines.kernels import neighbours as kernel
from pipeline.engines.kernels.machine import Code
from pipeline.engines.kernels.status import DONE, GROW
from pipeline.engines.measures import Measures
from pipeline.engines.stream import Stream
from pipeline.engines.symbols import Symbols, make_symbols
from pipeline.events import Array
from pipeline.query.automaton import Automaton
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics

ROW_BUFFER = 512
COUNT_BUFFER = 65_536  # rows of one word each
CELLS = 1024  # to begin with


def refusal(query: Query) -> str | None:
    """Why this aggregation cannot run a query."""
    if query.semantics is Semantics.ANY:
        return "under skip-till-any-match an event may be extended at any later time"
    if query.machine.other:
        return f"{query.machine.other[0].condition} joins events that are not neighbours"
    if query.machine.guards:
        return "the pattern has a negation"
    if query.tree.slide is None:
        return "without SLIDE every time has a window of its own"
    overlapping = overlap_refusal(query)
    return overlapping.reason if overlapping else None


class NeighbourAggregation:
    """One run: lays out what kernels read, finds what extends each event, then aggregates in time order."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> None:
        self.query, self.stream, self.limits, self.cost = query, stream, limits, cost
        self.measures = Measures.needed(query, stream)

    def rows(self) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        symbols = make_symbols([self.query.machine], self.stream)
        one_each = len(self.query.automaton.states) == 1 and not _has_ties(self.stream)
        plan = _plan(self.query, self.stream, symbols, alone=one_each and self.query.semantics is Semantics.NEXT)
        edges, code = make_edges(self.query.machine, self.stream)
        if one_each and not self.measures.kinds and (plan.contiguous or _is_chain(edges)):
            return self._counted(plan, edges, code)
        weights = make_weights(self.measures)
        self.work = _work(plan, self._extension(symbols, plan, edges, code))
        self.pool = Pool(self.measures, len(self.work.next), self.limits)
        found, register = Found(self.query, self.measures), self.work.register
        pauses = run(
            kernel.aggregate,
            lambda: (plan, edges, self.work, self.pool.cells, weights, code),
            self.limits,
            lambda: f"{int(register[kernel.AT]):,} of {len(self.stream):,} events aggregated",
            steps=2 * len(self.stream),
        )
        for status in pauses:
            self._take(found)
            if status == GROW:
                self._grow()
        self.cost.events += len(self.stream)
        self.cost.peak_stored = max(self.cost.peak_stored, int(register[kernel.USED]) - ROW_BUFFER)
        return found.rows(self.stream.window)

    def _counted(self, plan: kernel.Plan, edges: kernel.Edges, code: Code) -> list[Row]:
        """The rows where each event is extended by one other at most, and trends are only counted."""
        found, work = Found(self.query, self.measures), _paths(plan)
        register = work.register
        pauses = run(
            paths.count,
            lambda: (plan, edges, work, code),
            self.limits,
            lambda: f"{int(register[kernel.AT]):,} of {len(self.stream):,} events aggregated",
            steps=2 * len(self.stream),
        )
        for _ in pauses:
            rows = slice(int(register[kernel.ROWS]))
            register[kernel.ROWS] = 0
            groups = self.stream.part_group[work.row_part[rows]]
            found.add_exact(work.row_window[rows], groups, work.row_count[rows, None, None])
        self.cost.events += len(self.stream)
        self.cost.peak_stored = max(self.cost.peak_stored, int(register[paths.PEAK]))
        return found.rows(self.stream.window)

    def _extension(self, symbols: Symbols, plan: kernel.Plan, edges: kernel.Edges, code: Code) -> Array:
        """Where the time begins that first extends each event, by its states; under contiguous it is the next one."""
        if plan.contiguous:
            return np.empty((0, 0), np.int32)
        register = np.zeros(extensions.REGISTERS, np.int64)
        register[extensions.PART], register[extensions.AT] = len(self.stream.part_group), len(self.stream)
        extension = np.empty((int(np.diff(plan.bound).max(initial=0)), len(self.stream)), np.int32)
        chain = plan.alone and len(extension) > 0 and _is_chain(edges)
        arguments: tuple[Any, ...] = plan, edges, register, extension
        if not chain:
            arguments = plan, edges, _index(self.query.automaton, symbols, register, edges), extension, code
        pauses = run(
            extensions.chain if chain else extensions.extend,
            lambda: arguments,
            self.limits,
            lambda: f"next events were being looked for, {int(register[extensions.AT]):,} events are left",
            steps=len(self.stream),
        )
        assert list(pauses) == [DONE]
        return extension

    def _take(self, found: Found) -> None:
        count = int(self.work.register[kernel.ROWS])
        self.work.register[kernel.ROWS] = 0
        groups = self.stream.part_group[self.work.row_part[:count]]
        self.pool.add_to(found, self.work.row_window[:count], groups, 0)

    def _grow(self) -> None:
        if numbers.is_crowded(self.pool.cells.numbers):
            self.pool.grow()
        else:
            self.work, self.pool = _doubled(self.work), self._doubled(self.pool)

    def _doubled(self, pool: Pool) -> Pool:
        """A pool of twice as many cells, the first of which are those of another one."""
        old = pool.cells.numbers
        new = Pool(self.measures, 2 * len(pool.cells.rank), self.limits)
        room = -1
        while room < new.cells.numbers.digits.shape[1] < old.digits.shape[1]:
            room = new.cells.numbers.digits.shape[1]
            new.grow()
        room = min(new.cells.numbers.digits.shape[1], old.digits.shape[1])
        for block in np.flatnonzero(old.size > room):
            numbers.settle(old, int(block))
            numbers.make_floats(old, int(block))
        cells, size = new.cells.numbers, len(old.size)
        cells.digits[:size, :room] = old.digits[:, :room]
        cells.size[:size], cells.bound[:size] = old.size, old.bound
        cells.mantissa[:size], cells.exponent[:size] = old.mantissa, old.exponent
        cells.register[numbers.LARGEST] = old.size.max()
        new.cells.rank[: len(pool.cells.rank)] = pool.cells.rank
        return new


def _plan(query: Query, stream: Stream, symbols: Symbols, *, alone: bool) -> kernel.Plan:
    automaton, window, (member,) = query.automaton, stream.window, symbols.members
    states = np.arange(len(automaton.states))
    assert window.slide is not None
    return kernel.Plan(
        time=stream.time,
        place=stream.place,
        begins=stream.begins,
        symbol=symbols.symbol,
        bound=np.concatenate([[0], np.cumsum(member.sum(axis=1))]),
        state=np.ascontiguousarray(np.nonzero(member)[1]),
        first=np.isin(states, list(automaton.first)),
        last=np.isin(states, list(automaton.last)),
        open=np.isin(states, [v for v, _ in automaton.follow]),
        within=window.within,
        slide=window.slide,
        first_window=0 if window.in_events else -(2**62),
        contiguous=query.semantics is Semantics.CONTIGUOUS,
        alone=alone,
    )


def _is_chain(edges: kernel.Edges) -> bool:
    """Whether one state follows itself where a single column is in order."""
    return edges.number.tolist() == [[0]] and bool(edges.x_key[0] == edges.y_key[0] >= 0 > edges.x_code[0])


def _has_ties(stream: Stream) -> bool:
    tied = stream.time[1:] == stream.time[:-1]
    tied[stream.begins[1:-1] - 1] = False
    return bool(tied.any())


def _index(automaton: Automaton, symbols: Symbols, register: Array, edges: kernel.Edges) -> extensions.Index:
    (member,) = symbols.members
    follow = list(automaton.follow)
    known: dict[object, int] = {}
    of_edge = np.full(len(follow), -1)
    kept: list[tuple[int, int, float, Array]] = []
    for edge, (_, w) in enumerate(follow):
        if edges.program[edge] < 0:
            how = (int(edges.y_code[edge]), int(edges.y_key[edge]), float(edges.sign[edge]))
            of_edge[edge] = known.setdefault((*how, member[:, w].tobytes()), len(known))
            if of_edge[edge] == len(kept):
                kept.append((*how, member[:, w]))
    sizes = [_stack_sizes(edges, y_code, y_key) for y_code, y_key, _, _ in kept]
    ends = np.cumsum(np.concatenate([[0], *sizes]))
    indexed = np.array([members for *_, members in kept], bool).reshape(len(kept), len(member)).T
    # What is found by an index keeps the search for the others short.
    out = sorted(range(len(follow)), key=lambda edge: (follow[edge][0], of_edge[edge] < 0))
    return extensions.Index(
        register=register,
        out=np.searchsorted([follow[edge][0] for edge in out], np.arange(len(automaton.states) + 1)),
        out_edge=np.array(out, np.int64),
        target=np.array([w for _, w in follow], np.int64),
        member=member,
        of_edge=of_edge,
        code=np.array([y_code for y_code, *_ in kept], np.int64),
        key=np.array([y_key for _, y_key, *_ in kept], np.int64),
        sign=np.array([sign for _, _, sign, _ in kept], np.float64),
        first=np.cumsum([0, *map(len, sizes)]),
        indexed=np.concatenate([[0], np.cumsum(indexed.sum(axis=1))]),
        entry=np.ascontiguousarray(np.nonzero(indexed)[1]),
        begin=ends[:-1],
        height=np.zeros(len(ends) - 1, np.int32),
        stack_key=np.empty(int(ends[-1]), np.float64),
        stack_tie=np.empty(int(ends[-1]), np.int32),
    )


def _stack_sizes(edges: kernel.Edges, code: int, key: int) -> Array:
    """How many events the stack of each code can hold."""
    if code < 0:
        return np.array([edges.key.shape[1] if key >= 0 else 1])
    count = np.bincount(edges.code[code] + 1, minlength=int(edges.code.max(initial=-1)) + 2)[1:]
    return count if key >= 0 else np.ones_like(count)


def _paths(plan: kernel.Plan) -> paths.Paths:
    register = np.zeros(paths.REGISTERS, np.int64)
    register[kernel.PART] = -1
    longest, live = int(np.diff(plan.begins).max(initial=0)), _live_slides(plan)
    return paths.Paths(
        register=register,
        key=np.empty(longest, np.float64),
        slide=np.empty(longest, np.int64),
        trends=np.empty(longest, np.int32),
        older=np.zeros(live, np.int64),
        result=np.zeros(live, np.int64),
        row_part=np.zeros(COUNT_BUFFER, np.int64),
        row_window=np.zeros(COUNT_BUFFER, np.int64),
        row_count=np.zeros(COUNT_BUFFER, np.int64),
    )


def _live_slides(plan: kernel.Plan) -> int:
    """A power of two above the number of slides that an event's windows have."""
    return int(1 << (plan.within // plan.slide + 1).bit_length())


def _work(plan: kernel.Plan, extension: Array) -> kernel.Work:
    register = np.zeros(kernel.REGISTERS, np.int64)
    for lists in (kernel.PART, kernel.WAITING, kernel.RESULTS, kernel.FREE):
        register[lists] = -1
    register[kernel.USED], register[kernel.SPARE] = ROW_BUFFER, CELLS
    live = _live_slides(plan)
    cells = ROW_BUFFER + CELLS
    return kernel.Work(
        register=register,
        plenty=live * (int(np.diff(plan.bound).max(initial=0)) + 1),
        extension=extension,
        head=np.full(1 if plan.contiguous else len(plan.time) + 1, -1, np.int32),
        next=np.empty(cells, np.int32),
        event=np.empty(cells, np.int32),
        state=np.empty(cells, np.int32),
        slide=np.empty(cells, np.int64),
        own=np.full(live, -1, np.int32),
        result=np.full(live, -1, np.int32),
        row_part=np.zeros(ROW_BUFFER, np.int64),
        row_window=np.zeros(ROW_BUFFER, np.int64),
    )


def _doubled(work: kernel.Work) -> kernel.Work:
    work.register[kernel.SPARE] += len(work.next)
    next_, event, state, slide = (
        np.concatenate([array, np.empty_like(array)]) for array in (work.next, work.event, work.state, work.slide)
    )
    return work._replace(next=next_, event=event, state=state, slide=slide)
