"""One event file of any format becomes events: the way in for everything that reads a file in this process."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from pipeline.errors import InputError, nearest
from pipeline.events import Events, Kind, Texts
from pipeline.sources.assembly import Assembly, BadRowPolicy, BadRows
from pipeline.sources.columns import Batch, ColumnReader
from pipeline.sources.times import TimeColumn, seconds_of

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
SHOWN = 30  # column names in a message


class Source(Protocol):
    """What each format offers."""

    place: str  # how a message names a row after the file's name
    open_schema: bool

    @property
    def known(self) -> tuple[str, ...]:
        """The column names."""

    def separator_hint(self) -> str | None:
        """What may be wrong where a column is missing."""

    def time_reader(self) -> TimeColumn:
        """How to read `time`."""

    def reader(self, name: str, kind: Kind, asked: bool) -> ColumnReader | None:
        """How to read another column; `asked` unless only `all_columns` wants it."""

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """The rows, with these columns."""


def read_events(
    path: str | Path,
    attributes: Mapping[str, Kind],
    types: Sequence[str] | None = None,
    bad_rows: BadRowPolicy = "fail",
    all_columns: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Events:
    """The events of a CSV, JSONL or Parquet file, with the attributes that a query needs.

    `types` names the type columns (None: `type` if the file has it); an attribute that the file lacks is left out of
    the result. `all_columns` adds every other column but `time`. A bad row raises InputError, or is set aside under
    `bad_rows="skip"`. `progress` is told the rows read so far.
    """
    with open_source(Path(path), all_columns) as source:
        return _read(str(path), source, attributes, types, bad_rows, all_columns, progress)


@contextmanager
def open_source(path: Path, all_columns: bool) -> Iterator[Source]:
    """The file in the format that its name tells."""
    zipped = path.suffix.lower() == ".gz"
    suffix = (path.with_suffix("") if zipped else path).suffix.lower()
    form = FORMATS.get(suffix)
    if path.is_dir():
        raise InputError(f"{path}: this is a folder\nhint: name one CSV, JSONL or Parquet file")
    if form is None or (zipped and form == "parquet"):
        raise InputError(
            f"{path}: the name does not tell the format\nhint: name it {', '.join(FORMATS)}, or .csv.gz or .jsonl.gz"
        )
    try:
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty")
        if form == "parquet":
            from pipeline.sources.parquet_events import ParquetSource

            yield ParquetSource(str(path))
            return
        with cast(BinaryIO, gzip.open(path)) if zipped else path.open("rb") as stream:
            # Imported here because each takes a good part of a short run's time.
            if form == "csv":
                from pipeline.sources.csv_events import CsvSource

                yield CsvSource(str(path), stream)
            else:
                from pipeline.sources.jsonl_events import JsonlSource

                yield JsonlSource(str(path), stream, all_columns)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file{_similar(path)}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a whole gzip file ({error})") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _similar(path: Path) -> str:
    try:
        near = nearest(path.name, [file.name for file in path.parent.iterdir()])
    except OSError:
        return ""
    return f"\nhint: did you mean {path.with_name(near)}?" if near else ""


def _read(
    path: str,
    source: Source,
    attributes: Mapping[str, Kind],
    types: Sequence[str] | None,
    bad_rows: BadRowPolicy,
    all_columns: bool,
    progress: Callable[[int], None] | None,
) -> Events:
    if attributes.get("time") is Kind.TEXT:
        raise InputError(f"{path}: time: a number of seconds, where the query needs text")
    if not source.open_schema:
        _require(path, source, ["time", *(types or ())])
    by_default = ["type"] if source.open_schema or "type" in source.known else []
    type_names = by_default if types is None else list(types)
    aside = BadRows(path, bad_rows, source.place)
    assembly = Assembly(path, time := source.time_reader(), aside)
    type_readers = [assembly.want(name, _must(source.reader(name, Kind.TEXT, True))) for name in type_names]
    kinds = dict.fromkeys(source.known, Kind.ANY) | dict(attributes) if all_columns else dict(attributes)
    readers = {
        name: assembly.want(name, reader)
        for name, kind in kinds.items()
        if name != "time"
        and (source.open_schema or name in source.known)
        and (reader := source.reader(name, kind, name in attributes)) is not None
    }
    rows = 0
    for batch in source.batches(assembly.names):
        if bad_rows == "fail" and batch.rows:
            _require(path, source, ["time"])
        assembly.take(batch)
        rows += batch.rows + len(batch.broken)
        if progress is not None:
            progress(rows)
    _require(path, source, ["time", *(types or ())])
    ticks, clock = time.finish()
    columns = {name: assembly.finish(name, reader) for name, reader in readers.items() if name in source.known}
    if "time" in attributes:
        columns["time"] = seconds_of(ticks, clock)
    return Events(
        time=ticks,
        clock=clock,
        types=tuple(
            cast(Texts, assembly.finish(name, reader))
            for name, reader in zip(type_names, type_readers, strict=True)
            if name in source.known
        ),
        attributes=columns,
        known=source.known,
        open_schema=source.open_schema,
        skipped=aside.count,
        skipped_examples=tuple(aside.examples),
    )


def _must(reader: ColumnReader | None) -> ColumnReader:
    assert reader is not None  # only columns that nobody asked for may be left out
    return reader


def _require(path: str, source: Source, names: Sequence[str]) -> None:
    """Raise if the file has no column of one of these names."""
    for name in names:
        if name in source.known:
            continue
        near = nearest(name, source.known)
        shown = ", ".join(source.known[:SHOWN]) + (", …" if len(source.known) > SHOWN else "")
        role = "the time column is called time" if name == "time" else f"--types names {name!r}"
        hint = source.separator_hint() or (f"did you mean {near!r}? ({role})" if near else role)
        raise InputError(f"{path}: no column {name!r}; the columns are {shown}\nhint: {hint}")
