"""A-Seq: a counter for every prefix of the pattern, updated event by event; no event is kept and no trend is built.

Qi, Cao, Ray, Rundensteiner: Complex Event Analytics: Online Aggregation of Stream Sequence Patterns (SIGMOD 2014).

- Dynamic prefix counting (section 3.1): an event adds the counter of each prefix that it can extend to that of the
  prefix it makes. The counter of the whole pattern is the result.
- START marking (3.2): without SLIDE every START has counters of its own, which expire with it, so that an event costs
  as much as there are STARTs in the window. With SLIDE a window has counters of its own, so that an event costs as much
  as there are windows around it; windows that do not overlap are plain prefix counting.
- Recounting (3.3): an event of a negated type resets the counters of the prefixes just before it. The empty prefix is
  counted too, which a negation at the pattern's beginning resets.
- Hashed counters (3.4): each partition has its own.
- Prefix sharing (4.1): the sequences that a pattern stands for share the counters of prefixes that end alike. A Kleene
  pattern is the set of its sequences of every length that a window can hold, as in COGRA's experiments: each step back
  goes on in a further copy of the pattern's counters. Where a window may hold more than MAX_LENGTH events of Kleene
  operators, the run is refused (exit 3), since the reason is the query's kind and not what the machine can do.

The paper also shares counters between queries, which an engine that runs one query cannot. Where it differs:

- Events of equal time are never adjacent: what a time adds is kept apart until the time is over. A negated event
  concerns no prefix that ends at its own time. STARTs of equal time share their counters, since they expire together.
- Section 5 scales SUM by the final count, as if every prefix were completed as often as any other, and takes MAX and
  MIN over events that no match completed. On `a1 c2 d3 c4 d5` with c's 10 and 1, SUM over `SEQ(A, C, D)` is 21, not
  16.5. Here each counter has its own COUNT, SUM, MIN and MAX, which the next prefix takes over.
- Figure 5 updates the counters with `Exp < ts`, which are the expired ones; here, as in its example 3 and lemma 4,
  those with `Exp > ts`.
- A gap that may be crossed in several ways, each with negations of its own, has a counter for every set of ways that
  are still open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.kernels import aseq as kernel
from pipeline.engines.kernels.status import GROW
from pipeline.engines.kernels.windows import PART
from pipeline.engines.measures import Measures
from pipeline.engines.online import online_refusal
from pipeline.engines.stream import Stream
from pipeline.engines.symbols import make_symbols
from pipeline.engines.windows import RowBuffer, changes, make_windows, most_within, row_buffer
from pipeline.errors import CannotRunError
from pipeline.events import Array
from pipeline.query.automaton import Automaton, Ways
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics

MAX_LENGTH = 1000  # events that Kleene operators may take in a window: no longer pattern could be written out
MAX_WAYS = 8  # a gap with n ways has up to 2^n counters
_START = -1  # as a state: that of the empty prefix


class Aseq:
    """The engine of prefix counters."""

    name = "aseq"
    source = "Qi, Cao, Ray, Rundensteiner: A-Seq (SIGMOD 2014)"
    idea = "one aggregate a prefix of the pattern, in each window or for each first event"
    can = f"skip-till-any-match; Kleene operators up to {MAX_LENGTH:,} events in a window; negation of single events"

    def refuses(self, query: Query) -> Refusal | None:
        """Why this engine cannot run a query."""
        if query.semantics is not Semantics.ANY:
            return Refusal("SEMANTICS", f"it knows skip-till-any-match only, not {query.semantics.value}")
        pairs = [pair for edge in query.machine.adjacent.values() for pair in edge]
        if pairs:
            return Refusal("WHERE", f"{pairs[0].condition} joins neighbours, and a prefix counter keeps no events")
        for negation in query.automaton.negations:
            if _matching_alone(negation.automaton) is None:
                reason = f"recounting needs a negated pattern that single events match, which {negation.pattern} is not"
                return Refusal("PATTERN", reason)
        automaton = query.automaton
        gaps = chain(automaton.first.values(), automaton.last.values(), automaton.follow.values())
        if any(len(ways) > MAX_WAYS for ways in gaps):
            return Refusal("PATTERN", f"a gap can be crossed in more than {MAX_WAYS} ways, each with its negations")
        return online_refusal(query)

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The rows of every group and window in which a trend finished.

        Raises CannotRunError where a window of this stream may hold longer trends than are counted.
        """
        return Counting(query, stream, limits, cost).rows()


