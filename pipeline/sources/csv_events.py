"""Events in CSV: a header, then one event a row; every value is text until a column proves to be numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv

from pipeline.errors import InputError
from pipeline.events import Kind
from pipeline.sources.columns import Batch, ColumnReader, GuessedColumn, NumberColumn, OrderedColumn, TextColumn
from pipeline.sources.csv_blocks import Block, locate_records, read_blocks, split_header
from pipeline.sources.times import TimeColumn

READERS: dict[Kind, type[ColumnReader]] = {
    Kind.NUMBER: NumberColumn,
    Kind.TEXT: TextColumn,
    Kind.ORDERED: OrderedColumn,
    Kind.ANY: GuessedColumn,
}


class CsvSource:
    """One CSV file."""

    place = ":{}"
    open_schema = False

    def __init__(self, path: str, stream: BinaryIO) -> None:
        self._path, self._stream = path, stream
        try:
            self._header, self._rest, self._line = split_header(stream)
        except UnicodeDecodeError:
            raise InputError(f"{path}: not a UTF-8 text file\nhint: save it as CSV in UTF-8") from None
        except csv.Error:
            raise InputError(f"{path}:1: a quote in the header is not closed, or text follows it") from None
        self.known = tuple(name for name in self._header if name)
        if not self.known:
            raise InputError(f"{path}: the file is empty\nhint: the first line names the columns, such as time,type")
        if twice := [name for name in dict.fromkeys(self.known) if self.known.count(name) > 1]:
            raise InputError(
                f"{path}:1: the header names {', '.join(map(repr, twice))} more than once\n"
                "hint: give each column a name of its own"
            )

    def separator_hint(self) -> str | None:
        """What may be wrong with a header of one column."""
        for character, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if len(self._header) == 1 and character in self._header[0]:
                return f"the columns seem to be separated by {name}; write commas"
        return None

    def time_reader(self) -> TimeColumn:
        """How to read the column `time`."""
        return TimeColumn(self._path)

    def reader(self, name: str, kind: Kind, asked: bool) -> ColumnReader:
        """How to read a column."""
        return READERS[kind]()

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """The rows, some megabytes at a time."""
        for block in read_blocks(self._stream, self._rest, self._line, len(self._header)):
            self._rest = b""
            yield self._batch(block, names)

    def _batch(self, block: Block, names: Sequence[str]) -> Batch:
        width = len(self._header)

        @cache
        def located() -> tuple[list[int], list[tuple[int, str]]]:
            return locate_records(block, width)

        def line(row: int) -> int:
            starts = located()[0]
            # Should two CSV parsers ever disagree about what a record is, a message names the block's start.
            return starts[row] if len(starts) == table.num_rows else block.first_line

        if not block.text.strip():
            empty = pa.array([], pa.string())
            return Batch(dict.fromkeys(names, empty), 0, lambda row: block.first_line, block.broken)
        ragged: list[object] = []
        table = self._parse(block, names, ragged)
        broken = block.broken + (located()[1] if ragged else [])
        columns = dict(zip(names, (_one_array(column) for column in table.columns), strict=True))
        return Batch(columns, table.num_rows, line, broken)

    def _parse(self, block: Block, names: Sequence[str], ragged: list[object]) -> Any:
        """The block's columns as text; lines with too many or too few fields are noted and left out."""

        def leave_out(row: object) -> str:
            ragged.append(row)
            return "skip"

        # Columns go by position, since a header may leave a name empty.
        wanted = [str(self._header.index(name)) for name in names]
        try:
            return pa.csv.read_csv(
                pa.BufferReader(block.text),
                pa.csv.ReadOptions(
                    column_names=[str(index) for index in range(len(self._header))],
                    use_threads=False,
                    block_size=len(block.text) + 1,
                ),
                pa.csv.ParseOptions(newlines_in_values=block.quoted, invalid_row_handler=leave_out),
                pa.csv.ConvertOptions(
                    check_utf8=False,  # done by the block
                    include_columns=wanted,
                    column_types=dict.fromkeys(wanted, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid as error:
            raise InputError(f"{self._path}: from line {block.first_line} on: {error}") from None


def _one_array(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
