"""Pattern → position automaton (Glushkov): one state an occurrence, with guarded first, last and follow sets.

`!N` matches no event: it guards the gap that it stands in. So every way of starting, ending or going on carries the
negations that it crosses, and holds if none of them has a match in that gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import NoReturn

from pipeline.errors import CannotRunError, QueryError, Span, locate
from pipeline.query import tree

MAX_STATES = 1000
MAX_EDGES = 100_000
MAX_WAYS = 1000
MAX_COPIES = 10_000

# Alternatives, each the negations that must have no match; holds if one alternative does.
Ways = frozenset[frozenset[int]]
Edge = tuple[int, int]

FREE: Ways = frozenset({frozenset()})
NEVER: Ways = frozenset()


@dataclass(frozen=True)
class State:
    """An occurrence of a type in the pattern: what an event of a trend can be bound to."""

    index: int
    types: tuple[str, ...]
    variable: str | None
    span: Span  # copies that {n,m} made share the place they were written at

    @property
    def label(self) -> str:
        """The occurrence as the query writes it."""
        named = self.variable is not None and self.variable not in self.types
        return str(tree.Occurrence(self.types, self.variable, named))


@dataclass(frozen=True)
class Negation:
    """`!N`: what must have no match in a gap."""

    pattern: tree.Pattern
    automaton: Automaton


@dataclass(frozen=True)
class Automaton:
    """The trends of a pattern are the paths from a first to a last state."""

    states: tuple[State, ...]
    first: Mapping[int, Ways]
    last: Mapping[int, Ways]
    follow: Mapping[Edge, Ways]
    negations: tuple[Negation, ...]

    def named(self, variable: str) -> frozenset[int]:
        """The states that a name stands for."""
        return frozenset(state.index for state in self.states if state.variable == variable)


@dataclass(frozen=True)
class _Fragment:
    """A sub-pattern's part of the automaton; `empty` holds the ways to match no event at all."""

    empty: Ways
    first: Mapping[int, Ways]
    last: Mapping[int, Ways]


def build(pattern: tree.Pattern, text: str = "", file: str = "query") -> Automaton:
    """The position automaton of a pattern.

    >>> from pipeline.query.parser import parse
    >>> automaton = build(parse("RETURN COUNT(*) PATTERN (SEQ(A+, B))+ WITHIN 1 min").pattern)
    >>> sorted(automaton.first), sorted(automaton.last), sorted(automaton.follow)
    ([0], [1], [(0, 0), (0, 1), (1, 0)])
    """
    return _Builder(text, file).automaton(pattern)[0]


