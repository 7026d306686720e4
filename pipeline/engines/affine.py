"""A query without conditions between neighbours, as linear steps on a few aggregates: its nodes and their tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.kernels import affine as kernel
from pipeline.engines.kernels.status import GROW
from pipeline.engines.measures import Measures
from pipeline.engines.negation_index import is_indexed
from pipeline.engines.stream import Stream
from pipeline.engines.symbols import make_symbols, no_symbols
from pipeline.engines.windows import RowBuffer, make_windows, row_buffer
from pipeline.events import Array
from pipeline.query.automaton import FREE, Automaton, Ways
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics

MAX_NODES = 256
_SEMANTICS = {Semantics.ANY: kernel.ANY, Semantics.NEXT: kernel.NEXT, Semantics.CONTIGUOUS: kernel.CONTIGUOUS}


@dataclass
class _Bits:
    """What was seen of a negated pattern: a bit a state that others follow, or, alone, that of a whole match."""

    automaton: Automaton

    def __post_init__(self) -> None:
        going_on = [state.index for state in self.automaton.states if state.index not in self.automaton.last]
        self.of_state = {state: 1 << number for number, state in enumerate(going_on)}
        self.seen = 1 << len(going_on)
        self.count = len(going_on) + 1


@dataclass
class _Carrier:
    """What has nodes: one for each combination of what was seen of the negated patterns that matter to it."""

    negations: tuple[int, ...]
    base: int
    shifts: tuple[int, ...]
    width: int


@dataclass
class Nodes:
    """The nodes of a query, and which of them each edge, beginning and ending may use."""

    query: Query
    apart: bool  # finished trends are kept apart from the states that they end in
    count: int = 0
    allows: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        automaton = self.query.automaton
        self.bits = [_Bits(negation.automaton) for negation in automaton.negations]
        self.apart |= self.query.semantics is not Semantics.ANY
        states = range(len(automaton.states))
        guarded = [ways for ways in automaton.first.values() if ways != FREE]
        self.start = self._carrier(guarded) if guarded else None
        out = {v: [ways for (source, _), ways in automaton.follow.items() if source == v] for v in states}
        ends = {v: [] if self.apart or v not in automaton.last else [automaton.last[v]] for v in states}
        self.states = [self._carrier([*out[v], *ends[v]]) for v in states]
        self.ended = {v: self._carrier([ways]) for v, ways in automaton.last.items() if self.apart and ways != FREE}
        self.final = -1
        if self.apart and FREE in automaton.last.values():
            self.final, self.count = self.count, self.count + 1

    @property
    def carriers(self) -> list[_Carrier]:
        """All that have nodes."""
        return [*([self.start] if self.start else []), *self.states, *self.ended.values()]

    def _carrier(self, guards: Iterable[Ways]) -> _Carrier:
        negations = tuple(sorted({n for ways in guards for way in ways for n in way}))
        shifts = np.cumsum([0, *(self.bits[n].count for n in negations)]).tolist()
        carrier = _Carrier(negations, self.count, tuple(shifts[:-1]), 1 << shifts[-1])
        self.count += carrier.width
        return carrier

    def opens(self, ways: Ways, carrier: _Carrier) -> list[bool]:
        """For each node of a carrier, whether these ways are free of what was seen."""

        def seen(n: int, q: int) -> bool:
            at = carrier.negations.index(n)
            return bool((q >> carrier.shifts[at]) & self.bits[n].seen)

        return [any(not any(seen(n, q) for n in way) for way in ways) for q in range(carrier.width)]

    def table(self, ways: Ways, carrier: _Carrier) -> int:
        """Where the table of these ways begins; -1 where all nodes may use them."""
        if ways == FREE:
            return -1
        self.allows += self.opens(ways, carrier)
        return len(self.allows) - carrier.width


def affine_refusal(query: Query) -> Refusal | None:
    """Why the trends of a query are not linear steps on a few aggregates."""
    if query.machine.adjacent:
        edge = next(iter(query.machine.adjacent.values()))
        return Refusal("WHERE", f"{edge[0].condition} joins neighbouring events")
    for guard in query.machine.guards:
        if not is_indexed(guard) or guard.machine.adjacent:
            return Refusal("PATTERN", "a negated pattern has conditions between its events, or with those around it")
    if any(len(guard.machine.automaton.states) > 20 for guard in query.machine.guards):
        return Refusal("PATTERN", "a negated pattern has more than 20 occurrences")
    if query.machine.guards and Nodes(query, apart=True).count > MAX_NODES:
        return Refusal("PATTERN", "its negated patterns can be seen in too many combinations")
    return None


def make_affine(
    nodes: Nodes, stream: Stream | None, measures: Measures, *, first_cell: int, quick: bool
) -> kernel.Affine:
    """The steps of a query over a stream, or over no events; `quick`: adding to one state alone is done as such."""
    query, automaton = nodes.query, nodes.query.automaton
    guards = [guard.machine for guard in query.machine.guards]
    symbols = make_symbols([query.machine, *guards], stream) if stream else no_symbols([query.machine, *guards])
    members, offers = symbols.members[0], symbols.members[1:]
    states = len(automaton.states)
    edges = sorted(automaton.follow, key=lambda edge: (edge[1], edge[0] != edge[1], edge[0]))
    offer = np.zeros((len(members), len(offers)), np.int64)
    for number, states_offered in enumerate(offers):
        offer[:, number] = states_offered @ (1 << np.arange(states_offered.shape[1]))
    carriers = [carrier for carrier in nodes.carriers if carrier.width > 1]
    bits = nodes.bits
    inner = [(number, state.index) for number, bit in enumerate(bits) for state in bit.automaton.states]
    opens = [nodes.table(automaton.follow[v, w], nodes.states[v]) for v, w in edges]
    starts = [
        nodes.table(automaton.first[v], nodes.start) if nodes.start and v in automaton.first else -1
        for v in range(states)
    ]
    result = [nodes.final] if nodes.final >= 0 else []
    for v, ways in automaton.last.items():
        carrier = nodes.ended.get(v) if nodes.apart else nodes.states[v]
        if carrier is not None:
            result += [carrier.base + q for q, is_open in enumerate(nodes.opens(ways, carrier)) if is_open]
    return kernel.Affine(
        time=stream.time if stream else np.zeros(0, np.int64),
        symbol=symbols.symbol,
        member=np.concatenate([[0], np.cumsum(members.sum(axis=1))]),
        state=np.ascontiguousarray(np.nonzero(members)[1]),
        quick=_quick(members, offer, nodes, measures) if quick else np.full(len(members), kernel.GENERAL),
        offer=offer,
        offers=np.any(offer, axis=1),
        into=np.searchsorted([w for _, w in edges], np.arange(states + 1)),
        source=_integers(v for v, _ in edges),
        open=_integers(opens),
        first=_integers(_kind(automaton.first, v) for v in range(states)),
        first_open=_integers(starts),
        last=_integers(_kind(automaton.last, v) for v in range(states)),
        base=_integers(carrier.base for carrier in nodes.states),
        width=_integers(carrier.width for carrier in nodes.states),
        start=nodes.start.base if nodes.start else 0,
        start_width=nodes.start.width if nodes.start else 0,
        final=nodes.final,
        final_base=_integers(_final(nodes, v) for v in range(states)),
        allows=np.array(nodes.allows, bool),
        carrier=_integers(carrier.base for carrier in carriers),
        carrier_width=_integers(carrier.width for carrier in carriers),
        carrier_negation=np.cumsum([0, *(len(carrier.negations) for carrier in carriers)]),
        negation=_integers(n for carrier in carriers for n in carrier.negations),
        shift=_integers(shift for carrier in carriers for shift in carrier.shifts),
        seen=_integers(bit.seen for bit in bits),
        mask=_integers(2 * bit.seen - 1 for bit in bits),
        negated=np.cumsum([0, *(len(bit.automaton.states) for bit in bits)]),
        negated_first=np.array([s in bits[n].automaton.first for n, s in inner], bool),
        negated_last=np.array([s in bits[n].automaton.last for n, s in inner], bool),
        before=_integers(
            sum(bits[n].of_state.get(v, 0) for v, w in bits[n].automaton.follow if w == s) for n, s in inner
        ),
        bit=_integers(bits[n].of_state.get(s, 0) for n, s in inner),
        nodes=nodes.count,
        semantics=_SEMANTICS[query.semantics],
        result=_integers(result),
        fresh=first_cell,
        scratch=first_cell + states,
        touched=np.zeros(2 * states, np.int64),
    )


def trend_ends(affine: kernel.Affine) -> Array:
    """The events that may end a trend."""
    last = affine.last != kernel.NO
    ends = np.array([last[affine.state[low:high]].any() for low, high in pairwise(affine.member)], bool)
    return np.flatnonzero(ends[affine.symbol])


def _quick(members: Array, offer: Array, nodes: Nodes, measures: Measures) -> Array:
    """The one state that a symbol's events add to, where nothing else is to do."""
    skips = nodes.query.semantics is not Semantics.CONTIGUOUS
    adds = nodes.query.semantics is Semantics.ANY and not nodes.apart and all(c.width == 1 for c in nodes.carriers)
    measured = np.logical_or.reduce([*measures.states, np.zeros(members.shape[1], bool)])
    quick = np.full(len(members), kernel.GENERAL)
    if skips:
        quick[~members.any(axis=1) & ~offer.any(axis=1)] = kernel.NOTHING
    if adds:
        alone = (members.sum(axis=1) == 1) & ~(members & measured).any(axis=1)
        quick[alone] = members.argmax(axis=1)[alone]
    return quick


