"""Hypothesis strategies for the oracle's queries and streams, and the streams' text form (`a1 b2{x=3,g=1} c5`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.oracle import Event, State, Value, compiled
from tests.oracle_query import (
    Aggregate,
    Atom,
    Attr,
    Binary,
    Const,
    Negated,
    Not,
    Opt,
    Or,
    Pattern,
    Plus,
    Query,
    Repeat,
    Seq,
    Star,
    Term,
    Window,
)

SEMANTICS = ("skip-till-any-match", "skip-till-next-match", "contiguous")
KIND = "S"
"""The type above A and B, in the streams that have a hierarchy."""
NUMBERS = ("x", "y")
ATTRS = (*NUMBERS, "g", "h")
"""Every attribute that a query may name; one that an event has not got is null."""
MOST_PATHS = 2000
COMPARISONS = ("<", "<=", "=", "!=", ">=", ">")


@dataclass(frozen=True)
class Shape:
    """What the queries may hold, so that an engine that cannot run all of the language is tested on what it can."""

    depth: int = 3
    semantics: tuple[str, ...] = SEMANTICS
    negations: int = 2
    conditions: tuple[str, ...] = ("local", "pair", "next", "triple", "negated", "link")
    states: int = 6
    parts: int = 3  # of a SEQ or an OR


EVERYTHING = Shape()
ANY_MATCH = Shape(semantics=SEMANTICS[:1])
SEQUENCES = Shape(depth=1, semantics=SEMANTICS[:1])
LINKED_SEQUENCES = Shape(depth=1, semantics=SEMANTICS[:1], negations=0, conditions=("local", "pair"), parts=5)
PREFIXES = Shape(semantics=SEMANTICS[:1], conditions=("local", "negated"))
PLAIN_SEQUENCES = Shape(depth=1, semantics=SEMANTICS[:1], conditions=("local", "negated"))


def once_in(n: int) -> st.SearchStrategy[bool]:
    """True once in n times; shrinks to False."""
    return st.sampled_from([False] * (n - 1) + [True])


# ---- Streams ----


def stream(text: str) -> list[Event]:
    """`a1{x=3,h=p} a|s2`: the type in lower case, types above it after a bar, the time, and attributes in braces.

    >>> stream("a1 b-2{x=0.5,h=p}")[1]
    Event(time=-2, type='B', attrs={'x': 0.5, 'h': 'p'}, kinds=(), position=-1)
    """
    events = []
    for types, time, braces in re.findall(r"([a-z|]+)(-?\d+)(?:\{([^}]*)\})?", text):
        attrs = dict(pair.split("=") for pair in braces.split(",") if pair)
        first, *kinds = types.upper().split("|")
        events.append(Event(int(time), first, {name: _value(v) for name, v in attrs.items()}, tuple(kinds)))
    return events


def stream_text(events: list[Event]) -> str:
    return " ".join(map(_event_text, events))


def _event_text(event: Event) -> str:
    attrs = ",".join(f"{name}={v}" for name, v in event.attrs.items() if v is not None)
    return "|".join(event.types).lower() + str(event.time) + (f"{{{attrs}}}" if attrs else "")


def _value(text: str) -> Value:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


@st.composite
def streams(draw: st.DrawFn, types: tuple[str, ...] = ("A", "B", "C", "D"), most: int = 9) -> list[Event]:
    """Up to `most` events in the order of time, with ties; attributes may be null, and have small values."""
    numbers = draw(st.sampled_from([(0, 1, 2, 3, None), (0, 1, 2, 0.5, 1.5, None), (5, -2, 7, 1)]))
    values = st.fixed_dictionaries(
        {
            "x": st.sampled_from(numbers),
            "y": st.sampled_from(numbers),
            "g": st.sampled_from([1, 1, 1, 1, 1, 1, 1, 2, 2, None] if draw(once_in(2)) else [1]),
            "h": st.sampled_from(["p", "p", "p", "p", "p", "p", "q", "q", None] if draw(once_in(2)) else ["p"]),
        }
    )
    bare = draw(once_in(10))
    step = st.sampled_from([1, 1, 1, 0, 0, 1, 2, 1, 3])
    least = min(draw(st.sampled_from([0, 3, 5, 6, 7, 8])), most)
    time = draw(st.sampled_from([1, 0, 3, -4]))
    kinds = {"A": (KIND,), "B": (KIND,)} if KIND in types else {}
    made = st.tuples(st.sampled_from([t for t in types if t != KIND]), step, values)
    chosen = draw(st.lists(made, min_size=least, max_size=most))
    events = []
    for name, gap, attrs in chosen:
        time += gap
        attrs = {} if bare else {attr: attrs[attr] for attr in ATTRS}
        events.append(Event(time, name, attrs, kinds.get(name, ("T",) if kinds else ())))
    return events


# ---- Patterns ----


@st.composite
def atoms(draw: st.DrawFn, types: tuple[str, ...], names: tuple[str, ...]) -> Atom:
    """An occurrence without a variable of its own as often as with one; names are drawn with repetition."""
    if draw(once_in(10)):
        some = draw(st.lists(st.sampled_from(types), min_size=2, max_size=3, unique=True))
        return Atom(tuple(some), draw(st.sampled_from(names)))
    return Atom((draw(st.sampled_from(types)),), draw(st.sampled_from(("",) * len(names) + names)))


@st.composite
def patterns(
    draw: st.DrawFn, shape: Shape, types: tuple[str, ...], names: tuple[str, ...] = ("U", "V", "W"), level: int = 0
) -> Pattern:
    """A pattern with a positive event; negations stand in a SEQ, now and then beside it in an OR or under a `?`."""
    kinds = ["atom"] if level >= shape.depth else ["seq", "seq", "seq", "atom", "or", "repeat", "repeat", "repeat"]
    kind = "seq" if shape.depth == 1 and not level else draw(st.sampled_from(kinds))
    deeper = patterns(shape, types, names, level + 1)
    if kind == "atom":
        return draw(atoms(types, names))
    if kind == "or":
        parts: list[Pattern] = draw(st.lists(deeper, min_size=2, max_size=shape.parts))
        if shape.negations and draw(once_in(10)):
            parts.append(draw(negations(shape, types, level)))
        return Or(tuple(parts))
    if kind == "repeat":
        return _repeated(draw, draw(deeper))
    parts = draw(st.lists(deeper, min_size=1 if shape.negations else 2, max_size=shape.parts))
    for _ in range(shape.negations):
        if draw(once_in(4)):
            parts.insert(draw(st.integers(0, len(parts))), draw(negations(shape, types, level)))
    return Seq(tuple(parts)) if len(parts) > 1 else parts[0]


def _repeated(draw: st.DrawFn, part: Pattern) -> Pattern:
    bounds = st.sampled_from([(2, 2), (1, 2), (2, None), (1, 3), (2, 3), (0, 2), (1, None), (0, None), (1, 1)])
    choice = draw(st.sampled_from(["+", "+", "*", "?", "{}"]))
    make = {"+": Plus, "*": Star, "?": Opt}.get(choice)
    return make(part) if make else Repeat(part, *draw(bounds))


@st.composite
def negations(draw: st.DrawFn, shape: Shape, types: tuple[str, ...], level: int) -> Pattern:
    """`!N` with names of its own; N is mostly one event, sometimes a pattern, which may hold a negation itself."""
    name = f"N{draw(st.integers(1, 9))}"
    simple = atoms(types, (name,))
    if shape.depth > 1 and draw(once_in(3)):
        inside = replace(shape, depth=min(level + 3, 3), negations=shape.negations - 1)
        part = draw(patterns(inside, types, (name, f"{name}b"), level + 1).filter(_never_empty))
    else:
        part = draw(simple)
    return Opt(Not(part)) if draw(once_in(20)) else Not(part)


def _never_empty(pattern: Pattern) -> bool:
    return not compiled(pattern).empty


def scopes(pattern: Pattern) -> Iterator[tuple[set[str], set[str]]]:
    """The names of the trend's own events, then those of each negation, each with the names of what encloses it."""

    def own(p: Pattern) -> set[str]:
        if isinstance(p, Atom):
            return {p.variable}
        return set().union(*map(own, _parts(p))) if not isinstance(p, Not) else set()

    def below(p: Pattern, outer: set[str]) -> Iterator[tuple[set[str], set[str]]]:
        for part in _parts(p):
            if isinstance(p, Not):
                yield own(part), outer
                yield from below(part, own(part)) if not isinstance(part, Not) else ()
            else:
                yield from below(part, outer)

    yield own(pattern), set()
    yield from below(pattern, own(pattern))


