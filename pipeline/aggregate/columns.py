"""Silver's columns as Arrow gives them → the events of a query: only the columns and rows that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from pipeline.aggregate.reach import MICROS
from pipeline.engines.evaluate import holds, take
from pipeline.engines.stream import in_partitions
from pipeline.events import Array, Clock, Column, Events, Texts, TimeStyle
from pipeline.query.checked import Machine
from pipeline.query.tree import Semantics
from pipeline.questions import Question
from pipeline.sources.columns import ColumnReader
from pipeline.sources.parquet_events import TypedNumberColumn, TypedTextColumn, is_number
from pipeline.sources.times import seconds_of

CLOCK = Clock(MICROS, TimeStyle.ISO)
TIME = "time"


def needed_columns(question: Question) -> tuple[str, ...]:
    """The columns of silver that a query reads."""
    query = question.query
    types = question.dataset.types if _asks_types(question) else ()
    return tuple(dict.fromkeys((TIME, *query.keys, *query.uses, *types)))


class SilverTable:
    """Rows of silver; a column becomes an array once, however many queries ask for it."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.time: Array = np.asarray(table.column(TIME).cast(pa.int64()).to_numpy())
        self._columns: dict[str, Column] = {}

    def events(self, question: Question, rows: slice = slice(None), *, last: bool = False) -> Events:
        """The events of some rows that can matter to a query; the `last` one leaves its memory to the engine."""
        whole = self._events(question, rows)
        if last:
            self.table = None
            self._columns.clear()
        kept = np.flatnonzero(relevant(question, whole))
        if len(kept) == len(whole):
            return whole
        return replace(
            whole,
            time=whole.time[kept],
            types=tuple(take(column, kept) for column in whole.types),  # type: ignore[misc]
            attributes={name: take(column, kept) for name, column in whole.attributes.items()},
        )

    def relevant_rows(self, question: Question, rows: slice = slice(None)) -> Any:
        """Of some rows those that can matter to a query, with the columns that it needs."""
        start, stop, _ = rows.indices(len(self.time))
        some = self.table.select(needed_columns(question)).slice(start, stop - start)
        kept = relevant(question, self._events(question, rows))
        return some if kept.all() else some.filter(pa.array(kept))

    def column(self, name: str) -> Column:
        """A column as the engines have it."""
        if name not in self._columns:
            self._columns[name] = seconds_of(self.time, CLOCK) if name == TIME else _column(self.table.column(name))
        return self._columns[name]

    def _events(self, question: Question, rows: slice) -> Events:
        types = question.dataset.types if _asks_types(question) else ()
        names = dict.fromkeys((*question.query.keys, *question.query.uses))
        return Events(
            time=self.time[rows],
            clock=CLOCK,
            types=tuple(_sliced(self.column(name), rows) for name in types),  # type: ignore[misc]
            attributes={name: _sliced(self.column(name), rows) for name in names},
            known=tuple(self.table.column_names),
            open_schema=False,
        )


def relevant(question: Question, events: Events) -> Array:
    """Which events can matter: those in a partition that can be bound or negate; under contiguous, all of it."""
    query = question.query
    kept = in_partitions(query, events)
    mask = np.ones(len(events), bool) if kept is None else kept
    if query.semantics is Semantics.CONTIGUOUS:
        return mask
    source = question.dataset.name.casefold()
    fits = np.zeros(len(events), bool)
    for machine in _machines(query.machine):
        for state in machine.automaton.states:
            fits |= _of_types(state.types, source, events) & _holds(machine.local.get(state.index, ()), events)
    return mask & fits


def _machines(machine: Machine) -> Iterator[Machine]:
    yield machine
    for guard in machine.guards:
        yield from _machines(guard.machine)


def _of_types(names: Iterable[str], source: str, events: Events) -> Array:
    mask = np.zeros(len(events), bool)
    for name in names:
        if name.casefold() == source:
            return np.ones(len(events), bool)
        for column in events.types:
            if name in column.words:
                mask |= column.codes == column.words.index(name)
    return mask


def _holds(conditions: Iterable[Any], events: Events) -> Array:
    mask = np.ones(len(events), bool)
    for condition in conditions:
        mask &= holds(condition, lambda attribute: events.attributes[attribute.attribute])
    return mask


def _asks_types(question: Question) -> bool:
    source = question.dataset.name.casefold()
    return any(name.casefold() != source for types in question.query.occurrence_types for name in types)


def _sliced(column: Column, rows: slice) -> Column:
    if rows == slice(None):
        return column
    if isinstance(column, Texts):
        return Texts(column.codes[rows], column.words)
    return replace(column, values=column.values[rows], null=column.null[rows])


def _column(raw: Any) -> Column:
    reader: ColumnReader = TypedNumberColumn() if is_number(raw.type) else TypedTextColumn()
    for chunk in raw.chunks or [pa.array([], raw.type)]:
        reader.add(reader.read(chunk)[0])
    return reader.finish()


def hashed(column: Column) -> Array:
    """A number a value, the same in every process."""
    if isinstance(column, Texts):
        words = np.array([crc32(word.encode()) for word in column.words], np.uint64)
        return words[column.codes] if len(words) else np.zeros(len(column), np.uint64)
    values = column.values
    bits = (values + 0.0).view(np.uint64) if values.dtype == np.float64 else values.astype(np.uint64)
    return (bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)


def key_hash(events_columns: Iterable[Column], size: int) -> Array:
    """A number a combination of values."""
    total = np.zeros(size, np.uint64)
    for column in events_columns:
        total = total * np.uint64(1_000_003) + hashed(column)
    return total
