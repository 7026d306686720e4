"""Sequence scan: the arrays that SASE's construction runs over; stacks, pointers, programs, measures, accumulators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.contract import Limits
from pipeline.engines.kernels import sase as kernel
from pipeline.engines.kernels.machine import Code
from pipeline.engines.measures import Measures
from pipeline.engines.negation import Ask
from pipeline.engines.negation_index import index_negations, is_indexed, matching, negation_programs
from pipeline.engines.programs import Programs
from pipeline.engines.stream import Stream
from pipeline.engines.windows import NEVER, changes, most_within
from pipeline.errors import DidNotFinishError
from pipeline.events import Array
from pipeline.memory import available_memory
from pipeline.query.automaton import Ways
from pipeline.query.checked import Machine, Query
from pipeline.query.tree import Semantics

MATCH_BUFFER = 65_536
ROW_BUFFER = 16_384


@dataclass(frozen=True)
class Optimisations:
    """SASE's optimisations, each on or off, as in the paper's own comparison."""

    stacks: bool = True  # one stack a state, or a search through all earlier events
    partitions: bool = True  # one stack a state and partition, or equivalence tested in construction
    window: bool = True  # window tested while constructing, or on finished trends
    predicates: bool = True  # predicates tested in scan and construction, or on finished trends


class _Stacks(NamedTuple):
    event: Array
    state: Array
    alive: Array
    local: Array
    start: Array


class Scan:
    """What a query makes of a stream before construction."""

    def __init__(self, options: Optimisations, query: Query, stream: Stream, limits: Limits) -> None:
        self.options, self.query, self.machine, self.limits = options, query, query.machine, limits
        self.stream = stream if options.partitions else _by_time(stream)
        self.edges = sorted(query.automaton.follow, key=lambda edge: (edge[1], edge[0]))
        self.programs = Programs(dict(self.stream.columns), len(stream))
        self.measures = Measures.needed(query, self.stream)
        self.ask = Ask(query, self.stream, self.edges, limits) if _needs_asking(self.machine) else None

    def _stacks(self) -> _Stacks:
        """Sequence scan: the events that each state can be bound to, in time order."""
        events, states, alive, local = [], [], [], []
        for state in self.query.automaton.states:
            typed = self.stream.is_of(state)
            satisfied = matching(self.machine, state.index, self.stream)
            member = satisfied if self.options.predicates else typed
            events.append(np.flatnonzero(member) if self.options.stacks else np.arange(len(typed)))
            states.append(np.full(len(events[-1]), state.index))
            alive.append(member[events[-1]])
            local.append(satisfied[events[-1]])
        start = np.cumsum([0, *map(len, events)])
        parts = [np.concatenate(part) for part in (events, states, alive, local)]
        return _Stacks(parts[0], parts[1], parts[2], parts[3], start)

    def plan(self) -> tuple[kernel.Plan, Code]:
        """The arrays that a search reads."""
        stream, query, automaton = self.stream, self.query, self.query.automaton
        stacks = self._stacks()
        self._check_memory(stacks)
        states = len(automaton.states)
        by_start = np.lexsort((stream.place, stream.group))
        start = np.empty(len(stream), np.int64)
        start[by_start] = np.cumsum(changes(stream.group[by_start], stream.place[by_start])) - 1
        pointer = np.cumsum([0, *(stacks.start[w + 1] - stacks.start[w] for _, w in self.edges)])
        forward_pointer = np.cumsum([0, *(stacks.start[v + 1] - stacks.start[v] for v, _ in self.edges)])
        out = sorted(range(len(self.edges)), key=lambda edge: self.edges[edge])
        others = [other for other in self.machine.other if len(other.references) == 2]
        endings = np.isin(stacks.state, list(automaton.last))
        root = np.flatnonzero(endings)
        root = root[np.lexsort((stream.place[stacks.event[root]], stream.group[stacks.event[root]]))]
        low, high = self._pointers(stacks)
        window = stream.window
        limbs = [measure.limbs for measure in self.measures.sums]
        depth = max((len(limb) for limb in limbs), default=1)
        programs = [
            self.programs.add((p.condition, p.earlier, p.later) for p in self.machine.adjacent.get(edge, ()))
            for edge in self.edges
        ]
        other_programs = [self.programs.add([(o.condition, *o.references)]) for o in others]  # type: ignore[list-item]
        negated_programs = negation_programs(self.machine, self.programs)
        code = self.programs.compiled()
        index = index_negations(self.machine, stream, negated_programs, code, self.limits, NEVER)
        way, negation, negated = self._ways(index.row)
        plan = kernel.Plan(
            time=stream.time,
            place=stream.place,
            part=stream.part,
            group=stream.group,
            tie=stream.tie,
            start=start,
            event=stacks.event,
            state=stacks.state,
            alive=stacks.alive,
            local=stacks.local,
            stack=stacks.start,
            candidate=np.arange(len(stacks.event)),
            into=np.searchsorted([w for _, w in self.edges], np.arange(states + 1)),
            source=_integers(v for v, _ in self.edges),
            pointer=pointer,
            low=low,
            high=high,
            out=np.searchsorted([self.edges[edge][0] for edge in out], np.arange(states + 1)),
            out_edge=_integers(out),
            target=_integers(w for _, w in self.edges),
            forward_pointer=forward_pointer,
            forward=self._forward(stacks),
            program=_integers(programs),
            first=np.isin(np.arange(states), list(automaton.first)),
            root=root,
            way=way,
            negation=negation,
            negated=negated,
            after_time=index.after_time,
            after_place=index.after_place,
            before_place=index.before_place,
            other_program=_integers(other_programs),
            other_first=_flags([o.states[0] for o in others], states),
            other_second=_flags([o.states[1] for o in others], states),
            other_ordered=np.array([o.ordered for o in others], bool),
            measure=_integers(self.measures.kinds),
            measured=np.array(self.measures.states, bool).reshape(len(self.measures.kinds), states),
            weight=np.array(self.measures.weights, np.int64).reshape(len(self.measures.kinds), len(stream)),
            limb=np.array([_padded(limb, depth) for limb in limbs], np.int64).reshape(len(limbs), depth, len(stream)),
            within=window.within,
            slide=window.slide or 0,
            first_window=0 if window.in_events else -NEVER,
            partitioned=self.options.partitions,
            sorted=query.semantics is not Semantics.NEXT,
            push_window=self.options.window,
            push_predicates=self.options.predicates,
            asks_edge=np.array([self.ask is not None and self.ask.asks_edge(edge) for edge in self.edges], bool),
            asks_window=self.ask is not None and self.ask.asks_window,
            asks_trend=self.ask is not None and self.ask.asks_trend,
        )
        return plan, code

    def _check_memory(self, stacks: _Stacks) -> None:
        """Give up before the machine runs out of memory."""
        sizes = np.diff(stacks.start)
        pointers = sum(2 * int(sizes[w]) + int(sizes[v]) for v, w in self.edges)
        sums = sum(len(measure.limbs) for measure in self.measures.sums)
        needed = 8 * (len(self.stream) * (8 + len(self.measures.kinds) + sums) + 5 * len(stacks.event) + pointers)
        free = available_memory()
        if needed > free:
            raise DidNotFinishError(
                f"did not finish: stacks and pointers of {len(self.stream):,} events need about "
                f"{needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free\n"
                "hint: fewer events, or a query with fewer occurrences"
            )

    def _pointers(self, stacks: _Stacks) -> tuple[Array, Array]:
        """Per edge and instance of its target: the range of instances on its source's stack that may come before."""
        low, high = _earlier(self.stream, self.query.semantics, self.options.partitions)
        lows, highs = [], []
        for v, w in self.edges:
            before = stacks.event[stacks.start[v] : stacks.start[v + 1]]
            events = stacks.event[stacks.start[w] : stacks.start[w + 1]]
            lows.append(np.searchsorted(before, low[events]) + stacks.start[v])
            highs.append(np.searchsorted(before, high[events]) + stacks.start[v])
        return _joined(lows), _joined(highs)

    def _forward(self, stacks: _Stacks) -> Array:
        if self.query.semantics is not Semantics.NEXT:
            return np.zeros(0, np.int64)
        later = self.stream.tie_end
        if not self.options.partitions:
            later = np.searchsorted(self.stream.time, self.stream.time, side="right")
        forward = []
        for v, w in self.edges:
            events = stacks.event[stacks.start[v] : stacks.start[v + 1]]
            after = stacks.event[stacks.start[w] : stacks.start[w + 1]]
            forward.append(np.searchsorted(after, later[events]) + stacks.start[w])
        return _joined(forward)

    def extended(self, plan: kernel.Plan, extension: Array) -> kernel.Plan:
        """For skip-till-next-match, the candidates before an instance are those that its time first extends."""
        candidate = np.lexsort((extension, plan.state))
        lows, highs = [], []
        for v, w in self.edges:
            sources = candidate[plan.stack[v] : plan.stack[v + 1]]
            times = plan.tie[plan.event[plan.stack[w] : plan.stack[w + 1]]]
            lows.append(np.searchsorted(extension[sources], times, side="left") + plan.stack[v])
            highs.append(np.searchsorted(extension[sources], times, side="right") + plan.stack[v])
        return plan._replace(candidate=candidate, low=_joined(lows), high=_joined(highs))

    def _ways(self, row: dict[int, int]) -> tuple[Array, Array, Array]:
        """The alternatives of each edge, beginning and ending, by the rows of the index."""
        automaton = self.query.automaton
        states = range(len(automaton.states))
        owners: list[Ways] = [automaton.follow[edge] for edge in self.edges]
        owners += [automaton.first.get(state, frozenset()) for state in states]
        owners += [automaton.last.get(state, frozenset()) for state in states]
        way, negation, negated = [0], [0], []
        for ways in owners:
            # A negation that is asked for in Python counts as absent here: it is tested besides.
            for alternative in ways if all(n in row for one in ways for n in one) else [frozenset[int]()]:
                negated += [row[n] for n in sorted(alternative)]
                negation.append(len(negated))
            way.append(len(negation) - 1)
        return _integers(way), _integers(negation), _integers(negated)

    def work(self, plan: kernel.Plan, *, matches: bool) -> kernel.Work:
        """The arrays that a search writes."""
        window = self.stream.window
        measures, sums, limbs = len(plan.measure), plan.limb.shape[0], plan.limb.shape[1]
        deep = _longest(self.stream, self.edges, len(self.query.automaton.states))
        slots = window.within // window.slide + 2 if window.slide else _most_starts(plan)
        rows = slots + ROW_BUFFER
        register = np.zeros(16, np.int64)
        register[kernel.DEPTH] = register[kernel.GROUP] = -1
        register[kernel.MAX_TRENDS] = NEVER if self.limits.trends is None else self.limits.trends
        empty = np.zeros
        return kernel.Work(
            register=register,
            path=empty(deep, np.int64),
            edge=empty(deep, np.int64),
            cursor=empty(deep, np.int64),
            stop=empty(deep, np.int64),
            run=empty((deep, measures), np.int64),
            run_sum=empty((deep, sums, limbs), np.int64),
            slot_id=np.full(slots, NEVER),
            slot_place=empty(slots, np.int64),
            slot_count=empty(slots, np.int64),
            slot=empty((slots, measures), np.int64),
            slot_sum=empty((slots, sums, limbs), np.int64),
            active=empty(slots + 1, np.int64),
            row_group=empty(rows, np.int64),
            row_window=empty(rows, np.int64),
            row_count=empty(rows, np.int64),
            row=empty((rows, measures), np.int64),
            row_sum=empty((rows, sums, limbs), np.int64),
            match_length=empty(MATCH_BUFFER if matches else 0, np.int64),
            match=empty(MATCH_BUFFER + deep if matches else 0, np.int64),
            extension=empty(len(plan.event), np.int64),
        )


