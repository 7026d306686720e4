"""Negated patterns that no index answers: linked to the trend, guarded or compared themselves; searched in Python."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pipeline.engines import evaluate
from pipeline.engines.contract import Limits
from pipeline.engines.negation_index import is_indexed, matching
from pipeline.engines.stream import Stream
from pipeline.events import Array
from pipeline.query import tree
from pipeline.query.automaton import FREE, Edge, Ways
from pipeline.query.checked import Link, Machine, Other, Query, Reference

# A state of an automaton and the event bound to it.
Bound = tuple[int, int]


@dataclass(frozen=True)
class Gap:
    """Where a negated pattern must not match: strictly between two times of a partition, within places of a window."""

    part: int
    after: float
    before: float
    low: float = -math.inf  # places: low <= place < high
    high: float = math.inf
    neighbours: tuple[Bound, ...] = ()  # the events of the trend at the gap's ends
    trend: tuple[Bound, ...] | None = None  # all of the trend's events, once they are known


class Conditions:
    """Tests conditions on single events of a stream, and remembers the answers."""

    def __init__(self, stream: Stream, limits: Limits) -> None:
        self.stream, self.limits = stream, limits
        self.known: dict[tuple[int, tuple[int, ...]], bool] = {}

    def hold(self, condition: tree.Condition, references: Sequence[Reference], events: tuple[int, ...]) -> bool:
        """Whether a condition holds with these events for its references."""
        key = id(condition), events
        if key not in self.known:
            bound = {(r.variable, r.next): np.array([event]) for r, event in zip(references, events, strict=True)}
            self.known[key] = bool(
                np.all(
                    evaluate.holds(
                        condition,
                        lambda a: evaluate.take(self.stream.columns[a.attribute], bound[a.variable, a.next]),
                    )
                )
            )
        return self.known[key]

    def hold_for_all(
        self, condition: tree.Condition, references: Sequence[Reference], events: Sequence[Sequence[int]]
    ) -> bool:
        """Whether a condition holds for every combination of events."""
        return all(self.hold(condition, references, combination) for combination in itertools.product(*events))


@dataclass
class Matcher:
    """Looks for a match of a machine in a gap, under skip-till-any-match, with everything that conditions ask."""

    machine: Machine
    links: tuple[Link, ...]
    stream: Stream
    conditions: Conditions
    outer: Machine  # the machine of the trend around it
    guards: list[Matcher] = field(default_factory=list)
    events: list[dict[int, tuple[list[int], list[int]]]] = field(default_factory=list)  # per state and partition

    def __post_init__(self) -> None:
        order = np.lexsort((self.stream.time, self.stream.part))
        for state in range(len(self.machine.automaton.states)):
            chosen = order[matching(self.machine, state, self.stream)[order]]
            found: dict[int, tuple[list[int], list[int]]] = {}
            for part, event, time in zip(
                self.stream.part[chosen].tolist(), chosen.tolist(), self.stream.time[chosen].tolist(), strict=True
            ):
                events, times = found.setdefault(part, ([], []))
                events.append(event)
                times.append(time)
            self.events.append(found)
        self.guards = [
            Matcher(guard.machine, guard.links, self.stream, self.conditions, self.machine)
            for guard in self.machine.guards
        ]

    def is_far(self, neighbours: tuple[Bound, ...]) -> bool:
        """Whether a link names events of the trend other than those at the gap's ends."""
        near = {state for state, _ in neighbours}
        return any(
            not near & self.outer.automaton.named(reference.variable) for link in self.links for reference in link.outer
        )

    def exists(self, gap: Gap) -> bool:
        """Whether a match lies in the gap."""
        automaton = self.machine.automaton
        candidates = [self._candidates(state, gap) for state in range(len(automaton.states))]
        waiting: list[tuple[Bound, ...]] = [
            ((state, event),)
            for state, ways in automaton.first.items()
            for event in candidates[state]
            if self._open(ways, replace(gap, before=self._time(event), neighbours=((state, event),), trend=None))
        ]
        waiting.sort(key=lambda match: -self._time(match[0][1]))  # the earliest is taken first
        whole = self._judges_whole()
        seen = {match[-1] for match in waiting}
        followed: dict[Edge, int] = {}
        while waiting:
            self.conditions.limits.check_time(lambda: "a negated pattern was being looked for")
            match = waiting.pop()
            if self._completes(match, gap):
                return True
            for edge, ways in automaton.follow.items():
                state, event = match[-1]
                if edge[0] != state:
                    continue
                # Without conditions, an earlier event of this state has led to all that this one leads to.
                if not whole and ways == FREE and edge not in self.machine.adjacent:
                    if self._time(event) >= followed.get(edge, self._time(event) + 1):
                        continue
                    followed[edge] = self._time(event)
                for extension in self._extensions(edge, ways, event, candidates[edge[1]], gap.part):
                    # Without conditions on the match as a whole, how an event was reached does not matter.
                    if whole:
                        waiting.append((*match, extension))
                    elif extension not in seen:
                        seen.add(extension)
                        waiting.append((extension,))
        return False

    def _judges_whole(self) -> bool:
        many = any(len(link.inner) > 1 for link in self.links)
        return many or bool(self.machine.other) or any(guard.links for guard in self.guards)

    def _candidates(self, state: int, gap: Gap) -> list[int]:
        events, times = self.events[state].get(gap.part, ([], []))
        inside = events[bisect_right(times, gap.after) : bisect_left(times, gap.before)]
        return [
            event
            for event in inside
            if gap.low <= self.stream.place[event] < gap.high and self._linked(((state, event),), gap, single=True)
        ]

    def _completes(self, match: tuple[Bound, ...], gap: Gap) -> bool:
        state, event = match[-1]
        ways = self.machine.automaton.last.get(state)
        if ways is None:
            return False
        rest = replace(gap, after=self._time(event), neighbours=(match[-1],), trend=None)
        return self._open(ways, rest) and self._whole(match, gap)

    def _extensions(self, edge: Edge, ways: Ways, event: int, later: list[int], part: int) -> Iterator[Bound]:
        time = self._time(event)
        for candidate in later:
            end = self._time(candidate)
            if end > time and self._adjacent(edge, event, candidate):
                ends = (edge[0], event), (edge[1], candidate)
                if ways == FREE or self._open(ways, Gap(part, time, end, neighbours=ends)):
                    yield edge[1], candidate

    def _adjacent(self, edge: Edge, event: int, later: int) -> bool:
        return all(
            self.conditions.hold(pair.condition, (pair.earlier, pair.later), (event, later))
            for pair in self.machine.adjacent.get(edge, ())
        )

    def _open(self, ways: Ways, gap: Gap) -> bool:
        """Whether the negations within this negated pattern allow a gap of it; linked ones are judged at the end."""
        return any(all(self.guards[n].links or not self.guards[n].exists(gap) for n in way) for way in ways)

    def _whole(self, match: tuple[Bound, ...], gap: Gap) -> bool:
        return (
            others_hold(self.machine.other, match, self.conditions, self.stream)
            and self._linked(match, gap, single=False)
            and (not any(guard.links for guard in self.guards) or self._guarded(match, gap))
        )

    def _guarded(self, match: tuple[Bound, ...], gap: Gap) -> bool:
        automaton = self.machine.automaton
        first, last = match[0], match[-1]
        start = replace(gap, before=self._time(first[1]), neighbours=(first,), trend=match)
        end = replace(gap, after=self._time(last[1]), neighbours=(last,), trend=match)
        return (
            gap_open(automaton.first[first[0]], self.guards, start)
            and gap_open(automaton.last[last[0]], self.guards, end)
            and all(
                gap_open(
                    automaton.follow[a[0], b[0]],
                    self.guards,
                    Gap(gap.part, self._time(a[1]), self._time(b[1]), neighbours=(a, b), trend=match),
                )
                for a, b in itertools.pairwise(match)
            )
        )

    def _linked(self, match: tuple[Bound, ...], gap: Gap, *, single: bool) -> bool:
        """Whether the conditions that link a match with the trend hold: those on one event of it, or on several."""
        for link in self.links:
            if (len(link.inner) == 1) is not single:
                continue
            inner = [self._bound(self.machine, reference, match) for reference in link.inner]
            outer = [self._outer(reference, gap) for reference in link.outer]
            if not self.conditions.hold_for_all(link.condition, (*link.inner, *link.outer), [*inner, *outer]):
                return False
        return True

    def _outer(self, reference: Reference, gap: Gap) -> list[int]:
        near = self._bound(self.outer, reference, gap.neighbours)
        return near or self._bound(self.outer, reference, gap.trend or ())

    @staticmethod
    def _bound(machine: Machine, reference: Reference, match: tuple[Bound, ...]) -> list[int]:
        states = machine.automaton.named(reference.variable)
        return [event for state, event in match if state in states]

    def _time(self, event: int) -> int:
        return int(self.stream.time[event])


