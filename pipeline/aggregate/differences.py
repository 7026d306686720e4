"""Where two answers to one question differ: exact values must be equal, rounded ones as near as engines promise."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

from pipeline.aggregate.columns import CLOCK
from pipeline.aggregate.partials import Key, Parts, finished, gold_rows
from pipeline.aggregate.reach import as_micros
from pipeline.aggregate.windows import TRENDS
from pipeline.approximate import Approximate
from pipeline.engines.contract import Value
from pipeline.events import Events, Texts
from pipeline.quality.mask import DIGITS
from pipeline.query import tree
from pipeline.query.checked import Query
from pipeline.questions import Question
from pipeline.results import decimal_text
from pipeline.tables import LOG10, item_name

MOST = 20  # of one window that are told
ROUNDING = 2.0**-52  # of a value an event
WRITTEN = 1e-9  # of a value, as far as its log10 says it
LONGEST = 40  # digits that are told

Gold = Mapping[str, Any]  # a row of gold


@dataclass(frozen=True)
class Difference:
    """One value of one row on which two engines differ."""

    window_start: int
    window_end: int
    group: tuple[str, ...]  # as `name value`, masked where sensitive
    item: str
    engines: tuple[str, str]
    values: tuple[str, str]
    first_events: int | None = None  # of the window, where only these were given

    def __str__(self) -> str:
        prefix = f", its first {self.first_events} events" if self.first_events is not None else ""
        told = [f"window {CLOCK.show(self.window_start)} to {CLOCK.show(self.window_end)}{prefix}", *self.group]
        values = ", ".join(f"{engine} {value}" for engine, value in zip(self.engines, self.values, strict=True))
        return f"{', '.join(told)}: {self.item}: {values}"


@dataclass(frozen=True)
class Scale:
    """What rounded values are measured by: the number of events, and each attribute's largest absolute value."""

    events: int
    largest: Mapping[str, float]

    @classmethod
    def of(cls, query: Query, events: Events) -> Scale:
        """The scale of a query's aggregates over some events."""
        names = {part.attribute for part in query.aggregates if part.function == "SUM"}
        columns = {name: column for name, column in events.attributes.items() if name in names}
        largest = {
            name: max((abs(float(value)) for value in column.values[~column.null]), default=0.0)
            for name, column in columns.items()
            if not isinstance(column, Texts)
        }
        return cls(len(events), largest)

    def error(self, aggregate: tree.Aggregate, value: Value, trends: Value) -> Approximate:
        """How far two rounded values of an aggregate may lie apart: each is off by n·2⁻⁵² of its size at most.

        The size of a SUM is that of its terms, since they may cancel out: no trend has more than all events.
        """
        largest = self.largest.get(aggregate.attribute or "", 0.0)
        size = {
            "COUNT": lambda: _size(value),
            "SUM": lambda: _size(trends) * self.events * largest,
            "AVG": lambda: Approximate.of(2 * largest),  # the quotient of two of them
        }.get(aggregate.function, lambda: Approximate.of(0))()
        return size * (2 * self.events * ROUNDING)


def differences(
    question: Question, query: Query, scale: Scale, one: tuple[str, Parts], two: tuple[str, Parts], prefix: int | None
) -> tuple[Difference, ...]:
    """Where two engines' rows of the same events differ, the first of them; `query`: that of a window alone.

    `prefix`: how many of the window's events these are, where not all.
    """
    told = _Teller(question, (one[0], two[0]), prefix)
    return tuple(islice(_part_differences(told, query, scale, one[1], two[1]), MOST))


def _part_differences(told: _Teller, query: Query, scale: Scale, one: Parts, two: Parts) -> Iterator[Difference]:
    at = query.aggregates.index(TRENDS)
    for key in sorted({*one, *two}):
        first, second = one.get(key), two.get(key)
        if first is None or second is None:
            yield told.missing(key, first is None)
            continue
        for aggregate, left, right in zip(query.aggregates, first, second, strict=True):
            if not _same(left, right, scale.error(aggregate, left, first[at])):
                yield told.values(key, aggregate, left, right)


def gold_differences(
    question: Question, query: Query, scale: Scale, gold: tuple[str, Sequence[Gold]], other: tuple[str, Parts]
) -> tuple[Difference, ...]:
    """Where rows of gold differ from an engine's of the same windows."""
    told = _Teller(question, (gold[0], other[0]), None)
    return tuple(islice(_gold_differences(told, query, scale, gold[1], other[1]), MOST))


