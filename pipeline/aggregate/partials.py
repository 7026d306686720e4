"""Aggregates in parts: rows of one window and group from several partitions are joined, then finished as gold has them.

A part has COUNT and SUM where the query asks for AVG, so that parts can be added up exactly.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import pyarrow as pa

from pipeline.aggregate.reach import MICROS
from pipeline.approximate import Approximate
from pipeline.engines.contract import DEFAULT_MAX_BITS, Row, Value
from pipeline.engines.stream import Stream
from pipeline.query import tree
from pipeline.query.checked import Query
from pipeline.questions import Question
from pipeline.results import group_values, is_kept, is_rounded, show_value
from pipeline.tables import LOG10, PROVENANCE, Column, Table, item_name

# A window's start and end, and its group.
Key = tuple[int, int, tuple[Any, ...]]
Parts = dict[Key, tuple[Value, ...]]

ARROW = {
    "string": pa.string(),
    "double": pa.float64(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def in_parts(query: Query) -> Query:
    """The query with aggregates that can be added up."""
    aggregates = dict.fromkeys(part for aggregate in query.aggregates for part in _parts(aggregate))
    return replace(query, aggregates=tuple(aggregates))


def _parts(aggregate: tree.Aggregate) -> tuple[tree.Aggregate, ...]:
    if aggregate.function != "AVG":
        return (aggregate,)
    return replace(aggregate, function="SUM"), replace(aggregate, function="COUNT")


def collected(query: Query, stream: Stream, rows: Iterable[Row], low: int, high: int) -> Parts:
    """An engine's rows whose windows end from low up to high; `query`: in parts."""
    groups = group_values(query, stream)
    return {
        (row.window_start, row.window_end, groups[row.group]): row.values
        for row in rows
        if low <= row.window_end < high
    }


def joined(query: Query, parts: Iterable[Parts]) -> Parts:
    """The rows of several parts, added up; `query`: in parts."""
    join = [_JOIN[aggregate.function] for aggregate in query.aggregates]
    found: Parts = {}
    for part in parts:
        for key, values in part.items():
            before = found.get(key)
            if before is not None:
                values = tuple(map(_joined, join, before, values))
            found[key] = values
    return found


def _joined(join: Callable[[Any, Any], Value], one: Value, two: Value) -> Value:
    """A part without a value adds nothing."""
    return two if one is None else one if two is None else join(one, two)


_JOIN: dict[str, Callable[[Any, Any], Value]] = {
    "COUNT": lambda a, b: a + b,
    "SUM": lambda a, b: a + b,
    "MIN": min,
    "MAX": max,
}


def finished(query: Query, parts: Parts) -> Parts:
    """The values of the query's own aggregates, AVG too; the rows that HAVING keeps."""
    at = {aggregate: number for number, aggregate in enumerate(in_parts(query).aggregates)}
    places = [[at[part] for part in _parts(aggregate)] for aggregate in query.aggregates]
    rows = {key: tuple(_value(values, place) for place in places) for key, values in parts.items()}
    if query.tree.having is None:
        return rows
    return {
        key: values
        for key, values in rows.items()
        if is_kept(query, values, dict(zip(query.group_by, key[2], strict=True)))
    }


def _value(values: tuple[Value, ...], places: list[int]) -> Value:
    if len(places) == 1:
        return values[places[0]]
    total, count = (values[place] for place in places)
    if total is None or not count:
        return None
    if isinstance(total, Approximate) or isinstance(count, Approximate):
        return Approximate.of(total) / count  # type: ignore[arg-type, operator]
    return Fraction(total) / count  # type: ignore[operator]


# ----------------------------------------------------------------------------------------------------------------- gold


def data_columns(table: Table) -> tuple[Column, ...]:
    """The columns of a gold table that a job fills: window, group, items and whether all is exact."""
    own = {column.name for column in PROVENANCE if column.name != "exact"} | {"interval_date"}
    return tuple(column for column in table.columns if column.name not in own)


def gold_schema(question: Question) -> Any:
    """The Arrow schema of these columns."""
    return pa.schema([pa.field(column.name, ARROW[column.type]) for column in data_columns(question.table)])


def gold_rows(question: Question, rows: Mapping[Key, tuple[Value, ...]]) -> Any:
    """Finished rows as gold has them, by window and group."""
    sys.set_int_max_str_digits(0)  # counts have any number of digits; each task is a process with a limit of its own
    query, types = question.query, {column.name: column.type for column in question.table.columns}
    ordered = sorted(rows.items())
    named = {name: [key[2][at] for key, _ in ordered] for at, name in enumerate(query.group_by)}
    columns: dict[str, list[Any]] = {
        "window_start": [key[0] for key, _ in ordered],
        "window_end": [key[1] for key, _ in ordered],
        **{name: [_typed(types[name], value) for value in values] for name, values in named.items()},
    }
    exact = [True] * len(ordered)
    for item in query.tree.returns:
        name = item_name(item)
        if isinstance(item.value, tree.Name):
            columns[name] = [_typed(types[name], value) for value in named[item.value.name]]
            continue
        at = query.aggregates.index(item.value)
        values = [row[at] for _, row in ordered]
        exact = [
            so_far and not is_rounded(value, DEFAULT_MAX_BITS) for so_far, value in zip(exact, values, strict=True)
        ]
        shown = [show_value(value) for value in values]
        if name + LOG10 in types:
            columns[name] = [None if value is None else str(value) for value in shown]
            columns[name + LOG10] = [log10(value) for value in values]
        else:
            columns[name] = [_typed(types[name], value) for value in shown]
    columns["exact"] = exact
    return pa.table(
        [pa.array(columns[field.name], field.type) for field in gold_schema(question)], schema=gold_schema(question)
    )


def log10(value: Value) -> float | None:
    """The decimal logarithm of a number's absolute value, of any size.

    >>> log10(10**400), log10(Fraction(-1, 100)), log10(0)
    (400.0, -2.0, None)
    """
    if not value or isinstance(value, str):
        return None
    if isinstance(value, int):
        return math.log10(abs(value))
    if isinstance(value, Approximate):
        return math.log10(abs(value.mantissa)) + value.exponent * math.log10(2)
    fraction = abs(Fraction(value))
    return math.log10(fraction.numerator) - math.log10(fraction.denominator)


def _typed(kind: str, value: Any) -> Any:
    """A value of the engines as a column of this type holds it."""
    if value is None:
        return None
    if kind == "boolean":
        return value == "true"
    if kind == "date":
        return date.fromisoformat(value)
    if kind == "timestamp":
        return round(value * MICROS)
    return float(value) if kind == "double" else value
