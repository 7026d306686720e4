"""Tables of the lake as Arrow, without a JVM: Delta's log by deltalake, the files by pyarrow.

A few rows are written in some milliseconds, where Spark needs several jobs, and so a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pipeline.config import Config
from pipeline.delta import MissingTableError
from pipeline.errors import TrendsError
from pipeline.sources.landing_bytes import locate
from pipeline.tables import Table

if TYPE_CHECKING:
    import pyarrow
    from deltalake import DeltaTable


@dataclass(frozen=True)
class StoredFile:
    """A file of a table: its place, its rows and size, and the values of the partition that it is in."""

    path: str
    rows: int
    bytes: int
    partition: Mapping[str, Any]


@dataclass(frozen=True)
class StoredTable:
    """A version of a table, which `open_table` gives."""

    root: str
    table: DeltaTable

    @property
    def version(self) -> int:
        """Which version it is."""
        return self.table.version()

    @property
    def properties(self) -> dict[str, str]:
        """Its settings."""
        return dict(self.table.metadata().configuration)

    @cached_property
    def schema(self) -> pyarrow.Schema:
        """Its columns."""
        import pyarrow

        return pyarrow.schema(self.table.schema())

    @cached_property
    def files(self) -> list[StoredFile]:
        """Its files, by path."""
        import pyarrow

        names = self.table.metadata().partition_columns
        actions = pyarrow.table(self.table.get_add_actions(flatten=True)).to_pylist()
        found = [
            StoredFile(
                f"{self.root}/{unquote(one['path'])}",
                one["num_records"],
                one["size_bytes"],
                {name: one[f"partition.{name}"] for name in names},
            )
            for one in actions
        ]
        return sorted(found, key=lambda file: file.path)

    def rows(
        self, partition: Mapping[str, str | date] | None = None, names: Iterable[str] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of one partition, or of all; all columns, or some."""
        return self.read(names, self.files_of(partition or {})).to_pylist()  # type: ignore[no-any-return]

    def files_of(self, partition: Mapping[str, str | date]) -> list[StoredFile]:
        """The files of one partition."""
        is_in = partition.items()
        return [file for file in self.files if all(file.partition[name] == value for name, value in is_in)]

    def history(self, limit: int) -> list[dict[str, Any]]:
        """The latest commits, newest first, as the log has them; `timestamp` in UTC."""
        commits = self.table.history(limit)
        return [one | {"timestamp": datetime.fromtimestamp(one["timestamp"] / 1000, UTC)} for one in commits]

    def read(self, names: Iterable[str] | None = None, files: Iterable[StoredFile] | None = None) -> pyarrow.Table:
        """The rows of all files, or of some; all columns, or some."""
        import pyarrow

        wanted = self.schema if names is None else pyarrow.schema([self.schema.field(name) for name in names])
        parts = [_read(file, wanted) for file in (self.files if files is None else files)]
        return pyarrow.concat_tables([wanted.empty_table(), *parts])

    def replace(
        self,
        rows: Iterable[Mapping[str, Any]],
        where: Mapping[str, str | date],
        metadata: Mapping[str, str] | None = None,
    ) -> int:
        """Replace the rows with these values by others, which have them too, in one commit; its version.

        A conflict, as `delta.is_conflict` knows it, if since this version was opened a commit has changed such rows: so
        what was read of them still holds. Commits of other rows do not disturb it.
        """
        return self._write(rows, metadata, mode="overwrite", predicate=_condition(where))

    def append(self, rows: Iterable[Mapping[str, Any]], metadata: Mapping[str, str] | None = None) -> int:
        """Add rows; the version of the commit."""
        return self._write(rows, metadata, mode="append")

    def _write(self, rows: Iterable[Mapping[str, Any]], metadata: Mapping[str, str] | None, **how: Any) -> int:
        import pyarrow
        from deltalake import CommitProperties, write_deltalake

        noted = CommitProperties(custom_metadata={"userMetadata": json.dumps(metadata or {})})
        content = pyarrow.Table.from_pylist([*rows], schema=self.schema)
        write_deltalake(self.table, content, commit_properties=noted, **how)
        return self.table.version()


def open_table(config: Config, name: str, version: int | None = None) -> StoredTable:
    """A table by its full name, such as `gold.down_trends`; the newest version by default."""
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    if config.lake.startswith("hdfs://"):
        raise TrendsError(f"{config.lake} can be read with Spark alone\nhint: read {name} with it")
    root = f"{config.lake}/{name.replace('.', '/', 1)}".replace("s3a://", "s3://", 1)
    try:
        return StoredTable(root, DeltaTable(root, version=version))
    except TableNotFoundError:
        hint = "publish or ingest something first, or check TRENDS_LAKE"
        raise MissingTableError(f"{name}: there is no such table in {config.lake}\nhint: {hint}") from None


def rows(config: Config, table: Table, names: Iterable[str] | None = None, **partition: str) -> list[dict[str, Any]]:
    """The rows of a small table, of one partition or of all; none where there is no such table."""
    try:
        found = open_table(config, table.full_name)
    except MissingTableError:
        return []
    return found.rows(partition, names)


def _condition(where: Mapping[str, str | date]) -> str:
    """A condition of DataFusion's SQL: every column has its value.

    >>> print(_condition({"query": "it's", "interval_date": date(2013, 10, 7)}))
    "query" = 'it''s' AND "interval_date" = DATE'2013-10-07'
    """

    def literal(value: str | date) -> str:
        if isinstance(value, date):
            return f"DATE'{value}'"
        return "'" + value.replace("'", "''") + "'"

    return " AND ".join(f'"{name}" = {literal(value)}' for name, value in where.items())


def _read(file: StoredFile, wanted: pyarrow.Schema) -> pyarrow.Table:
    """A file's rows; the partition is what the log says, as not every writer repeats it in the rows."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    system, path = locate(file.path)
    with system.open_input_file(path) as stream:
        parquet = ParquetFile(stream)
        # Files from before a column was added do not have it.
        there = [name for name in wanted.names if name in parquet.schema_arrow.names and name not in file.partition]
        rows, size = parquet.read(there), parquet.metadata.num_rows

    def column(field: pyarrow.Field) -> Any:
        if field.name in there:
            return rows.column(field.name).cast(field.type)
        return pyarrow.repeat(pyarrow.scalar(file.partition.get(field.name), field.type), size)

    return pyarrow.table([column(field) for field in wanted], schema=wanted)
