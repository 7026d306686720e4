"""What a plan holds: small records of texts and numbers, which JSON takes as they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """A place in the query's text, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class State:
    """An occurrence of the pattern, and the conditions on its events alone."""

    name: str
    types: tuple[str, ...]
    variable: str | None
    conditions: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Step:
    """A way to begin (no source), to go on, or to end (no target): its conditions, and what must be absent."""

    source: str | None
    target: str | None
    conditions: tuple[str, ...]
    absent: tuple[tuple[str, ...], ...]  # alternatives; each the negated patterns that must have no match
    text: str


@dataclass(frozen=True)
class Pattern:
    """The automaton of the trend, or of a negated pattern."""

    text: str
    states: tuple[State, ...]
    first: tuple[Step, ...]
    last: tuple[Step, ...]
    follow: tuple[Step, ...]
    negations: tuple[Negation, ...]


@dataclass(frozen=True)
class Negation:
    """A negated pattern: the steps that it guards, and what a match of it must satisfy to count."""

    pattern: Pattern
    guards: tuple[str, ...]
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Predicate:
    """A conjunct of WHERE."""

    kind: str
    condition: str
    place: str


@dataclass(frozen=True)
class Partition:
    """What splits the stream, and what results are given by."""

    keys: tuple[str, ...]
    values: dict[str, int | float | str]  # of [a = 'v']
    group_by: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Window:
    """WITHIN and SLIDE: in seconds or events, and in words."""

    unit: str
    within: int | float
    slide: int | float | None
    text: str


@dataclass(frozen=True)
class Semantics:
    """Which events a trend may skip."""

    name: str
    text: str


@dataclass(frozen=True)
class Aggregate:
    """What is aggregated, and the columns of the result that show it (none: only HAVING needs it)."""

    text: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Attribute:
    """An attribute that the events must have, and what it must be."""

    name: str
    kind: str
    place: Place


@dataclass(frozen=True)
class Warning:
    """Something that is allowed but may not be meant."""

    message: str
    place: Place


@dataclass(frozen=True)
class Verdict:
    """Whether an engine can run the query; if not, for which clause and reason."""

    name: str
    can: bool
    clause: str | None
    reason: str | None
    idea: str  # how it would run the query


@dataclass(frozen=True)
class Plan:
    """All that there is to know about a query before it runs."""

    file: str
    query: str  # in its canonical form
    pattern: Pattern
    predicates: tuple[Predicate, ...]
    partition: Partition
    window: Window
    semantics: Semantics
    aggregates: tuple[Aggregate, ...]
    having: str | None
    attributes: tuple[Attribute, ...]
    warnings: tuple[Warning, ...]
    engines: tuple[Verdict, ...]  # from the cheapest to the most general
    auto: str | None
    why: str


def path(source: str | None, target: str | None) -> str:
    """The ends of a step as they are shown.

    >>> path("A", "B"), path(None, "A")
    ('A → B', 'A')
    """
    return " → ".join(filter(None, (source, target)))


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as what JSON has: objects, lists, texts, numbers."""
    plain: dict[str, Any] = _plain(asdict(plan))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
