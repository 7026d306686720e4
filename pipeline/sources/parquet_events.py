"""Events in Parquet: the file says what type each column has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from pipeline.errors import InputError
from pipeline.events import Kind, Numbers
from pipeline.sources.columns import Bad, Batch, ColumnReader, NumberColumn, TextColumn
from pipeline.sources.numbers import cast, from_arrow, from_integers, null_mask
from pipeline.sources.times import TimeColumn

BATCH = 1 << 17


class ParquetSource:
    """One Parquet file."""

    place = ": row {}"
    open_schema = False

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._file = pq.ParquetFile(path)
            self._schema = self._file.schema_arrow
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path}: not a readable Parquet file, whatever its name says ({_first(error)})") from None
        self.known = tuple(self._schema.names)
        if twice := [name for name in dict.fromkeys(self.known) if self.known.count(name) > 1]:
            raise InputError(f"{path}: the columns {', '.join(map(repr, twice))} occur more than once")

    def separator_hint(self) -> str | None:
        """Nothing: a Parquet file has no separators to get wrong."""
        return None

    def time_reader(self) -> TimeColumn:
        """How to read the column `time`."""
        kind = _plain(self._schema.field("time").type)
        known = (types.is_integer, types.is_floating, types.is_decimal, types.is_timestamp, types.is_date, is_text)
        if not any(fits(kind) for fits in known):
            raise self._wrong_type("time", "a time (a number of seconds, a timestamp, a date or ISO 8601 text)")
        return TimeColumn(self._path)

    def reader(self, name: str, kind: Kind, asked: bool) -> ColumnReader | None:
        """How to read a column; None for one of a nested type that no query asked about."""
        stored = _plain(self._schema.field(name).type)
        if is_number(stored) and kind is not Kind.TEXT:
            return TypedNumberColumn()
        if is_textual(stored) and kind is not Kind.NUMBER:
            return TypedTextColumn()
        if types.is_null(stored):
            return TypedTextColumn() if kind is Kind.TEXT else TypedNumberColumn()
        if not asked:
            return None
        raise self._wrong_type(name, {Kind.NUMBER: "a number", Kind.TEXT: "text"}.get(kind, "a number or text"))

    def _wrong_type(self, name: str, needed: str) -> InputError:
        stored = self._schema.field(name).type
        return InputError(f"{self._path}: {name}: a column of type {stored}, where the query needs {needed}")

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """The rows, some thousands at a time."""
        before = 0
        try:
            for rows in self._file.iter_batches(BATCH, columns=list(names)):
                columns = {name: _decoded(rows.column(rows.schema.get_field_index(name))) for name in names}
                yield Batch(columns, rows.num_rows, lambda row, first=before + 1: first + row)  # type: ignore[misc]
                before += rows.num_rows
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self._path}: the file is damaged after row {before} ({_first(error)})") from None


class TypedNumberColumn(NumberColumn):
    """Integers, floats and decimals."""

    def read(self, raw: Any) -> tuple[Numbers, Bad]:
        """The numbers of a batch."""
        numbers = _numbers(raw)
        infinite = np.isinf(numbers.values) if numbers.values.dtype == np.float64 else np.empty(0)
        return numbers, {int(row): f"{numbers.values[row]} is not a finite number" for row in np.flatnonzero(infinite)}


def _numbers(raw: Any) -> Numbers:
    whole = (
        types.is_integer(raw.type) or types.is_null(raw.type) or (types.is_decimal(raw.type) and raw.type.scale <= 0)
    )
    if not whole:
        # A decimal goes by its text, which is rounded once.
        return from_arrow((raw.cast(pa.string()) if types.is_decimal(raw.type) else raw).cast(pa.float64()))
    if (integers := cast(raw, pa.int64())) is not None:
        return from_arrow(integers)
    return from_integers([int(value or 0) for value in raw.to_pylist()], null_mask(raw))


class TypedTextColumn(TextColumn):
    """Texts, booleans, dates and timestamps, the last as ISO 8601."""

    def read(self, raw: Any) -> tuple[Any, Bad]:
        """The texts of a batch."""
        if types.is_dictionary(raw.type):
            return super().read(raw)
        return super().read(_iso(raw) if types.is_timestamp(raw.type) else raw.cast(pa.string()))


def _iso(raw: Any) -> Any:
    """Timestamps as results write times: in UTC, with no more decimals than needed."""
    unzoned = raw.cast(pa.int64()).cast(pa.timestamp(raw.type.unit))
    text = pc.strftime(unzoned, "%Y-%m-%dT%H:%M:%S")
    if raw.type.unit != "s":
        text = pc.replace_substring_regex(text, r"\.?0*$", "")
    return pc.binary_join_element_wise(text, "Z", "")


def is_text(kind: Any) -> bool:
    """Text in any of Arrow's layouts; bytes are taken for UTF-8, as old writers mark no text."""
    return any(fits(kind) for fits in (types.is_string, types.is_large_string, types.is_string_view, types.is_binary))


def is_textual(kind: Any) -> bool:
    """What a query can see as text."""
    return is_text(kind) or types.is_boolean(kind) or types.is_timestamp(kind) or types.is_date(kind)


def is_number(kind: Any) -> bool:
    """What a query can see as a number."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _plain(kind: Any) -> Any:
    return kind.value_type if types.is_dictionary(kind) else kind


def _decoded(raw: Any) -> Any:
    plain = raw.dictionary_decode() if types.is_dictionary(raw.type) else raw
    return plain.cast(pa.string()) if is_text(plain.type) else plain


def _first(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
