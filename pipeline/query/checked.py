"""A checked query: what engines run; its automaton, its conditions by kind and place, its window and aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from pipeline.errors import Span
from pipeline.events import Kind
from pipeline.query import tree as syntax
from pipeline.query.automaton import Automaton, Edge


@dataclass(frozen=True, order=True)
class Reference:
    """A variable as a condition names it: `A`, or `NEXT(A)`."""

    variable: str
    next: bool

    def __str__(self) -> str:
        name = syntax.name_text(self.variable)
        return f"NEXT({name})" if self.next else name


@dataclass(frozen=True)
class Pair:
    """A condition on an edge: `earlier` is the event that the edge leaves, `later` the one it enters."""

    condition: syntax.Condition
    earlier: Reference
    later: Reference


@dataclass(frozen=True)
class Other:
    """A condition on variables that no edge joins: holds for every combination of events that a trend binds to them."""

    condition: syntax.Condition
    references: tuple[Reference, ...]
    states: tuple[frozenset[int], ...]  # of each reference
    ordered: bool  # NEXT: only for pairs in which the first comes before the second


@dataclass(frozen=True)
class Link:
    """A condition that joins a negated pattern's events (`inner`) with those of the trend around it (`outer`)."""

    condition: syntax.Condition
    inner: tuple[Reference, ...]
    outer: tuple[Reference, ...]


@dataclass(frozen=True)
class Machine:
    """An automaton with its conditions: of the trend, or of one negated pattern."""

    automaton: Automaton
    local: Mapping[int, tuple[syntax.Condition, ...]]  # by state
    adjacent: Mapping[Edge, tuple[Pair, ...]]
    other: tuple[Other, ...]
    guards: tuple[Guard, ...]  # one a negation of the automaton, in its order


@dataclass(frozen=True)
class Guard:
    """A negated pattern with the conditions that a match of it must satisfy to count."""

    machine: Machine
    links: tuple[Link, ...]


class PredicateKind(Enum):
    """The kinds of conditions, as the papers distinguish them."""

    EQUIVALENCE = "equivalence"  # partitions the stream
    LOCAL = "local"  # filters single events
    ADJACENT = "adjacent"  # restricts which events may be neighbours in a trend
    OTHER = "other"  # joins events that are not neighbours
    LINK = "link"  # joins a negated event with the trend


@dataclass(frozen=True)
class Predicate:
    """A conjunct of WHERE, its kind, and what it applies to, in words."""

    condition: syntax.Condition
    kind: PredicateKind
    place: str


@dataclass(frozen=True)
class Use:
    """What an attribute must be, and where the query first says so."""

    kind: Kind
    span: Span


@dataclass(frozen=True)
class Warning:
    """Something that is allowed but may not be meant."""

    message: str
    span: Span


@dataclass(frozen=True)
class Query:
    """A query that can be run."""

    tree: syntax.Query
    text: str
    file: str
    machine: Machine
    predicates: tuple[Predicate, ...]
    keys: tuple[str, ...]  # the attributes that partition the stream
    key_values: Mapping[str, syntax.Constant]  # of [a = 'v']
    aggregates: tuple[syntax.Aggregate, ...]  # all that RETURN and HAVING need, each once
    uses: Mapping[str, Use]
    warnings: tuple[Warning, ...]

    @property
    def automaton(self) -> Automaton:
        """The automaton of the trend itself."""
        return self.machine.automaton

    @property
    def semantics(self) -> syntax.Semantics:
        """Which events may be skipped."""
        return self.tree.semantics

    @property
    def group_by(self) -> tuple[str, ...]:
        """The attributes that results are given by."""
        return tuple(name.name for name in self.tree.group_by.attributes)

    @property
    def occurrence_types(self) -> frozenset[tuple[str, ...]]:
        """The types that each occurrence of the pattern asks for, negated ones included."""
        return frozenset(_types(self.machine))


def _types(machine: Machine) -> Iterator[tuple[str, ...]]:
    for state in machine.automaton.states:
        yield state.types
    for guard in machine.guards:
        yield from _types(guard.machine)