def _gold_differences(
    told: _Teller, query: Query, scale: Scale, rows: Sequence[Gold], parts: Parts
) -> Iterator[Difference]:
    asked = told.question
    values = finished(asked.query, parts)
    keys = asked.table.keys
    found = {tuple(row[name] for name in keys): row for row in rows}
    # Both are in the order of their windows and groups, so that a row is that of its key.
    wanted = dict(zip(sorted(values), gold_rows(asked, values).to_pylist(), strict=True))
    items = [(item_name(item), item.value) for item in asked.query.tree.returns]
    at, trends = asked.query.aggregates, query.aggregates.index(TRENDS)
    for key, row in wanted.items():
        kept = found.pop(tuple(row[name] for name in keys), None)
        if kept is None:
            # A rounded value may lie on either side of what HAVING asks for.
            if row["exact"] or asked.query.tree.having is None:
                yield told.missing(key, True)
            continue
        for name, aggregate in items:
            if not isinstance(aggregate, tree.Aggregate) or kept[name] == row[name]:
                continue
            value, exact = values[key][at.index(aggregate)], kept["exact"] and row["exact"]
            error = scale.error(aggregate, value, parts[key][trends]) + _size(value) * WRITTEN
            if exact or not _same(_read(kept, name), value, error):
                yield told.values(key, aggregate, kept[name], row[name])
    for row in found.values():
        if row["exact"] or asked.query.tree.having is None:
            yield told.missing(_key(asked, row), False)


def _key(asked: Question, row: Gold) -> Key:
    group = tuple(row[name] for name in asked.query.group_by)
    return as_micros(row["window_start"]), as_micros(row["window_end"]), group


def _read(row: Gold, name: str) -> Value:
    """A rounded number of gold: its log10 has more digits than its text."""
    if row.get(name + LOG10) is None:
        value: Value = row[name]
        return value
    exponent, rest = divmod(row[name + LOG10] / math.log10(2), 1)
    size = Approximate.of(2.0**rest, int(exponent))
    return -size if row[name].startswith("-") else size


def _same(one: Value, two: Value, error: Approximate) -> bool:
    if one == two:
        return True
    if one is None or two is None or isinstance(one, str) or isinstance(two, str):
        return False
    rounded = isinstance(one, Approximate) or isinstance(two, Approximate)
    return rounded and _size(Approximate.of(one) - two) <= error


def _size(value: Value) -> Approximate:
    if value is None or isinstance(value, str):
        return Approximate.of(0)
    size = Approximate.of(value)
    return -size if size.mantissa < 0 else size


# -------------------------------------------------------------------------------------------------------------- telling


@dataclass(frozen=True)
class _Teller:
    """Writes differences down, sensitive values masked."""

    question: Question
    engines: tuple[str, str]
    prefix: int | None

    def missing(self, key: Key, from_first: bool) -> Difference:
        """A row that one of the two does not have."""
        told = ("no row", "a row") if from_first else ("a row", "no row")
        return self._difference(key, "row", told)

    def values(self, key: Key, aggregate: tree.Aggregate, one: Any, two: Any) -> Difference:
        """Two values of an aggregate."""
        if aggregate.attribute in self.question.dataset.sensitive:
            return self._difference(key, str(aggregate), ("hidden", "another"))
        return self._difference(key, str(aggregate), (told_value(one), told_value(two)))

    def _difference(self, key: Key, item: str, values: tuple[str, str]) -> Difference:
        start, end, group = key
        names = zip(self.question.query.group_by, group, strict=True)
        named = tuple(f"{name} {self._masked(name, value)}" for name, value in names)
        return Difference(start, end, named, item, self.engines, values, self.prefix)

    def _masked(self, name: str, value: Any) -> str:
        """As quality/mask.py has it."""
        if name not in self.question.dataset.sensitive:
            return str(value)
        return f"{name}-{hashlib.sha256(str(value).encode()).hexdigest()[:DIGITS]}"


def told_value(value: Any) -> str:
    """A value in a few words: of a long number its size and its last digits, where most mistakes show.

    >>> told_value(2**40), told_value(2**300 + 1), told_value(None)
    ('1099511627776', '2.0370e90 (…381299763336706183397377)', 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST:
        return f"{decimal_text(Fraction(value))} (…{abs(value) % 10**24:024d})"
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:12]}…{text[-24:]} ({len(text)} digits)"