def _parts(pattern: Pattern) -> tuple[Pattern, ...]:
    match pattern:
        case Seq(parts) | Or(parts):
            return parts
        case Not(part) | Repeat(part):
            return (part,)
    return ()


# ---- Conditions ----


@st.composite
def operands(draw: st.DrawFn, role: str) -> Term:
    """`U.x`, or arithmetic of it and a constant or another of its attributes."""
    attr = _attr(role, draw(st.sampled_from(NUMBERS)))
    if not draw(once_in(3)):
        return attr
    sign = draw(st.sampled_from(["+", "-", "*", "/"]))
    other: Term = Const(draw(st.sampled_from([1, 2, 0.5, 3, 0])))
    if draw(once_in(4)):
        other = _attr(role, draw(st.sampled_from(NUMBERS)))
    return Binary(sign, attr, other) if draw(st.booleans()) else Binary(sign, other, attr)


@st.composite
def comparisons(draw: st.DrawFn, roles: tuple[str, ...]) -> Binary:
    """A comparison that names each of the roles."""
    if len(roles) <= 2 and draw(once_in(6)):
        right: Term = Const("p") if len(roles) == 1 else _attr(roles[1], "h")
        return Binary(draw(st.sampled_from(["=", "!="])), _attr(roles[0], "h"), right)
    sign = draw(st.sampled_from(COMPARISONS))
    terms = [draw(operands(role)) for role in roles]
    if len(terms) == 1:
        alone = st.one_of(st.sampled_from([1, 2, 0, 0.5]).map(Const), operands(roles[0]))
        terms.append(draw(alone))
    left, right = terms[0], terms[1] if len(terms) == 2 else Binary("+", terms[1], terms[2])
    return Binary(sign, left, right) if draw(st.booleans()) else Binary(sign, right, left)


