"""Reading silver's files in a task: the columns and the range of time that are needed, with Arrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.aggregate.columns import TIME
from pipeline.aggregate.reach import as_micros
from pipeline.aggregate.snapshot import DataFile
from pipeline.errors import InputError
from pipeline.sources.landing_bytes import locate


def read_range(files: Sequence[DataFile], low: int, high: int, names: Sequence[str]) -> Any:
    """The rows of some files from one time up to another, in order; text as codes into words. None: there are none."""
    parts = [part for file in files if file.low < high and file.high > low for part in _read(file, low, high, names)]
    if not parts:
        return None
    table = pa.concat_tables(parts).unify_dictionaries()
    time = np.asarray(table.column(TIME).cast(pa.int64()).to_numpy())
    # Files hold ranges of time in order; late ones overlap others.
    return table if _is_sorted(time) else table.take(pa.array(np.argsort(time, kind="stable")))


def read_some(file: DataFile, names: Sequence[str]) -> Any:
    """The rows of a file that were written first, some hundred thousand of them."""
    return _read_groups(file, names, lambda metadata: [0])


def _read(file: DataFile, low: int, high: int, names: Sequence[str]) -> list[Any]:
    def groups(metadata: Any) -> list[int]:
        return [group for group in range(metadata.num_row_groups) if _overlaps(metadata, group, low, high)]

    table = _read_groups(file, names, groups)
    return [] if table is None else [_within(table, low, high)]


def _read_groups(file: DataFile, names: Sequence[str], groups: Callable[[Any], list[int]]) -> Any:
    system, path = locate(file.path)
    try:
        with system.open_input_file(path) as stream:
            metadata = pq.read_metadata(stream)
            wanted = groups(metadata)
            if not wanted:
                return None
            schema = metadata.schema.to_arrow_schema()
            texts = [name for name in names if pa.types.is_string(schema.field(name).type)]
            parquet = pq.ParquetFile(stream, metadata=metadata, read_dictionary=texts)
            return parquet.read_row_groups(wanted, columns=list(names), use_threads=False).select(list(names))
    except FileNotFoundError:
        raise InputError(
            f"{file.path}: this file of the table is not there\n"
            "hint: tasks need to see the lake at the same path as the driver; VACUUM may have removed an old version"
        ) from None


def _overlaps(metadata: Any, group: int, low: int, high: int) -> bool:
    """Whether a row group may hold these times, by its statistics."""
    columns = metadata.row_group(group)
    for number in range(columns.num_columns):
        column = columns.column(number)
        if column.path_in_schema == TIME and column.is_stats_set and column.statistics.has_min_max:
            least, most = as_micros(column.statistics.min), as_micros(column.statistics.max)
            return least < high and most >= low
    return True


def _within(table: Any, low: int, high: int) -> Any:
    time = np.asarray(table.column(TIME).cast(pa.int64()).to_numpy())
    if _is_sorted(time):
        begin, end = np.searchsorted(time, [low, high])
        return table.slice(int(begin), int(end - begin))
    return table.filter(pa.array((time >= low) & (time < high)))


def _is_sorted(time: Any) -> bool:
    return bool(np.all(time[1:] >= time[:-1]))
