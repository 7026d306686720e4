"""Columns that grow batch by batch, and what reading one batch of a column gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.events import Array, Column, Numbers, Texts
from pipeline.sources.numbers import fill, join_numbers, numbers_from_text, numbers_from_words, parse_number

SAMPLE = 1000  # values among which the first that is not NaN is looked for

Bad = dict[int, str]  # position in the batch → what is wrong there


class ColumnReader(Protocol):
    """Reads one column. `read` changes nothing, so that a batch can be read again without its bad rows."""

    def read(self, raw: Any) -> tuple[Any, Bad]:
        """A batch's values in compact form; worth something only where no value is bad."""

    def add(self, chunk: Any) -> None:
        """Keep what `read` gave."""

    def finish(self) -> Column:
        """The whole column."""


@dataclass(frozen=True)
class Batch:
    """Some rows of a file: the raw columns, and where each row is."""

    columns: dict[str, Any]  # Arrow arrays, or lists of Python values for JSONL
    rows: int
    line: Callable[[int], int]  # the file's line (Parquet: row) of a row; computed only when a message needs it
    broken: list[tuple[int, str]] = field(default_factory=list)  # lines that are no rows at all, and why


class NumberColumn:
    """Numbers written as text."""

    def __init__(self) -> None:
        self._chunks: list[Numbers] = []

    def read(self, raw: Any) -> tuple[Numbers, Bad]:
        """The numbers of a batch."""
        return numbers_from_text(raw)

    def add(self, chunk: Numbers) -> None:
        """Keep the numbers of a batch."""
        self._chunks.append(chunk)

    def finish(self) -> Numbers:
        """All numbers in one array."""
        return join_numbers(self._chunks)


class TextColumn:
    """Text, kept as dictionary codes."""

    def __init__(self) -> None:
        self._chunks: list[Any] = []

    def read(self, raw: Any) -> tuple[Any, Bad]:
        """A batch's text as codes into its distinct words."""
        encoded = raw.dictionary_encode()
        # 64-bit offsets: the distinct words of a whole file may exceed the 2 GB that 32-bit ones can address.
        return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(pa.large_string())), {}

    def add(self, chunk: Any) -> None:
        """Keep the codes and words of a batch."""
        self._chunks.append(chunk)

    def finish(self) -> Column:
        """All text as codes into the sorted words."""
        return sorted_texts(*self._unify())

    def _unify(self) -> tuple[Any, Array]:
        """The distinct words of all batches, and each row's word (-1: null)."""
        if not self._chunks:
            return pa.array([], pa.large_string()), np.empty(0, np.int32)
        chunks = pa.chunked_array(self._chunks).unify_dictionaries().chunks
        self._chunks = []
        words, codes = chunks[0].dictionary, np.empty(sum(map(len, chunks)), np.int32)
        for part, chunk in fill(codes, chunks, len):
            part[:] = chunk.indices.fill_null(-1).to_numpy()
        return words, codes


class GuessedColumn(TextColumn):
    """Text that turns out to be numbers if every value of the whole file is one."""

    def finish(self) -> Column:
        """Numbers where every word is a number as a program would write it (`007` is not), else text."""
        words, codes = self._unify()
        numbers = numbers_from_words(words)
        if numbers is None:
            return sorted_texts(words, codes)
        # One more entry at the end stands for null, which is where code -1 points.
        values, null = np.append(numbers.values, numbers.values.dtype.type(0)), np.append(numbers.null, True)
        return Numbers(values[codes], null[codes])


class OrderedColumn:
    """Numbers throughout if the first value is a number, else text throughout."""

    def __init__(self) -> None:
        self._column: NumberColumn | TextColumn | None = None
        self._nulls = 0  # rows before the first value

    def read(self, raw: Any) -> tuple[Any, Bad]:
        """A batch as the first value says; its length as long as there is none."""
        column = self._column or _decided(raw)
        if column is None:
            return (None, len(raw)), {}
        chunk, bad = column.read(raw)
        return (column, chunk), bad

    def add(self, chunk: tuple[NumberColumn | TextColumn | None, Any]) -> None:
        """Keep a batch."""
        column, values = chunk
        if column is None:
            self._nulls += values
            return
        if self._column is None:
            self._begin(column)
        assert self._column is not None
        self._column.add(values)

    def finish(self) -> Column:
        """The whole column; numbers if there is no value at all."""
        if self._column is None:
            self._begin(NumberColumn())
        assert self._column is not None
        return self._column.finish()

    def _begin(self, column: NumberColumn | TextColumn) -> None:
        self._column = column
        column.add(column.read(pa.nulls(self._nulls, pa.string()))[0])


def _decided(raw: Any) -> NumberColumn | TextColumn | None:
    for word in raw.drop_null()[:SAMPLE].to_pylist():
        number = parse_number(word)
        if number is not None:
            return TextColumn() if isinstance(number, str) else NumberColumn()
    return None if len(raw) == raw.null_count else NumberColumn()


def sorted_texts(words: Any, codes: Array) -> Texts:
    """Codes into words of any order become codes into sorted words."""
    order = pc.array_sort_indices(words)  # by UTF-8 bytes, which is the order of code points, so Python's
    rank = np.empty(len(words) + 1, np.int32)
    rank[order.to_numpy()] = np.arange(len(words), dtype=np.int32)
    rank[-1] = -1
    return Texts(rank[codes], tuple(words.take(order).to_pylist()))