@st.composite
def conjuncts(draw: st.DrawFn, roles: tuple[str, ...]) -> Term:
    """A condition that names each of the roles, with OR, AND and NOT inside, but no AND at its top."""
    base = draw(comparisons(roles))
    shape = draw(st.sampled_from(["plain", "plain", "plain", "not", "or", "or-and", "not-and"]))
    some = st.lists(st.sampled_from(roles), min_size=1, max_size=len(roles), unique=True)
    other = draw(comparisons(tuple(draw(some)))) if shape not in ("plain", "not") else base
    match shape:
        case "not":
            return Negated(base)
        case "or":
            return Binary("OR", base, other)
        case "or-and":
            return Binary("OR", Negated(other), Binary("AND", base, draw(comparisons(roles))))
        case "not-and":
            return Negated(Binary("AND", other, base))
    return base


def _attr(role: str, attr: str) -> Attr:
    return Attr(role.removeprefix("NEXT(").removesuffix(")"), attr, role.startswith("NEXT("))


@st.composite
def wheres(draw: st.DrawFn, shape: Shape, pattern: Pattern) -> tuple[Term, ...]:
    """Conditions of every kind; a name that stands in two of the pattern's scopes is left alone."""
    all_scopes = list(scopes(pattern))
    counts = [name for mine, _ in all_scopes for name in mine]
    clear = [[sorted(n for n in names if counts.count(n) == 1) for names in scope] for scope in all_scopes]
    negated = [scope for scope in clear[1:] if scope[0]]
    result: list[Term] = []
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 1, 2, 2, 3]))):
        kind = draw(st.sampled_from(shape.conditions))
        mine, outer = clear[0]
        if kind in ("negated", "link"):
            if not negated:
                continue
            mine, outer = draw(st.sampled_from(negated))
        if kind == "link":
            if outer:  # an OR that mixes a negation's and the trend's variables is an error
                ends = [draw(st.sampled_from(mine)), draw(st.sampled_from(outer))]
                link = draw(comparisons(tuple(draw(st.permutations(ends)))))
                result.append(Negated(link) if draw(once_in(5)) else link)
            continue
        if not mine:
            continue
        inner = draw(st.sampled_from(["local", "pair", "next"])) if kind == "negated" else kind
        inner = inner if inner in shape.conditions else "local"
        if inner == "next":
            roles: tuple[str, ...] = (draw(st.sampled_from(mine)), f"NEXT({draw(st.sampled_from(mine))})")
        else:
            size = min({"local": 1, "pair": 2, "triple": 3}[inner], len(mine))
            roles = tuple(draw(st.permutations(mine))[:size])
        if len(roles) == 1 or inner in shape.conditions:
            result.append(draw(conjuncts(roles)))
    return tuple(result)


# ---- Queries ----