class _Builder:
    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.states: list[State] = []
        self.follow: dict[Edge, Ways] = {}
        self.negations: list[Negation] = []
        self.copies = 0  # that {n,m} made
        self.negation_of: dict[int, int] = {}  # by node, so that the copies of {n,m} share one

    def automaton(self, pattern: tree.Pattern) -> tuple[Automaton, Ways]:
        whole = self.fragment(pattern)
        if not self.states:
            hint = "a negation guards the gap beside an event, as in SEQ(A, !B)"
            self.fail("this pattern has only negated events, none that may occur", pattern.span, hint)
        states, negations = tuple(self.states), tuple(self.negations)
        return Automaton(states, whole.first, whole.last, self.follow, negations), whole.empty

    def fail(self, message: str, span: Span, hint: str | None = None) -> NoReturn:
        raise QueryError(message, self.text, span, self.file, hint)

    def fragment(self, pattern: tree.Pattern) -> _Fragment:
        match pattern:
            case tree.Occurrence(types, variable):
                return self.occurrence(types, variable, pattern.span)
            case tree.Seq(parts):
                return reduce(self.then, map(self.fragment, parts))
            case tree.Or(parts):
                return reduce(self.either, map(self.fragment, parts))
            case tree.Repeat(inner, low, high):
                return self.repeat(inner, low, high)
            case tree.Not(inner):
                return _Fragment(frozenset({frozenset({self.negation(inner)})}), {}, {})
            case tree.And() | tree.Exists():
                word = "AND(…)" if isinstance(pattern, tree.And) else "EXISTS"
                message = f"the PATTERN clause has {word}, which no engine can run yet"
                raise CannotRunError("\n".join(locate(message, self.text, pattern.span, self.file)))

    def occurrence(self, types: tuple[str, ...], variable: str | None, span: Span) -> _Fragment:
        index = len(self.states)
        if index == MAX_STATES:
            self.fail(f"the pattern has more than {MAX_STATES} occurrences", span, "ask for fewer {n} repetitions")
        self.states.append(State(index, types, variable, span))
        return _Fragment(NEVER, {index: FREE}, {index: FREE})

    def negation(self, pattern: tree.Pattern) -> int:
        if id(pattern) not in self.negation_of:
            automaton, empty = _Builder(self.text, self.file).automaton(pattern)
            if empty:
                hint = "the empty sequence lies in every gap, so nothing could match; ask for at least one event"
                self.fail(f"this negates {pattern}, which also matches the empty sequence", pattern.span, hint)
            self.negation_of[id(pattern)] = len(self.negations)
            self.negations.append(Negation(pattern, automaton))
        return self.negation_of[id(pattern)]

    def then(self, left: _Fragment, right: _Fragment) -> _Fragment:
        self.link(left, right)
        return _Fragment(
            self.both(left.empty, right.empty),
            _merged(left.first, {state: self.both(left.empty, ways) for state, ways in right.first.items()}),
            _merged(right.last, {state: self.both(ways, right.empty) for state, ways in left.last.items()}),
        )

    def either(self, left: _Fragment, right: _Fragment) -> _Fragment:
        return _Fragment(
            _one_of(left.empty, right.empty), _merged(left.first, right.first), _merged(left.last, right.last)
        )

    def repeat(self, pattern: tree.Pattern, low: int, high: int | None) -> _Fragment:
        # p{1,3} is SEQ(p, (SEQ(p, p?))?): each copy has states of its own, so that each length is counted once.
        times = max(low, 1) if high is None else high
        self.copies += times
        if self.copies > MAX_COPIES:
            self.fail("the pattern has too many repetitions", pattern.span, "ask for fewer {n} repetitions")
        copies = [self.fragment(pattern) for _ in range(times)]
        if high is None:
            self.link(copies[-1], copies[-1])
        whole: _Fragment | None = None
        for number in reversed(range(times)):
            whole = copies[number] if whole is None else self.then(copies[number], whole)
            if number >= low:
                whole = _Fragment(_one_of(whole.empty, FREE), whole.first, whole.last)
        assert whole is not None
        return whole

    def both(self, left: Ways, right: Ways) -> Ways:
        if len(left) * len(right) > MAX_WAYS:
            hint = "write fewer OR, ? or * around negations"
            message = f"this gap can be crossed in more than {MAX_WAYS} ways"
            self.fail(message, self.negations[-1].pattern.span, hint)
        return _minimal(frozenset(a | b for a in left for b in right))

    def link(self, left: _Fragment, right: _Fragment) -> None:
        if len(left.last) * len(right.first) > MAX_EDGES:
            self.too_many_edges()
        for source, before in left.last.items():
            for target, after in right.first.items():
                ways = _one_of(self.follow.get((source, target), NEVER), self.both(before, after))
                if ways:
                    self.follow[source, target] = ways
        if len(self.follow) > MAX_EDGES:
            self.too_many_edges()

    def too_many_edges(self) -> NoReturn:
        hint = "ask for fewer {n} repetitions or optional parts"
        self.fail(f"the pattern has more than {MAX_EDGES} transitions", self.states[-1].span, hint)


def _merged(left: Mapping[int, Ways], right: Mapping[int, Ways]) -> dict[int, Ways]:
    merged = {state: _one_of(left.get(state, NEVER), right.get(state, NEVER)) for state in (*left, *right)}
    return {state: ways for state, ways in merged.items() if ways}


def _one_of(left: Ways, right: Ways) -> Ways:
    return _minimal(left | right)


def _minimal(ways: Ways) -> Ways:
    """Drop the alternatives that ask for more than another one does."""
    return frozenset(way for way in ways if not any(other < way for other in ways))
