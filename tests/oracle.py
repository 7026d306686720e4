"""The test oracle: every trend by brute force, straight from the definitions of DESIGN.md section 3.

It shares no code with `pipeline` and prefers what is obviously right to what is fast: quantifiers are `any` and `all`
over lists, each window is enumerated on its own, and nothing is remembered from one to the next.

>>> from tests.oracle_query import Plus, Window
>>> query = Query(Plus(Seq((Plus(Atom(("A",))), Atom(("B",))))), Window(100, 100))
>>> answer(query, [Event(1, "A"), Event(2, "B"), Event(3, "A"), Event(4, "B")])
[{'window_start': 0, 'window_end': 100, 'COUNT(*)': 5}]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import pairwise, product
from typing import Any, TypeVar

from tests.oracle_query import (
    Aggregate,
    Atom,
    Attr,
    Binary,
    Const,
    Negated,
    Not,
    Or,
    Pattern,
    Query,
    Repeat,
    Seq,
    Term,
    leaves,
    roles,
    totals,
    variables,
)

Value = int | float | str | None
Row = dict[str, Value]

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


@dataclass(frozen=True)
class Event:
    """`kinds` are the types above `type`; `position` is the event's place in (time, input order), set by the oracle."""

    time: int
    type: str
    attrs: dict[str, Value] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    position: int = -1

    @property
    def types(self) -> tuple[str, ...]:
        return (self.type, *self.kinds)


# ---- Conditions: "a comparison with a null is false (two-valued: NOT makes it true)" ----


def value(term: Term, env: Mapping[str, Any]) -> Any:
    """`env` has an event a role, or in HAVING a value an aggregate."""
    match term:
        case Const(constant):
            return constant
        case Attr():
            return env[term.role].attrs.get(term.attr)
        case Aggregate():
            return env[str(term)]
        case Binary(sign, left, right):
            # "arithmetic on a null and a division by zero give null"
            a, b = value(left, env), value(right, env)
            return None if a is None or b is None or (sign == "/" and b == 0) else ARITHMETIC[sign](a, b)
    raise TypeError(term)


def holds(condition: Term, env: Mapping[str, Any]) -> bool:
    match condition:
        case Negated(part):
            return not holds(part, env)
        case Binary("AND", left, right):
            return holds(left, env) and holds(right, env)
        case Binary("OR", left, right):
            return holds(left, env) or holds(right, env)
        case Binary(sign, left, right):
            a, b = value(left, env), value(right, env)
            return a is not None and b is not None and COMPARE[sign](a, b)
    raise TypeError(condition)


# ---- The position automaton: "one state an occurrence, first, last and follow sets" ----


@dataclass(frozen=True, eq=False)
class State:
    """An occurrence; the copies that `{n,m}` makes of it share its `source`, its place in the text."""

    source: tuple[int, ...]
    atom: Atom


@dataclass(frozen=True, eq=False)
class Automaton:
    """Each entry, exit, edge and empty match has its ways; a way is the set of the negations that lie in the gap.

    "An edge that can be taken in several ways holds if one of them does." The entry is not there if it has no way.
    """

    first: dict[State, set[Way]]
    last: dict[State, set[Way]]
    follow: dict[tuple[State, State], set[Way]]
    empty: set[Way]

    @property
    def states(self) -> list[State]:
        return list({s: s for s in [*self.first, *self.last, *(s for edge in self.follow for s in edge)]})

    @property
    def negations(self) -> set[Automaton]:
        entries = [*self.first.values(), *self.last.values(), *self.follow.values()]
        return {negation for ways in entries for way in ways for negation in way}

    @property
    def variables(self) -> set[str]:
        return {s.atom.variable for s in self.states}


Way = frozenset[Automaton]
FREE: Way = frozenset()
NOTHING = Automaton({}, {}, {}, {FREE})


def compiled(pattern: Pattern, source: tuple[int, ...] = ()) -> Automaton:
    match pattern:
        case Atom():
            state = State(source, pattern)
            return Automaton({state: {FREE}}, {state: {FREE}}, {}, set())
        case Not(part):
            return Automaton({}, {}, {}, {frozenset({compiled(part, (*source, 0))})})
        case Seq(parts):
            return reduce(joined, [compiled(part, (*source, i)) for i, part in enumerate(parts)])
        case Or(parts):
            return reduce(either, [compiled(part, (*source, i)) for i, part in enumerate(parts)])
        case Repeat(part, least, most):
            copies = [compiled(part, (*source, 0)) for _ in range(most or max(least, 1))]
            if most is None:  # p{n,} is n - 1 copies and then p+, so that p{1,} is p+
                copies[-1] = looped(copies[-1])
            # "p{1,3} is SEQ(p, (SEQ(p, p?))?): each length once"
            tail = reduce(lambda rest, copy: optional(joined(copy, rest)), reversed(copies[least:]), NOTHING)
            return joined(reduce(joined, copies[:least], NOTHING), tail)