@st.composite
def windows(draw: st.DrawFn, units: tuple[str, ...] = ("seconds", "events")) -> Window:
    """All in one window, tumbling, overlapping or moving, over time or positions."""
    kind = draw(st.sampled_from(["all", "tumbling", "sliding", "moving"]))
    unit = draw(st.sampled_from(("seconds", *units)))
    if kind == "all":
        return Window(100, 100, unit)
    within = draw(st.sampled_from([5, 4, 6, 3, 8, 9, 2, 1]))
    slide = {"tumbling": within, "sliding": draw(st.integers(1, within)), "moving": None}[kind]
    return Window(within, slide, unit)


@st.composite
def aggregates(draw: st.DrawFn, names: list[str]) -> Aggregate:
    function = draw(st.sampled_from(["COUNT", "COUNT", "SUM", "AVG", "MIN", "MAX"]))
    if function == "COUNT" and draw(once_in(3)):
        return Aggregate("COUNT")
    attrs = ("", *NUMBERS) if function == "COUNT" else NUMBERS
    return Aggregate(function, draw(st.sampled_from(names)), draw(st.sampled_from(attrs)))


@st.composite
def havings(draw: st.DrawFn, names: list[str]) -> tuple[Term, ...]:
    simple = st.builds(
        Binary, st.sampled_from(COMPARISONS), aggregates(names), st.sampled_from([1, 2, 0, 3, 1.5]).map(Const)
    )
    combined = st.one_of(simple, simple.map(Negated), st.builds(Binary, st.just("OR"), simple, simple))
    return tuple(draw(st.lists(combined, min_size=1, max_size=2)))


@st.composite
def queries(draw: st.DrawFn, shape: Shape, types: tuple[str, ...], units: tuple[str, ...]) -> Query:
    """A valid query."""
    pattern = draw(patterns(shape, types).filter(lambda p: _small(p, shape)))
    names = sorted(next(scopes(pattern))[0])
    having = draw(once_in(12))
    keys: tuple[str, ...] = draw(st.sampled_from([(), (), (), (), (), ("g",), ("h",), ("g", "h")]))
    group_by: tuple[str, ...] = draw(st.sampled_from([(), (), (), (), (), ("g",), ("h",), ("h", "g")]))
    return Query(
        pattern=pattern,
        window=draw(windows(units)),
        returns=(Aggregate("COUNT"), *_distinct(draw(st.lists(aggregates(names), max_size=3)))),
        semantics=draw(st.sampled_from(shape.semantics)),
        keys=keys,
        fixed=(("h", "p"),) if draw(once_in(10)) else (),
        where=draw(wheres(shape, pattern)),
        group_by=group_by,
        having=draw(havings(names)) if having else (),
    )


def _distinct(items: list[Aggregate]) -> list[Aggregate]:
    return [item for item in dict.fromkeys(items) if item != Aggregate("COUNT")]


def _small(pattern: Pattern, shape: Shape) -> bool:
    """Few enough states for every trend to be built, in the trend and in each negation; and one is the trend's own."""
    automaton = compiled(pattern)
    guards = automaton.negations
    return 0 < len(automaton.states) <= shape.states and len(guards) <= 4 and all(len(n.states) <= 4 for n in guards)


@st.composite
def cases(
    draw: st.DrawFn, shape: Shape = EVERYTHING, units: tuple[str, ...] = ("seconds", "events")
) -> tuple[Query, list[Event]]:
    """A query and a stream, mostly of the types that the query names."""
    types = draw(st.sampled_from([("A", "B"), ("A", "B", "C"), ("A", "B", "C", "D"), ("A", "B", "C", KIND)]))
    query = draw(queries(shape, types, units))
    named = tuple(t for t in types if re.search(rf"\b{t}\b", str(query.pattern)))
    pool = types if KIND in types or draw(once_in(3)) else (*named, *named, types[-1])
    events = draw(streams(pool))
    while most_paths(query.pattern, events) > MOST_PATHS:
        events = events[:-1]
    return query, events


def most_paths(pattern: Pattern, events: list[Event]) -> int:
    """The paths under any-match without conditions and windows: a bound on what the oracle enumerates."""
    automaton = compiled(pattern)
    ending: list[tuple[State, Event, int]] = []
    for event in sorted(events, key=lambda e: e.time):
        for state in (s for s in automaton.states if set(s.atom.types) & set(event.types)):
            before = [n for s, e, n in ending if e.time < event.time and (s, state) in automaton.follow]
            ending.append((state, event, sum(before) + (state in automaton.first)))
    return sum(n for _, _, n in ending)
