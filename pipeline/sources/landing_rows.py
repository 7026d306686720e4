"""A landing file becomes rows of bronze: every line as it came, with its place, and what could not be read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from pipeline.errors import InputError
from pipeline.sources.formats import SAMPLE_LINES, UNKNOWN, Format, detect
from pipeline.sources.landing_bytes import Unreadable, file_hash, locate, members, opened
from pipeline.sources.text_lines import Lines, read_lines

MEMBER = "!"  # between an archive's path and its member's
PARQUET = b"PAR1"
PARQUET_ROWS = 1 << 16

EMPTY = "the file is empty"
UNKNOWN_FORMAT = "the file is in no known format"
NO_PARQUET = "the file is damaged: Parquet that cannot be read from here"

SCHEMA = pa.schema(
    [
        ("landing_date", pa.date32()),
        ("file", pa.string()),
        ("file_hash", pa.string()),
        ("format", pa.string()),
        ("header", pa.string()),
        ("line", pa.int32()),
        ("copy", pa.int32()),
        ("raw", pa.string()),
        ("problem", pa.string()),
        ("arrived_at", pa.timestamp("us", "UTC")),
    ]
)


NOTHING = Lines(pa.array([""]), np.ones(1, np.int32), np.zeros(1, np.int32), pa.array([EMPTY]))


@dataclass(frozen=True)
class LandingFile:
    """A file below the landing folder, as it was when it was listed."""

    landing: str  # the folder's path or URI
    path: str  # below it, such as stock/2013-10-07/aig_20131007_trade.csv.gz
    landing_date: date
    hash: str
    arrived_at: datetime
    bytes: int

    @property
    def uri(self) -> str:
        """Where the file is."""
        return f"{self.landing.rstrip('/')}/{self.path}"


def landing_file(landing: str, path: str, landing_date: date) -> LandingFile:
    """A file with the facts that its rows carry. Reads it once, for its hash."""
    uri = f"{landing.rstrip('/')}/{path}"
    size, modified = _state(uri)
    return LandingFile(landing, path, landing_date, file_hash(uri), modified, size)


def path_of(file: str) -> str:
    """The landing file of a row: its `file`, without the member of an archive.

    >>> path_of("activity/2030-01-07/data.zip!protocol/subject101.dat")
    'activity/2030-01-07/data.zip'
    """
    return file.partition(MEMBER)[0]


def read_rows(file: LandingFile, formats: Sequence[Format]) -> Iterator[Any]:
    """The file's rows as Arrow record batches of SCHEMA; in formats, those that its dataset knows."""
    with opened(file.uri) as stream:
        is_parquet = stream.read(4) == PARQUET
        stream.seek(0)
        if is_parquet:
            header, lines = _parquet_lines(stream)
            yield from _Rows(file, file.path).batches(header, lines, formats)
        else:
            some = False
            for member in members(stream):
                some = True
                name = file.path if member.name is None else f"{file.path}{MEMBER}{member.name}"
                yield from _Rows(file, name).batches(None, read_lines(member.blocks), formats)
            if not some:
                yield from _Rows(file, file.path).batches(None, iter(()), formats)
    if _state(file.uri) != (file.bytes, file.arrived_at):
        raise InputError(f"{file.uri}: changed while it was read\nhint: ingest it again, once it is written")


def _state(uri: str) -> tuple[int, datetime]:
    system, path = locate(uri)
    info = system.get_file_info(path)
    if not info.is_file:
        raise InputError(f"{uri}: no such file")
    # Microseconds are what tables hold.
    return info.size, datetime.fromtimestamp(info.mtime_ns // 1000 / 1e6, UTC)


class _Rows:
    """Makes the batches of one stream."""

    def __init__(self, file: LandingFile, name: str) -> None:
        self._file, self._name = file, name
        self._constants: dict[str, Any] = {}

    def batches(self, header: str | None, lines: Iterator[Lines], formats: Sequence[Format]) -> Iterator[Any]:
        """The stream's rows; the header is the first of the lines unless it is given."""
        first = next(lines, None)
        if first is None:
            yield self._batch(NOTHING, None, None)
            return
        readable = pc.is_null(first.problem)
        sample = first.text.filter(readable)[:SAMPLE_LINES].to_pylist()
        known = detect(formats, self._name, sample if header is None else [header, *sample])
        if known and header is None and readable[0].as_py() and known.is_header(sample[0]):
            header, first = sample[0], first[1:]
        for part in chain([first], lines):
            if len(part.text):
                yield self._batch(part, known, header)

    def _batch(self, lines: Lines, known: Format | None, header: str | None) -> Any:
        count = len(lines.text)
        file = self._file
        problem = lines.problem if known else pc.coalesce(lines.problem, pa.scalar(UNKNOWN_FORMAT))
        columns = {
            "landing_date": self._repeated(file.landing_date, "landing_date", count),
            "file": self._repeated(self._name, "file", count),
            "file_hash": self._repeated(file.hash, "file_hash", count),
            "format": self._repeated(known.name if known else UNKNOWN, "format", count),
            "header": self._repeated(header if known else None, "header", count),
            "line": pa.array(lines.number),
            "copy": pa.array(lines.copy),
            "raw": lines.text,
            "problem": problem,
            "arrived_at": self._repeated(file.arrived_at, "arrived_at", count),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _repeated(self, value: Any, column: str, count: int) -> Any:
        """The same value in each row, made once for as many rows as any batch had so far."""
        kept = self._constants.get(column)
        if kept is None or len(kept) < count:
            kept = self._constants[column] = pa.repeat(pa.scalar(value, SCHEMA.field(column).type), count)
        return kept[:count]


def _parquet_lines(stream: Any) -> tuple[str | None, Iterator[Lines]]:
    """Parquet as the CSV that it could have been: the header, and a line a row."""
    try:
        parquet = pq.ParquetFile(stream)
    except (pa.ArrowException, OSError):
        return None, read_lines(_broken())
    header = io.StringIO()
    csv.writer(header, lineterminator="").writerow(parquet.schema_arrow.names)
    return header.getvalue(), read_lines(_parquet_blocks(parquet))


def _parquet_blocks(parquet: Any) -> Iterator[bytes]:
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    try:
        for batch in parquet.iter_batches(PARQUET_ROWS):
            text = pa.BufferOutputStream()
            pyarrow.csv.write_csv(_on_one_line(batch), text, options)
            yield text.getvalue().to_pybytes()
    except (pa.ArrowException, OSError):
        raise Unreadable(NO_PARQUET) from None


def _on_one_line(batch: Any) -> Any:
    """A batch without line ends in its texts, so that a row is a line."""
    columns = [
        pc.replace_substring_regex(column, "[\r\n]+", " ") if pa.types.is_string(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _broken() -> Iterator[bytes]:
    raise Unreadable(NO_PARQUET)
    yield b""