Entry = TypeVar("Entry")


def merged(*tables: dict[Entry, set[Way]]) -> dict[Entry, set[Way]]:
    return {key: set().union(*(t.get(key, set()) for t in tables)) for table in tables for key in table}


def crossed(left: set[Way], right: set[Way]) -> set[Way]:
    return {a | b for a in left for b in right}


def bridge(p: Automaton, q: Automaton) -> dict[tuple[State, State], set[Way]]:
    return {(s, t): crossed(p.last[s], q.first[t]) for s in p.last for t in q.first}


def joined(p: Automaton, q: Automaton) -> Automaton:
    first = {s: ways for s, old in q.first.items() if (ways := crossed(p.empty, old))}
    last = {s: ways for s, old in p.last.items() if (ways := crossed(old, q.empty))}
    follow = merged(p.follow, q.follow, bridge(p, q))
    return Automaton(merged(p.first, first), merged(q.last, last), follow, crossed(p.empty, q.empty))


def either(p: Automaton, q: Automaton) -> Automaton:
    return Automaton(merged(p.first, q.first), merged(p.last, q.last), merged(p.follow, q.follow), p.empty | q.empty)


def looped(p: Automaton) -> Automaton:
    """An empty turn of the loop could only add negations to a gap that is a way without them."""
    return replace(p, follow=merged(p.follow, bridge(p, p)))


def optional(p: Automaton) -> Automaton:
    return replace(p, empty=p.empty | {FREE})


# ---- Adjacency ----

Bound = tuple[State, Event]
Path = list[Bound]


def constrained(condition: Term, automaton: Automaton) -> set[tuple[State, State]]:
    """The edges that a condition on two roles constrains; none where it is non-adjacent."""
    coming = {leaf.variable for leaf in leaves(condition) if leaf.next}
    if coming:  # "NEXT(A) beside A constrains every A → A edge, whichever + made it"
        here = {leaf.variable for leaf in leaves(condition) if not leaf.next}
        return {(s, t) for s, t in automaton.follow if {s.atom.variable} == here and {t.atom.variable} == coming}
    one, two = ({s.source for s in automaton.states if s.atom.variable == v} for v in variables(condition))
    edges = set()
    for a, b in product(one, two):
        # "on the edge from the textually earlier variable to the later, or on the only edge there is"
        forward = {(s, t) for s, t in automaton.follow if (s.source, t.source) == (min(a, b), max(a, b))}
        backward = {(s, t) for s, t in automaton.follow if (s.source, t.source) == (max(a, b), min(a, b))}
        edges |= forward or backward
    return edges