def _needs_asking(machine: Machine) -> bool:
    return not all(map(is_indexed, machine.guards)) or any(len(other.references) > 2 for other in machine.other)


def _by_time(stream: Stream) -> Stream:
    """The stream as one sequence, for stacks that are not partitioned."""
    order = np.argsort(stream.time, kind="stable")
    by_time = replace(
        stream,
        order=stream.row[order],
        time=stream.time[order],
        position=None if stream.position is None else stream.position[order],
        types=tuple(evaluate.take(column, order) for column in stream.types),  # type: ignore[misc]
        columns={name: evaluate.take(column, order) for name, column in stream.columns.items()},
    )
    # Partitions are no longer ranges of events, so that these are not what the stream would say of itself.
    for name in ("part", "group", "tie", "tie_end"):
        by_time.__dict__[name] = getattr(stream, name)[order]
    return by_time


def _earlier(stream: Stream, semantics: Semantics, partitioned: bool) -> tuple[Array, Array]:
    """Per event, the range of events among which those adjacent before it lie."""
    if partitioned:
        high = stream.tie
        if semantics is not Semantics.CONTIGUOUS:
            return np.searchsorted(stream.part, stream.part), high
        before = np.maximum(high - 1, 0)
        low = np.where((high > 0) & (stream.part[before] == stream.part), stream.tie[before], high)
        return low, high
    high = np.searchsorted(stream.time, stream.time)
    if semantics is not Semantics.CONTIGUOUS:
        return np.zeros_like(high), high
    # The time before in the event's own partition, among the events of all partitions.
    by_part = np.lexsort((stream.time, stream.part))
    part, times = stream.part[by_part], stream.time[by_part]
    begins = changes(part, times)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(part)), 0))
    before = np.maximum(first - 1, 0)
    has_before = (first > 0) & (part[before] == part)
    low, end = np.empty_like(high), np.empty_like(high)
    low[by_part] = np.where(has_before, np.searchsorted(stream.time, times[before], side="left"), 0)
    end[by_part] = np.where(has_before, np.searchsorted(stream.time, times[before], side="right"), 0)
    return low, end


def _longest(stream: Stream, edges: list[tuple[int, int]], states: int) -> int:
    """How many events a trend can have at most."""
    if all(v < w for v, w in edges):
        return states + 1
    first_of_each_time = np.unique(stream.tie, return_index=True)[1]
    return int(np.bincount(stream.part[first_of_each_time]).max(initial=0)) + 2


def _most_starts(plan: kernel.Plan) -> int:
    """The most distinct places of a group that one moving window can hold."""
    order = np.lexsort((plan.place, plan.group))
    order = order[changes(plan.group[order], plan.place[order])]
    return most_within(plan.group[order], plan.place[order], plan.within)


def _integers(values: Any) -> Array:
    return np.array(list(values), np.int64)


def _flags(states: list[frozenset[int]], count: int) -> Array:
    flags = np.zeros((len(states), count), bool)
    for row, members in enumerate(states):
        flags[row, list(members)] = True
    return flags


def _padded(limbs: Array, depth: int) -> Array:
    return np.vstack([limbs, np.zeros((depth - len(limbs), limbs.shape[1]), np.int64)])


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
