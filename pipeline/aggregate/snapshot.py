"""The files of a table's version, with the times that each holds: from Delta's log, without a JVM where that can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pipeline import delta
from pipeline.aggregate.reach import as_micros
from pipeline.config import Config
from pipeline.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRUNCATED = 1000  # Delta keeps times in statistics in milliseconds, cut off


@dataclass(frozen=True)
class DataFile:
    """A file of a table: its place, its rows, and the range of their times in microseconds."""

    path: str
    rows: int
    low: int
    high: int  # exclusive


@dataclass(frozen=True)
class Snapshot:
    """A version of a table."""

    version: int
    files: tuple[DataFile, ...]  # by time

    def within(self, low: int, high: int) -> tuple[DataFile, ...]:
        """The files that may hold rows of these times."""
        return tuple(file for file in self.files if file.low < high and file.high > low)


def look(
    spark: SparkSession, config: Config, table: Table, version: int | None = None, by_spark: bool | None = None
) -> tuple[Snapshot, bool]:
    """A version of a table, and whether only Spark can reach its files; `by_spark`: as if it were so."""
    unread = config.lake.startswith("hdfs://") if by_spark is None else by_spark
    return (unread_snapshot(spark, config, table, version) if unread else snapshot(config, table, version)), unread


def snapshot(config: Config, table: Table, version: int | None = None) -> Snapshot:
    """The files of a version of a table that has a column `time`; of the newest by default."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    root = table.path(config).replace("s3a://", "s3://", 1)
    try:
        found = DeltaTable(root, version=version)
    except TableNotFoundError:
        raise delta.missing(table, config) from None
    actions = found.get_add_actions(flatten=True)
    columns = {name: actions.column(name).to_pylist() for name in ("path", "num_records", "min.time", "max.time")}
    files = [
        DataFile(f"{root}/{unquote(path)}", rows, as_micros(low), as_micros(high) + TRUNCATED)
        for path, rows, low, high in zip(*columns.values(), strict=True)
        if rows
    ]
    return Snapshot(found.version(), tuple(sorted(files, key=lambda file: (file.low, file.path))))


def unread_snapshot(spark: SparkSession, config: Config, table: Table, version: int | None = None) -> Snapshot:
    """A version of a table whose files only Spark can reach, as if they were one."""
    from pyspark.sql import functions as F

    version = delta.current_version(spark, config, table) if version is None else version
    frame = delta.read(spark, config, table, version)
    rows, low, high = frame.agg(F.count("*"), F.min("time"), F.max("time")).collect()[0]
    return Snapshot(version, (DataFile(table.path(config), rows, as_micros(low), as_micros(high) + 1),) if rows else ())