def _matching_alone(negated: Automaton) -> frozenset[int] | None:
    """The states whose single events match a pattern; None where it has matches without any of these."""
    alone = negated.first.keys() & negated.last.keys()
    reached = set(negated.first) - alone
    grown = True
    while grown:
        more = {w for v, w in negated.follow if v in reached} - alone - reached
        reached |= more
        grown = bool(more)
    return None if reached & negated.last.keys() else frozenset(alone)


class Prefixes:
    """The prefix counters of a pattern: by a prefix's last state, the ways on from it, and those still open."""

    def __init__(self, automaton: Automaton) -> None:
        self.negations = range(len(automaton.negations))
        self.number: dict[tuple[int, Ways, Ways], int] = {}
        self.grown: dict[int, list[int]] = {state: [] for state in (_START, *range(len(automaton.states)))}
        self.opened = {state: self._counters(_START, ways) for state, ways in automaton.first.items()}
        self.empty = len(self.number)  # those of the empty prefix come first
        self.extended: dict[int, list[tuple[int, int]]] = {state.index: [] for state in automaton.states}
        for (source, target), ways in automaton.follow.items():
            back = int(target <= source)
            self.extended[target] += [(counter, back) for counter in self._counters(source, ways)]
        self.complete = [c for state, ways in automaton.last.items() for c in self._counters(state, ways)]

    def _counters(self, state: int, ways: Ways) -> list[int]:
        """The counters of the prefixes that can still go one of these ways; all are open to a new prefix."""
        found = [ways]
        for still_open in found:
            fewer = {_without(still_open, negation) for negation in self.negations}
            found += [one for one in fewer if one and one not in found]
        numbers = [self.number.setdefault((state, ways, one), len(self.number)) for one in found]
        if numbers[0] not in self.grown[state]:
            self.grown[state].append(numbers[0])
        return numbers

    def moved(self) -> Array:
        """Per counter and negation, the counter that its prefixes go to; -1: they are over."""
        moved = np.empty((len(self.number), len(self.negations)), np.int64)
        for (state, ways, still_open), counter in self.number.items():
            for negation in self.negations:
                moved[counter, negation] = self.number.get((state, ways, _without(still_open, negation)), -1)
        return moved


def _without(ways: Ways, negation: int) -> Ways:
    return frozenset(way for way in ways if negation not in way)