def gap_open(ways: Ways, guards: Sequence[Matcher], gap: Gap) -> bool:
    """Whether one alternative has no match of its negations in a gap.

    As long as the whole trend is not known, a negation that is linked to events elsewhere in it does not block.
    """

    def blocks(guard: Matcher) -> bool:
        return not (gap.trend is None and guard.is_far(gap.neighbours)) and guard.exists(gap)

    return any(not any(blocks(guards[n]) for n in way) for way in ways)


def others_hold(others: Sequence[Other], match: tuple[Bound, ...], conditions: Conditions, stream: Stream) -> bool:
    """Whether a match satisfies the conditions on events of it that are not neighbours."""
    for other in others:
        bound = [[event for state, event in match if state in states] for states in other.states]
        for events in itertools.product(*bound):
            in_order = not other.ordered or stream.time[events[0]] < stream.time[events[1]]
            if in_order and not conditions.hold(other.condition, other.references, events):
                return False
    return True


class Ask:
    """Answers the kernel's questions about a trend that compiled code cannot."""

    def __init__(self, query: Query, stream: Stream, edges: list[Edge], limits: Limits) -> None:
        self.machine, self.stream, self.edges = query.machine, stream, edges
        self.conditions = Conditions(stream, limits)
        self.guards = [
            Matcher(guard.machine, guard.links, stream, self.conditions, self.machine) for guard in self.machine.guards
        ]
        self.others = [other for other in self.machine.other if len(other.references) > 2]
        self.edge_known: dict[tuple[int, int, int], bool] = {}
        automaton = self.machine.automaton
        self.asks_window = any(map(self._complex, (*automaton.first.values(), *automaton.last.values())))
        self.far = {edge for edge in edges if self._is_far(edge)}
        self.asks_trend = bool(self.others or self.far)
        self.bound: Callable[[Array], Iterator[Bound]] = lambda _: iter(())

    def _complex(self, ways: Ways) -> bool:
        return any(not is_indexed(self.machine.guards[n]) for way in ways for n in way)

    def _is_far(self, edge: Edge) -> bool:
        ends = ((edge[0], -1), (edge[1], -1))
        return any(self.guards[n].is_far(ends) for way in self.machine.automaton.follow[edge] for n in way)

    def asks_edge(self, edge: Edge) -> bool:
        """Whether an edge crosses negations that are more than single events."""
        return self._complex(self.machine.automaton.follow[edge])

    def edge(self, number: int, x: int, y: int) -> bool:
        """Whether the negations on an edge allow x before y."""
        key = number, int(x), int(y)
        if key not in self.edge_known:
            self.edge_known[key] = self._edge_open(self.edges[number], int(x), int(y), None)
        return self.edge_known[key]

    def _edge_open(self, edge: Edge, x: int, y: int, trend: tuple[Bound, ...] | None) -> bool:
        times = int(self.stream.time[x]), int(self.stream.time[y])
        gap = Gap(int(self.stream.part[x]), *times, neighbours=((edge[0], x), (edge[1], y)), trend=trend)
        return gap_open(self.machine.automaton.follow[edge], self.guards, gap)

    def trend(self, path: Array) -> bool:
        """Whether a whole trend satisfies the conditions on three or more variables, and its negations."""
        trend = tuple(self.bound(path))
        return others_hold(self.others, trend, self.conditions, self.stream) and all(
            self._edge_open((a[0], b[0]), a[1], b[1], trend)
            for a, b in itertools.pairwise(trend)
            if (a[0], b[0]) in self.far
        )

    def window(self, path: Array, start: int, end: int) -> bool:
        """Whether the negations before and after a trend allow it in the window [start, end)."""
        trend = tuple(self.bound(path))
        first, last = trend[0], trend[-1]
        part = int(self.stream.part[first[1]])
        before = Gap(part, -math.inf, int(self.stream.time[first[1]]), low=start, neighbours=(first,), trend=trend)
        after = Gap(part, int(self.stream.time[last[1]]), math.inf, high=end, neighbours=(last,), trend=trend)
        automaton = self.machine.automaton
        return gap_open(automaton.first[first[0]], self.guards, before) and gap_open(
            automaton.last[last[0]], self.guards, after
        )
