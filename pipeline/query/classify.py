"""Conditions by kind, as the papers classify them: local, equivalence, adjacent, other; and links to negated events."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from pipeline.errors import Span
from pipeline.query import tree
from pipeline.query.automaton import Automaton, Edge
from pipeline.query.checked import Guard, Link, Machine, Other, Pair, Predicate, PredicateKind, Reference, Warning

K = TypeVar("K")
V = TypeVar("V")
Fail = Callable[[str, Span, str | None], NoReturn]


@dataclass
class _Scope:
    """The trend, or a negated pattern within it: an automaton and the conditions found for it so far."""

    automaton: Automaton
    parent: _Scope | None
    children: list[_Scope] = field(default_factory=list)
    local: dict[int, list[tree.Condition]] = field(default_factory=lambda: defaultdict(list))
    adjacent: dict[Edge, list[Pair]] = field(default_factory=lambda: defaultdict(list))
    other: list[Other] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    after: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    before: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        for source, target in self.automaton.follow:
            self.after[source].add(target)
            self.before[target].add(source)

    def edges(self, sources: Iterable[int], targets: frozenset[int]) -> list[Edge]:
        return [(source, target) for source in sorted(sources) for target in sorted(self.after[source] & targets)]

    def family(self) -> Iterator[_Scope]:
        yield self
        for child in self.children:
            yield from child.family()

    def machine(self) -> Machine:
        return Machine(
            self.automaton,
            _frozen(self.local),
            _frozen(self.adjacent),
            tuple(self.other),
            tuple(Guard(child.machine(), tuple(child.links)) for child in self.children),
        )


class Classifier:
    """Takes the conjuncts of WHERE one by one, and gives the machine that they make of the automaton."""

    def __init__(self, automaton: Automaton, fail: Fail) -> None:
        self.fail = fail
        self.trend = _scope(automaton, None)
        self.predicates: list[Predicate] = []
        self.warnings: list[Warning] = []

    def machine(self) -> Machine:
        """The automaton with all conditions taken so far."""
        return self.trend.machine()

    def equivalence(self, condition: tree.Equivalence) -> None:
        """Record a conjunct that partitions the stream."""
        self.predicates.append(Predicate(condition, PredicateKind.EQUIVALENCE, "partitions the stream"))

    def add(self, condition: tree.Condition) -> None:
        """Classify a conjunct and attach it where it belongs."""
        references = list(dict.fromkeys(Reference(a.variable, a.next) for a in tree.attributes(condition)))
        self.check_next(condition, references)
        for scopes in self.scopes(condition, references):
            inner = max(scopes.values(), key=_depth)
            outer = tuple(reference for reference in references if scopes[reference] is not inner)
            if outer:
                self.link(condition, tuple(r for r in references if r not in outer), outer, inner)
            elif len(references) == 1:
                self.local(condition, references[0], inner)
            else:
                self.joined(condition, references, inner)

    def check_next(self, condition: tree.Condition, references: list[Reference]) -> None:
        following = [reference for reference in references if reference.next]
        if following and len(references) != 2:
            hint = "e.g. S.price > NEXT(S).price, or B.y < NEXT(A).x"
            what = "nothing beside it" if len(references) == 1 else "more than one variable beside it"
            self.fail(f"{following[0]} has {what} in this condition", condition.span, hint)
        if len(following) == 2:
            self.fail("a condition can name one NEXT", condition.span, "name the earlier event without NEXT")

    def scopes(self, condition: tree.Condition, references: list[Reference]) -> Iterator[Mapping[Reference, _Scope]]:
        """Where each reference may be bound: all in one automaton, or in one and a negation right inside it.

        A name that stands both for events of the trend and for negated ones means each of them.
        """
        bound = [[s for s in self.trend.family() if s.automaton.named(r.variable)] for r in references]
        found = False
        for choice in itertools.product(*bound):
            different = sorted({id(scope): scope for scope in choice}.values(), key=_depth)
            linked = len(different) == 2 and different[1].parent is different[0]
            if len(different) == 1 or (linked and not any(reference.next for reference in references)):
                found = True
                if linked and _has_or(condition, negated=False):
                    self.fail(
                        "an OR cannot mix negated events with the trend's own",
                        condition.span,
                        "split the condition at AND, or negate two patterns",
                    )
                yield dict(zip(references, choice, strict=True))
        if not found:
            names = " and ".join(map(str, references))
            where = "NEXT is for events of one pattern" if any(r.next for r in references) else "they are too far apart"
            hint = "a negated pattern's events can be compared with one another and with those of the pattern around it"
            self.fail(f"{names} cannot be compared: {where}", condition.span, hint)

    def local(self, condition: tree.Condition, reference: Reference, scope: _Scope) -> None:
        for state in scope.automaton.named(reference.variable):
            scope.local[state].append(condition)
        self.predicates.append(Predicate(condition, PredicateKind.LOCAL, self.place(scope, f"each {reference}")))

    def link(
        self, condition: tree.Condition, inner: tuple[Reference, ...], outer: tuple[Reference, ...], scope: _Scope
    ) -> None:
        scope.links.append(Link(condition, inner, outer))
        joined = f"negated {', '.join(map(str, inner))} with {', '.join(map(str, outer))}"
        self.predicates.append(Predicate(condition, PredicateKind.LINK, joined))

    def joined(self, condition: tree.Condition, references: list[Reference], scope: _Scope) -> None:
        edges = list(self.edges(references, scope)) if len(references) == 2 else []
        for edge, earlier, later in edges:
            scope.adjacent[edge].append(Pair(condition, earlier, later))
        if edges:
            _, earlier, later = edges[0]
            place = self.place(scope, f"{earlier.variable} → {later.variable}")
            self.predicates.append(Predicate(condition, PredicateKind.ADJACENT, place))
            self.warn_between(condition, earlier, later, scope)
            return
        ordered = sorted(references, key=lambda reference: reference.next)
        states = tuple(scope.automaton.named(reference.variable) for reference in ordered)
        follows = any(reference.next for reference in references)
        scope.other.append(Other(condition, tuple(ordered), states, follows))
        place = self.place(scope, f"every {', '.join(map(str, ordered))} of a trend")
        self.predicates.append(Predicate(condition, PredicateKind.OTHER, place))
        if follows and not _closure(set().union(*(scope.after[s] for s in states[0])), scope.after) & states[1]:
            message = f"this condition never applies: no {ordered[1].variable} comes after {ordered[0]}"
            self.warnings.append(Warning(message, condition.span))

    def edges(self, references: list[Reference], scope: _Scope) -> Iterator[tuple[Edge, Reference, Reference]]:
        automaton = scope.automaton
        one, two = references
        if one.next or two.next:
            earlier, later = (two, one) if one.next else (one, two)
            for edge in scope.edges(automaton.named(earlier.variable), automaton.named(later.variable)):
                yield edge, earlier, later
            return
        for a, b in itertools.product(_places(automaton, one), _places(automaton, two)):
            earlier, later, source, target = (one, two, a, b) if a.place < b.place else (two, one, b, a)
            forward = scope.edges(source.states, target.states)
            for edge in forward:
                yield edge, earlier, later
            for edge in [] if forward else scope.edges(target.states, source.states):
                yield edge, later, earlier

    def warn_between(self, condition: tree.Condition, earlier: Reference, later: Reference, scope: _Scope) -> None:
        automaton = scope.automaton
        source, target = automaton.named(earlier.variable), automaton.named(later.variable)
        apart = source | target
        entered = set().union(*(scope.after[state] for state in source)) - apart
        left = set().union(*(scope.before[state] for state in target)) - apart
        leading_on = entered & _closure(left, scope.before, apart)
        if leading_on:
            names = ", ".join(sorted({automaton.states[state].label for state in leading_on}))
            message = (
                f"this compares {earlier.variable} with {later.variable} only where they are neighbours in the trend; "
                f"other events ({names}) may lie between"
            )
            self.warnings.append(Warning(message, condition.span))

    def place(self, scope: _Scope, what: str) -> str:
        return what if scope is self.trend else f"{what}, negated"


@dataclass(frozen=True)
class _Place:
    """The states that were written at one place of the text: an occurrence and its {n,m} copies."""

    place: int
    states: frozenset[int]


def _places(automaton: Automaton, reference: Reference) -> Iterator[_Place]:
    states = sorted(automaton.named(reference.variable), key=lambda state: automaton.states[state].span.start)
    for place, same in itertools.groupby(states, key=lambda state: automaton.states[state].span.start):
        yield _Place(place, frozenset(same))


def _closure(start: set[int], steps: Mapping[int, set[int]], avoiding: frozenset[int] = frozenset()) -> set[int]:
    """The states that steps lead to from these, these included."""
    reached, waiting = set(start), list(start)
    while waiting:
        new = steps[waiting.pop()] - reached - avoiding
        reached |= new
        waiting += new
    return reached


def _scope(automaton: Automaton, parent: _Scope | None) -> _Scope:
    scope = _Scope(automaton, parent)
    scope.children = [_scope(negation.automaton, scope) for negation in automaton.negations]
    return scope


def _depth(scope: _Scope) -> int:
    return 0 if scope.parent is None else 1 + _depth(scope.parent)


def _has_or(condition: tree.Condition, negated: bool) -> bool:
    match condition:
        case tree.AnyOf(parts):
            return not negated or any(_has_or(part, negated) for part in parts)
        case tree.AllOf(parts):
            return negated or any(_has_or(part, negated) for part in parts)
        case tree.Complement(part):
            return _has_or(part, not negated)
        case _:
            return False


def _frozen(lists: Mapping[K, list[V]]) -> dict[K, tuple[V, ...]]:
    return {key: tuple(values) for key, values in lists.items()}