class Counting:
    """One run: lays out the counters, then lets the kernel count."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> None:
        self.query, self.stream, self.limits, self.cost = query, stream, limits, cost
        self.measures = Measures.needed(query, stream)
        self.weights = make_weights(self.measures)
        symbols = make_symbols([query.machine, *(guard.machine for guard in query.machine.guards)], stream)
        self.symbol, (self.member, *negated) = symbols.symbol, symbols.members
        windows = make_windows(stream, lambda: self._bound_to(query.automaton.last))
        negates = self._negates(negated)
        matters = np.logical_or.reduce(np.hstack([self.member, negates]), axis=1)
        kept = np.flatnonzero(matters[self.symbol])
        columns = (stream.time, stream.place, self.symbol)
        # Where all events matter, the stream's own columns do.
        time, place, symbol = (column if len(kept) == len(stream) else column[kept] for column in columns)
        self.windows = windows._replace(place=place, begins=np.searchsorted(kept, windows.begins))
        self.plan = self._plan(kept, time, symbol, negates)
        sets = self._most_sets()
        cells = sets * (self.plan.empty + self.plan.rounds * self.plan.counters)
        self.pool = Pool(self.measures, 2 * cells + 2 + row_buffer(stream), limits)
        self.buffer = RowBuffer(stream, 2 * cells + 2)
        self.work = kernel.Work(
            begin=np.zeros(sets, np.int64),
            deep=np.zeros(sets, np.int64),
            fresh=cells,
            scratch=2 * cells,
            result=2 * cells + 1,
        )
        self.register = self.buffer.rows.register
        self.register[PART] = -1
        kernel.next_part(self.windows, self.buffer.rows)
        cost.events += len(stream)

    def rows(self) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        found = Found(self.query, self.measures)
        for status in self._pauses():
            self.buffer.take(found, self.pool, self.windows)
            if status == GROW:
                self.pool.grow()
        self.cost.peak_stored = max(self.cost.peak_stored, int(self.register[kernel.PEAK]))
        return found.rows(self.stream.window)

    def _pauses(self) -> Iterator[int]:
        return run(
            kernel.count,
            lambda: (self.windows, self.plan, self.work, self.buffer.rows, self.pool.cells, self.weights),
            self.limits,
            lambda: f"{int(self.register[kernel.AT]):,} of {len(self.plan.event):,} events counted",
            steps=len(self.plan.event) * len(self.work.begin) * self.plan.rounds,
        )

    def _negates(self, members: Sequence[Array]) -> Array:
        """Per symbol and negation, whether an event is a match of it."""
        negates = np.zeros((len(self.member), len(members)), bool)
        for number, negation in enumerate(self.query.automaton.negations):
            alone = _matching_alone(negation.automaton)
            negates[:, number] = members[number][:, sorted(alone or ())].any(axis=1)
        return negates

    def _plan(self, kept: Array, time: Array, symbol: Array, negates: Array) -> kernel.Plan:
        automaton, prefixes = self.query.automaton, Prefixes(self.query.automaton)
        states, empty = range(len(automaton.states)), prefixes.empty
        extended = [prefixes.extended[state] for state in states]
        return kernel.Plan(
            kept,
            time,
            symbol,
            *_lists(map(np.flatnonzero, self.member)),
            *_lists(map(np.flatnonzero, negates)),
            *_lists(prefixes.opened.get(state, ()) for state in states),
            *_lists([counter - empty for counter, _ in some] for some in extended),
            _lists([back for _, back in some] for some in extended)[1],
            *_lists([counter - empty for counter in prefixes.grown[state]] for state in states),
            last=np.isin(states, list(automaton.last)),
            complete=np.array(prefixes.complete, np.int64) - empty,
            begun=np.array(prefixes.grown[_START], np.int64),
            moved=prefixes.moved(),
            empty=empty,
            counters=len(prefixes.number) - empty,
            rounds=1 + self._most_repeats(),
        )

    def _most_sets(self) -> int:
        """How many sets of counters are alive at once."""
        window = self.stream.window
        if window.slide is not None:
            return -(-window.within // window.slide)
        return self._most_places(self._bound_to(self.query.automaton.first))

    def _most_repeats(self) -> int:
        """How many steps back in Kleene operators a trend can take: each to a later event of such a part."""
        repeated = {target for source, target in self.query.automaton.follow if target <= source}
        if not repeated:
            return 0
        most = self._most_places(self._bound_to(repeated))
        if most > MAX_LENGTH:
            raise CannotRunError(
                f"aseq cannot run this query: PATTERN: Kleene operators may take {most:,} events in a window of this "
                f"input, and sequences of up to {MAX_LENGTH:,} are counted\n"
                "hint: a shorter window, or an engine that does not count each length by itself, as cogra"
            )
        return most

    def _bound_to(self, states: Iterable[int]) -> Array:
        """The events that can be bound to one of these states."""
        return np.flatnonzero(np.logical_or.reduce(self.member[:, list(states)], axis=1)[self.symbol])

    def _most_places(self, events: Array) -> int:
        """How many distinct places these events of one partition have at most in a window."""
        part, place = self.stream.part[events], self.stream.place[events]
        new = changes(part, place)
        return most_within(part[new], place[new], self.stream.window.within)


def _lists(lists: Iterable[Iterable[int]]) -> tuple[Array, Array]:
    """Lists one after the other: where each begins, and their items."""
    found = [list(one) for one in lists]
    return np.cumsum([0, *map(len, found)]), np.array([item for one in found for item in one], np.int64)