class Matcher:
    """The matches of one automaton, the trend's own or a negation's within `outer`, with what WHERE says of it."""

    def __init__(
        self, automaton: Automaton, where: tuple[Term, ...], semantics: str, outer: Automaton = NOTHING
    ) -> None:
        mine = automaton.variables
        own = [c for c in where if variables(c) <= mine]
        self.automaton, self.semantics = automaton, semantics
        self.local = [c for c in own if len(roles(c)) == 1]
        self.edges = [(c, edges) for c in own if len(roles(c)) == 2 and (edges := constrained(c, automaton))]
        self.whole = [c for c in own if c not in self.local and c not in [c for c, _ in self.edges]]
        both = mine | outer.variables
        self.links = [c for c in where if variables(c) & mine and variables(c) - mine and variables(c) <= both]
        self.guards = {n: Matcher(n, where, "skip-till-any-match", automaton) for n in automaton.negations}

    def bindable(self, state: State, event: Event) -> bool:
        name = state.atom.variable
        return bool(set(state.atom.types) & set(event.types)) and all(
            holds(c, {name: event}) for c in self.local if variables(c) == {name}
        )

    def extends(self, events: list[Event], one: Bound, two: Bound) -> bool:
        """Any-match: "w follows v, x.time < y.time (strictly), and every condition between v and w holds"."""
        (s, x), (t, y) = one, two
        env = {t.atom.variable: y, s.atom.variable: x, f"NEXT({t.atom.variable})": y}
        return (
            (s, t) in self.automaton.follow
            and x.time < y.time
            and self.bindable(t, y)
            and all(holds(c, env) for c, edges in self.edges if (s, t) in edges)
            and self.open(self.automaton.follow[s, t], between(events, x, y), [one, two], None)
        )

    def adjacent(self, events: list[Event], one: Bound, two: Bound) -> bool:
        (_, x), (_, y) = one, two
        if self.semantics == "skip-till-next-match":
            # "moreover no event y' with y'.time < y.time is adjacent to (x, v), bound to any variable that follows v"
            earlier = [(w, z) for z in events if z.time < y.time for w in self.automaton.states]
            return self.extends(events, one, two) and not any(self.extends(events, one, other) for other in earlier)
        if self.semantics == "contiguous":
            # "moreover no event of the partition at all lies strictly between x and y in time"
            return self.extends(events, one, two) and not between(events, x, y)
        return self.extends(events, one, two)

    def paths(self, events: list[Event]) -> Iterator[Path]:
        """ "A path from a first to a last variable in which each event is adjacent to the next." """
        everything = [(s, e) for s in self.automaton.states for e in events]

        def grown(path: Path) -> Iterator[Path]:
            if path[-1][0] in self.automaton.last:
                yield path
            for bound in everything:
                if self.adjacent(events, path[-1], bound):
                    yield from grown([*path, bound])

        for s, e in everything:
            if s in self.automaton.first and self.bindable(s, e):
                yield from grown([(s, e)])

    def finished(self, path: Path, events: list[Event], before: list[Event], after: list[Event]) -> bool:
        """No negation blocks one of the path's gaps or its two ends, and the conditions on the whole of it hold."""
        steps = list(pairwise(path))
        follow = self.automaton.follow
        return (
            self.open(self.automaton.first[path[0][0]], before, [path[0]], path)
            and self.open(self.automaton.last[path[-1][0]], after, [path[-1]], path)
            and all(self.open(follow[a[0], b[0]], between(events, a[1], b[1]), [a, b], path) for a, b in steps)
            and all(holds(c, env) for c in self.whole for env in choices(c, {r: bound_to(r, path) for r in roles(c)}))
        )

    def matches(self, events: list[Event]) -> Iterator[Path]:
        """The matches where `events` is all there is: a window of a partition, or a gap of a trend."""
        for path in self.paths(events):
            first, last = path[0][1], path[-1][1]
            before, after = [e for e in events if e.time < first.time], [e for e in events if e.time > last.time]
            if self.finished(path, events, before, after):
                yield path

    def open(self, ways: set[Way], gap: list[Event], ends: Path, trend: Path | None) -> bool:
        return any(all(not self.guards[n].blocks(gap, ends, trend) for n in way) for way in ways)

    def blocks(self, gap: list[Event], ends: Path, trend: Path | None) -> bool:
        """A match lies in the gap, and "those [conditions] that link it to the trend's own events" hold.

        A link speaks of the gap's ends if they bear its name, else of each event of the trend that does. While the
        trend is not known yet (None), a link of that other kind makes the negation not block.
        """
        near = {s.atom.variable for s, _ in ends}
        if trend is None and any(variables(c) - self.automaton.variables - near for c in self.links):
            return False

        def linked(match: Path) -> bool:
            def meant(name: str) -> list[Event]:
                if name in self.automaton.variables:
                    return bound_to(name, match)
                return bound_to(name, ends if name in near else trend or [])

            return all(holds(c, env) for c in self.links for env in choices(c, {r: meant(r) for r in roles(c)}))

        return any(linked(match) for match in self.matches(gap))


def between(events: list[Event], x: Event, y: Event) -> list[Event]:
    return [e for e in events if x.time < e.time < y.time]


def bound_to(role: str, path: Path) -> list[Event]:
    name = role.removeprefix("NEXT(").removesuffix(")")
    return [e for s, e in path if s.atom.variable == name]


def choices(condition: Term, candidates: dict[str, list[Event]]) -> Iterator[dict[str, Event]]:
    """One event a role in every way; a variable that is not bound leaves none, so the condition holds."""
    for events in product(*candidates.values()):
        env = dict(zip(candidates, events, strict=True))
        coming = [r for r in env if r.startswith("NEXT(")]
        if all(env[here].time < env[then].time for then in coming for here in env if here not in coming):
            yield env


# ---- Windows, partitions, rows ----