def _final(nodes: Nodes, state: int) -> int:
    if state in nodes.ended:
        return nodes.ended[state].base
    return nodes.final if state in nodes.query.automaton.last else -1


def _is_guarded(ends: Any, state: int) -> bool:
    return bool(ends.get(state, FREE) != FREE)


def _kind(ends: Any, state: int) -> int:
    if state not in ends:
        return kernel.NO
    return kernel.GUARDED if _is_guarded(ends, state) else kernel.FREE


def _integers(values: Iterable[int]) -> Array:
    return np.array(list(values), np.int64)


class WindowAggregation:
    """Windows one by one, with a vector of aggregates each."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> None:
        self.query, self.stream, self.limits = query, stream, limits
        nodes = Nodes(query, apart=False)
        states = len(query.automaton.states)
        self.measures = Measures.needed(query, stream)
        self.affine = make_affine(
            nodes, stream, self.measures, first_cell=nodes.count, quick=stream.window.slide is not None
        )
        self.pool = Pool(self.measures, nodes.count + states + 1 + row_buffer(stream), limits)
        self.buffer = RowBuffer(stream, nodes.count + states + 1)
        cost.events += len(stream)
        cost.peak_stored = max(cost.peak_stored, nodes.count)

    def rows(self) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        found = Found(self.query, self.measures)
        windows = make_windows(self.stream, lambda: trend_ends(self.affine))
        weights = make_weights(self.measures)
        pauses = run(
            kernel.aggregate,
            lambda: (self.affine, windows, self.buffer.rows, self.pool.cells, weights),
            self.limits,
            self.buffer.so_far,
            steps=2 * len(self.stream),
        )
        for status in pauses:
            self.buffer.take(found, self.pool, windows)
            if status == GROW:
                self.pool.grow()
        return found.rows(self.stream.window)
