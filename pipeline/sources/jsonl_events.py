"""Events in JSON lines: one object an event, which may leave any attribute out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from pipeline.errors import InputError
from pipeline.events import Kind
from pipeline.sources.columns import Batch, ColumnReader
from pipeline.sources.json_columns import (
    DecidedColumn,
    JsonNumberColumn,
    JsonTextColumn,
    JsonTimeColumn,
    LooseColumn,
    NumberText,
)
from pipeline.sources.numbers import MAX_DIGITS, whole_number
from pipeline.sources.times import TimeColumn

BATCH = 1 << 15
READERS: dict[Kind, type[ColumnReader]] = {
    Kind.NUMBER: JsonNumberColumn,
    Kind.TEXT: JsonTextColumn,
    Kind.ORDERED: DecidedColumn,
    Kind.ANY: DecidedColumn,
}


def _constant(name: str) -> float | None:
    return None if name == "NaN" else float(name)


# Decimals stay text, so that a time loses no digit.
decode = json.JSONDecoder(parse_float=NumberText, parse_constant=_constant).raw_decode
# Only a long line can have a long integer: the others need no call for each of theirs.
decode_long = json.JSONDecoder(parse_float=NumberText, parse_int=whole_number, parse_constant=_constant).raw_decode


class JsonlSource:
    """One file of JSON lines."""

    place = ":{}"
    open_schema = True

    def __init__(self, path: str, stream: BinaryIO, all_columns: bool) -> None:
        self._path, self._stream = path, stream
        self._known: dict[str, None] = {}
        if all_columns:
            # A first pass for the names alone: a column may first occur in the last line.
            for _ in self.batches(()):
                pass
            stream.seek(0)

    @property
    def known(self) -> tuple[str, ...]:
        """Every key so far; of the whole file once it has been read."""
        return tuple(self._known)

    def separator_hint(self) -> str | None:
        """Nothing: a JSON file has no separators to get wrong."""
        return None

    def time_reader(self) -> TimeColumn:
        """How to read the key `time`."""
        return JsonTimeColumn(self._path)

    def reader(self, name: str, kind: Kind, asked: bool) -> ColumnReader:
        """How to read a key; one that no query asked about may hold anything."""
        return READERS[kind]() if asked else LooseColumn()

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """The objects, some thousands at a time."""
        known: set[str] = set(self._known)
        any_object = False
        cells: list[list[Any]] = [[] for _ in names]
        slots = [(name, column.append) for name, column in zip(names, cells, strict=True)]
        lines: list[int] = []
        broken: list[tuple[int, str]] = []
        for number, raw in enumerate(self._stream, 1):
            row = parse_line(raw, number)
            if row is None:
                continue
            if isinstance(row, str):
                broken.append((number, row))
            else:
                any_object = True
                if not row.keys() <= known:
                    self._known.update(dict.fromkeys(row))
                    known.update(row)
                get = row.get
                for name, append in slots:
                    append(get(name))
                lines.append(number)
            if len(lines) + len(broken) >= BATCH:
                yield _batch(names, cells, lines, broken)
                for column in cells:
                    column.clear()
                lines, broken = [], []
        yield _batch(names, cells, lines, broken)
        if not any_object:
            raise InputError(f"{self._path}: the file has no events\nhint: write one JSON object a line")


def _batch(names: Sequence[str], cells: list[list[Any]], lines: list[int], broken: list[tuple[int, str]]) -> Batch:
    columns: dict[str, Any] = {name: list(column) for name, column in zip(names, cells, strict=True)}
    return Batch(columns, len(lines), lines.__getitem__, broken)


def parse_line(raw: bytes, number: int) -> dict[str, Any] | str | None:
    """A line's object, what is wrong with it, or None for a blank line.

    >>> parse_line(b'{"time": 1}', 1), parse_line(b"[1]", 2)
    ({'time': 1}, 'the line is a list, not an object')
    """
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        return "the line is not UTF-8 text"
    if number == 1:
        text = text.removeprefix("\ufeff")
    if not text:
        return None
    try:
        row, end = decode(text) if len(text) <= MAX_DIGITS else decode_long(text)
        if end != len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except json.JSONDecodeError as error:
        if text == "[":
            return "the line is not a JSON object: write one object a line, and no list around them"
        return f"the line is not valid JSON: {error.msg} at column {error.pos + 1}"
    except (ValueError, RecursionError):  # an integer too long; nested a thousand deep
        return "the line has a number too long, or values nested too deep"
    return row if isinstance(row, dict) else f"the line is {_name(row)}, not an object"


def _name(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "a list" if isinstance(value, list) else "a text" if type(value) is str else "a number"