@dataclass(frozen=True)
class Finished:
    """A trend in one window of one group; without SLIDE `start` and `end` are those of the trend's own events."""

    start: int
    end: int
    group: tuple[Value, ...]
    path: Path


def finished_trends(query: Query, events: list[Event]) -> Iterator[Finished]:
    stream = [replace(e, position=i) for i, e in enumerate(sorted(events, key=lambda e: e.time))]
    matcher = Matcher(compiled(query.pattern), query.where, query.semantics)
    w, slide = query.window.within, query.window.slide

    def place(event: Event) -> int:
        return event.time if query.window.unit == "seconds" else event.position

    for group, part in partitions(query, stream):
        if slide:
            # "windows [k·s, k·s + w) for every integer k"; over positions "for k ≥ 0"
            least = (place(stream[0]) - w) // slide if query.window.unit == "seconds" else 0
            for start in (k * slide for k in range(least, place(stream[-1]) // slide + 1)):
                inside = [e for e in part if start <= place(e) < start + w]
                yield from (Finished(start, start + w, group, path) for path in matcher.matches(inside))
        else:
            for path in matcher.paths(part):
                first, last = path[0][1], path[-1][1]
                # "judged once a trend: in (last − w, first) and in (last, first + w)"
                before = [e for e in part if place(e) > place(last) - w and e.time < first.time]
                after = [e for e in part if place(e) < place(first) + w and e.time > last.time]
                if place(last) - place(first) < w and matcher.finished(path, part, before, after):
                    yield Finished(place(first), place(last), group, path)


def partitions(query: Query, stream: list[Event]) -> Iterator[tuple[tuple[Value, ...], list[Event]]]:
    """Each partition with its GROUP-BY values. "An event with a null in one of these attributes is in no partition"."""
    attrs = dict.fromkeys([*query.keys, *(attr for attr, _ in query.fixed), *query.group_by])
    keyed = [(tuple(e.attrs.get(a) for a in attrs), e) for e in stream]
    for key in dict.fromkeys(key for key, _ in keyed):
        named = dict(zip(attrs, key, strict=True))
        if None not in key and all(named[attr] == v for attr, v in query.fixed):
            yield tuple(named[a] for a in query.group_by), [e for k, e in keyed if k == key]


def trends(query: Query, events: list[Event]) -> Iterator[list[tuple[str, Event]]]:
    """Every trend once, in however many windows it lies, as its (variable, event) pairs."""
    seen = set()
    for found in finished_trends(query, events):
        key = tuple((s.source, id(s), e.position) for s, e in found.path)
        if key not in seen:
            seen.add(key)
            yield [(s.atom.variable, e) for s, e in found.path]


def answer(query: Query, events: list[Event]) -> list[Row]:
    """The rows of `trends run --format jsonl`."""
    found = list(finished_trends(query, events))
    windows: dict[tuple[int, int, tuple[Value, ...]], list[Path]]
    if query.window.slide:
        windows = {(f.start, f.end, f.group): [] for f in found}
        for f in found:
            windows[f.start, f.end, f.group].append(f.path)
    else:  # "a row is given for every t at which [one of the group's trends] ends, over all [that] lie in (t − w, t]"
        w = query.window.within
        windows = {
            (t - w, t, group): [f.path for f in found if f.group == group and t - w < f.start and f.end <= t]
            for t, group in {(f.end, f.group) for f in found}
        }
    rows = []
    for (start, end, group), paths in sorted(windows.items(), key=lambda item: item[0]):
        wanted = {a for c in query.having for a in totals(c)} | set(query.returns)
        values = {str(a): aggregate(a, paths) for a in wanted}
        if all(holds(c, values) for c in query.having):
            keys = {"window_start": start, "window_end": end} | dict(zip(query.group_by, group, strict=True))
            rows.append(keys | {str(a): values[str(a)] for a in query.returns})
    return rows


def aggregate(item: Aggregate, paths: list[Path]) -> Value:
    """ "An event contributes once for every trend that it is in." """
    if item.variable == "*":
        return len(paths)
    bound = [e for path in paths for e in bound_to(item.variable, path)]
    if not item.attr:
        return len(bound)
    values = [v for e in bound if (v := e.attrs.get(item.attr)) is not None]
    if item.function == "COUNT":
        return len(values)
    if not values:
        return None
    total = sum(map(Fraction, values))
    return {
        "SUM": int(total) if all(isinstance(v, int) for v in values) else float(total),
        "AVG": float(total / len(values)),
        "MIN": min(values),
        "MAX": max(values),
    }[item.function]
