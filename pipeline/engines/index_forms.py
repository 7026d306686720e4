"""How an index answers the conditions between neighbours: a total, a table, a Fenwick tree, or divide and conquer.

Only conditions that compare an expression of the earlier event x with one of the later event y have an index, and at
most two of them may be orders. What speaks of x or y alone decides who is stored, and who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pipeline.query import tree
from pipeline.query.automaton import FREE, Edge
from pipeline.query.checked import Pair, Query, Reference
from pipeline.query.tree import Semantics

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


@dataclass(frozen=True)
class Sides:
    """`x op y`: an expression of the earlier event compared with one of the later."""

    x: tree.Expression
    op: str
    y: tree.Expression

    def __str__(self) -> str:
        return f"{self.x} {self.op} {self.y}"


@dataclass(frozen=True)
class Form:
    """The conditions of an edge, by what answers them."""

    earlier: tuple[tree.Condition, ...] = ()  # on x alone
    later: tuple[tree.Condition, ...] = ()  # on y alone
    equal: tuple[Sides, ...] = ()
    ordered: tuple[Sides, ...] = ()

    @property
    def way(self) -> str:
        """The index, in words."""
        unequal = any(sides.op == "!=" for sides in self.ordered)
        if len(self.ordered) == 2:
            return "divide and conquer"
        if self.ordered:
            return ("two Fenwick trees" if unequal else "a Fenwick tree") + (" a key" if self.equal else "")
        return "a table of keys" if self.equal else "a total"

    def __str__(self) -> str:
        conditions = " AND ".join(map(str, (*self.earlier, *self.equal, *self.ordered, *self.later)))
        return f"{conditions} by {self.way}" if conditions else self.way

    def lookups(self) -> Iterator[Form]:
        """The same without `!=`, which is `<` or `>`: both are looked up, since a MIN or MAX can't be subtracted."""
        for at, sides in enumerate(self.ordered):
            if sides.op == "!=":
                for op in "<>":
                    others = (*self.ordered[:at], replace(sides, op=op), *self.ordered[at + 1 :])
                    yield from replace(self, ordered=others).lookups()
                return
        yield self


def index_forms(query: Query) -> dict[Edge, Form | None]:
    """Per edge, what answers its conditions; None: no index does."""
    return {edge: _form(query.machine.adjacent.get(edge, ())) for edge in query.automaton.follow}


def can_index(query: Query) -> str | None:
    """Why indexes cannot answer a query; None where they can."""
    automaton = query.automaton
    if query.semantics is not Semantics.ANY:
        return f"indexes are for skip-till-any-match, not {query.semantics.value}"
    if query.tree.slide is None:
        return "indexes need a SLIDE"
    if query.machine.other:
        return f"{query.machine.other[0].condition} joins events that are not neighbours"
    if {*automaton.first.values(), *automaton.last.values(), *automaton.follow.values()} != {FREE}:
        return "no index crosses a negation"
    for edge, form in index_forms(query).items():
        if form is None:
            conditions = " AND ".join(f"({pair.condition})" for pair in query.machine.adjacent[edge])
            return f"no index answers {conditions}"
    return None


def index_texts(query: Query) -> list[str]:
    """Per edge, what answers its conditions, in words."""
    states = query.automaton.states
    return [f"{states[v].label} → {states[w].label}: {form or 'a scan'}" for (v, w), form in index_forms(query).items()]


def _form(pairs: Iterable[Pair]) -> Form | None:
    found: dict[str, list[tree.Condition]] = {"earlier": [], "later": []}
    compared: dict[str, list[Sides]] = {"equal": [], "ordered": []}
    for pair in pairs:
        for condition in _conjuncts(pair.condition):
            named = _references(tree.attributes(condition))
            sides = _sides(condition, pair)
            if len(named) < 2:
                found["later" if named == {pair.later} else "earlier"].append(condition)
            elif sides is None:
                return None
            else:
                compared["equal" if sides.op == "=" else "ordered"].append(sides)
    if len(compared["ordered"]) > 2:
        return None
    return Form(*map(tuple, found.values()), *map(tuple, compared.values()))  # type: ignore[arg-type]


def _conjuncts(condition: tree.Condition) -> Iterator[tree.Condition]:
    """What a condition is the AND of, also where it is the NOT of an OR."""
    match condition:
        case tree.AllOf(parts):
            for part in parts:
                yield from _conjuncts(part)
        case tree.Complement(tree.AnyOf(parts)):
            for part in parts:
                yield from _conjuncts(tree.Complement(part))
        case tree.Complement(tree.Complement(part)):
            yield from _conjuncts(part)
        case _:
            yield condition


def _sides(condition: tree.Condition, pair: Pair) -> Sides | None:
    if not isinstance(condition, tree.Comparison):
        return None
    left, right = (
        _references(leaf for leaf in tree.leaves(side) if isinstance(leaf, tree.Attribute))
        for side in (condition.left, condition.right)
    )
    if (left, right) == ({pair.earlier}, {pair.later}):
        return Sides(condition.left, condition.op, condition.right)
    if (left, right) == ({pair.later}, {pair.earlier}):
        return Sides(condition.right, _MIRRORED[condition.op], condition.left)
    return None


def _references(attributes: Iterable[tree.Attribute]) -> set[Reference]:
    return {Reference(attribute.variable, attribute.next) for attribute in attributes}
