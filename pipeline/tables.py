"""The catalogue of the lake: every table's name, layer, columns, keys, partitions, constraints and place."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from pipeline.config import Config
from pipeline.errors import QueryError, SetupError, nearest
from pipeline.query import tree
from pipeline.query.checked import Query

DECLARATION = "trendmill.declaration"
KEPT_DAYS = 30  # for how long old versions of a table can be read, unless its dataset says otherwise


class Attribute(Protocol):
    """What a table takes from a column of a dataset."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def required(self) -> bool: ...
    @property
    def sensitive(self) -> bool: ...


class Declared(Protocol):
    """What a table takes from a dataset."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def columns(self) -> Sequence[Attribute]: ...
    @property
    def retention(self) -> int: ...


@dataclass(frozen=True)
class Column:
    """A column of a table; the type is Spark SQL's. A required one is never null."""

    name: str
    type: str
    about: str
    required: bool = False
    sensitive: bool = False

    @property
    def ddl(self) -> str:
        """The column as CREATE TABLE wants it."""
        return f"{quoted(self.name)} {self.type}{' NOT NULL' * self.required} COMMENT {literal(self.about)}"


@dataclass(frozen=True)
class Table:
    """A Delta table: the folder `<lake>/<layer>/<name>`.

    `keys` are the columns that name a row. `constraints` are conditions that every row fulfils, by their names: Delta
    refuses a write that breaks one. With `change_feed`, what a version changed can be read row by row.
    """

    layer: str
    name: str
    about: str
    columns: tuple[Column, ...]
    partition: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    constraints: dict[str, str] = field(default_factory=dict)
    change_feed: bool = False
    kept_days: int = KEPT_DAYS

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        unknown = [name for name in (*self.partition, *self.keys) if name not in names]
        if twice or unknown:
            wrong = f"two columns {', '.join(twice)}" if twice else f"no column {', '.join(unknown)}"
            raise ValueError(f"table {self.full_name}: {wrong}")

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns that say who somebody is, under whatever name."""
        return tuple(column.name for column in self.columns if column.sensitive)

    @property
    def full_name(self) -> str:
        """The name that users write: `silver.stock`."""
        return f"{self.layer}.{self.name}"

    @cached_property
    def declaration(self) -> str:
        """A digest of what is declared: a table that has it needs no closer look."""
        declared = self.columns, self.partition, self.constraints, self.change_feed, self.kept_days
        return hashlib.sha256(repr(declared).encode()).hexdigest()[:16]

    @property
    def properties(self) -> dict[str, str]:
        """Delta's settings of the table: what it keeps and checks, and no feature that other readers may lack."""
        return {
            DECLARATION: self.declaration,
            "delta.enableChangeDataFeed": str(self.change_feed).lower(),
            "delta.enableDeletionVectors": "false",
            "delta.logRetentionDuration": f"interval {self.kept_days} days",
            "delta.deletedFileRetentionDuration": f"interval {self.kept_days} days",
            **{f"delta.constraints.{name}": condition for name, condition in self.constraints.items()},
        }

    def path(self, config: Config) -> str:
        """Its folder."""
        return f"{config.lake}/{self.layer}/{self.name}"

    def sql(self, config: Config) -> str:
        """How SQL names it: no catalogue needs to know the table."""
        return f"delta.{quoted(self.path(config))}"

    def ddl(self, config: Config) -> str:
        """The statement that makes it, whole in one commit."""
        columns = ",\n  ".join(column.ddl for column in self.columns)
        partition = ", ".join(quoted(name) for name in self.partition)
        properties = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in self.properties.items())
        return (
            f"CREATE TABLE IF NOT EXISTS {self.sql(config)} (\n  {columns}\n) USING DELTA"
            + (f"\nPARTITIONED BY ({partition})" if partition else "")
            + f"\nCOMMENT {literal(self.about)}\nTBLPROPERTIES ({properties})"
        )


LANDING_DATE = Column("landing_date", "date", "the day of the landing folder: the unit that is written", required=True)
FILE = Column("file", "string", "path of the file below the landing folder", required=True)
FILE_HASH = Column("file_hash", "string", "SHA-256 of the file's bytes", required=True)
LINE = Column("line", "int", "line of the file, from 1; in Parquet the row", required=True)
DATASET = Column("dataset", "string", "name of the dataset", required=True)
RUN = Column("run_id", "string", "the run that wrote the row", required=True)


def bronze(dataset: Declared) -> Table:
    """Every row as it came."""
    return Table(
        "bronze",
        dataset.name,
        f"{dataset.about}: every line of every landing file, as it came",
        (
            LANDING_DATE,
            FILE,
            FILE_HASH,
            Column("format", "string", "the raw format that was recognised, or unknown", required=True),
            Column("header", "string", "the header line, where the format has one"),
            LINE,
            Column("copy", "int", "which of the equal lines of this file it is, from 0", required=True),
            Column("raw", "string", "the line as it came; a row of Parquet as a line of CSV"),
            Column("problem", "string", "why the line, or the file from here on, could not be read"),
            Column("arrived_at", "timestamp", "when the file was last changed", required=True),
        ),
        partition=("landing_date",),
        keys=("file", "line"),
        constraints={"line_from_1": "line >= 1", "copy_from_0": "copy >= 0"},
        kept_days=dataset.retention,
    )


def silver(dataset: Declared) -> Table:
    """Typed events."""
    return Table(
        "silver",
        dataset.name,
        f"{dataset.about}: typed events",
        (
            Column("event_id", "string", "stable id: hash of file, line and which of the line's equals", required=True),
            Column("time", "timestamp", "when it happened, in UTC, to the microsecond", required=True),
            Column("event_date", "date", "the date of time, in UTC", required=True),
            *(Column(c.name, c.type, c.about, c.required, c.sensitive) for c in dataset.columns),
            Column("derived", "string", "the columns of this row that were derived, not measured, with commas"),
            Column("ambiguous_time", "boolean", "the local time occurred twice that day", required=True),
            Column("late", "boolean", "it happened earlier than the landing day allows", required=True),
            FILE,
            LINE,
            LANDING_DATE,
        ),
        partition=("landing_date",),
        keys=("event_id",),
        constraints={"event_date_of_time": "event_date = CAST(time AS DATE)", "line_from_1": "line >= 1"},
        change_feed=True,
        kept_days=dataset.retention,
    )


def quarantine(dataset: Declared) -> Table:
    """Rows that are no events."""
    return Table(
        "quarantine",
        dataset.name,
        f"{dataset.about}: lines that gave no event, and why",
        (
            LANDING_DATE,
            FILE,
            FILE_HASH,
            LINE,
            # A raw line may hold what is sensitive in any of its columns.
            Column("raw", "string", "the line as it came", sensitive=any(c.sensitive for c in dataset.columns)),
            Column("reason", "string", "what is wrong, without the row's own values", required=True),
            Column("resolved", "boolean", "a later run made an event of it", required=True),
            RUN,
        ),
        partition=("landing_date",),
        keys=("file", "line"),
        constraints={"line_from_1": "line >= 1", "reason_given": "reason <> ''"},
        kept_days=dataset.retention,
    )


OPS_INTERVALS = Table(
    "ops",
    "intervals",
    "what is complete: one row a dataset and landing day",
    (
        DATASET,
        LANDING_DATE,
        Column("status", "string", "how its last run ended", required=True),
        RUN,
        Column("inputs", "string", "digest of the files and their content that the result is of"),
        Column("bronze_version", "bigint", "version of bronze that holds the rows"),
        Column("silver_version", "bigint", "version of silver that holds the events"),
        Column("quarantine_version", "bigint", "version of quarantine that holds the rest"),
        Column(
            "files",
            "array<struct<file:string,hash:string,format:string,rows:bigint,bytes:bigint>>",
            "the landing files",
        ),
        Column("source_rows", "bigint", "rows of the files"),
        Column("silver_rows", "bigint", "rows that gave events"),
        Column("events", "bigint", "events in silver"),
        Column("quarantined", "bigint", "rows in quarantine"),
        Column("duplicates", "bigint", "rows left out because their event is there already"),
        Column("reasons", "map<string,bigint>", "quarantined rows by reason"),
        Column("late", "bigint", "late events"),
        Column("warnings", "array<string>", "what a person should look at"),
        Column("completed_at", "timestamp", "when the run ended", required=True),
    ),
    partition=("dataset",),
    keys=("dataset", "landing_date"),
)

OPS_QUALITY = Table(
    "ops",
    "quality",
    "results of the checks: one row an expectation, table, landing day and run",
    (
        DATASET,
        LANDING_DATE,
        Column("table_name", "string", "the checked table", required=True),
        RUN,
        Column("checked_at", "timestamp", "when it was checked", required=True),
        Column("expectation", "string", "what was expected", required=True),
        Column("column_name", "string", "the column, where it is about one"),
        Column("severity", "string", "critical stops the interval, warning does not", required=True),
        Column("success", "boolean", "whether it held", required=True),
        Column("observed", "string", "what was found"),
        Column("unexpected", "bigint", "rows that break it"),
        Column("examples", "array<string>", "some of them, as file:line: value; sensitive values are masked"),
        Column("waived_reason", "string", "why it was let through"),
    ),
    partition=("dataset",),
    keys=("dataset", "landing_date", "table_name", "expectation", "run_id"),
)

OPS_WAIVERS = Table(
    "ops",
    "waivers",
    "checks that a person lets fail on one day, and why",
    (
        DATASET,
        LANDING_DATE,
        Column("expectation", "string", "the check", required=True),
        Column("reason", "string", "why it may fail", required=True),
        Column("by", "string", "who says so", required=True),
        Column("at", "timestamp", "since when", required=True),
    ),
    keys=("dataset", "landing_date", "expectation"),
    constraints={"reason_given": "reason <> ''"},
)

OPS_PUBLICATIONS = Table(
    "ops",
    "publications",
    "what is published: one row a query and interval",
    (
        Column("query", "string", "name of the query's gold table", required=True),
        Column("interval_date", "date", "the interval", required=True),
        DATASET,
        RUN,
        Column("query_version", "string", "which query it was: hash of its canonical text", required=True),
        Column("engine", "string", "what aggregated it", required=True),
        Column("silver_version", "bigint", "version of silver that it was last computed on", required=True),
        Column("gold_version", "bigint", "version of the gold table that holds it", required=True),
        Column("rows", "bigint", "rows in gold", required=True),
        Column("changed", "bigint", "rows that this publication added, changed or removed", required=True),
        Column("events", "bigint", "events of silver that were read", required=True),
        Column("files", "array<string>", "files of silver that were read, below its folder"),
        Column("warnings", "array<string>", "what a person should look at"),
        Column("published_at", "timestamp", "when it was computed last", required=True),
    ),
    # Both, so that runs for different intervals never write the same partition.
    partition=("query", "interval_date"),
    keys=("query", "interval_date"),
)

OPS = (OPS_INTERVALS, OPS_QUALITY, OPS_WAIVERS, OPS_PUBLICATIONS)

ENGINE_RUNS = Table(
    "gold",
    "engine_runs",
    "every engine on every query: what it took, and whether it agrees with the others",
    (
        Column("query", "string", "name of the query's gold table", required=True),
        Column("interval_date", "date", "the interval", required=True),
        RUN,
        Column("purpose", "string", "night, agreement or comparison", required=True),
        Column("engine", "string", "the engine", required=True),
        Column("status", "string", "finished, did not finish, cannot run, or failed", required=True),
        Column("reason", "string", "why it did not finish or cannot run"),
        Column("query_version", "string", "which query it was", required=True),
        Column("silver_version", "bigint", "version of silver that it read", required=True),
        Column("strategy", "string", "how the work was cut: time slices, panes or keys"),
        Column("events", "bigint", "events that it was given"),
        Column("windows", "bigint", "windows that it was given"),
        Column("events_a_window", "bigint", "most events of a window that it was given"),
        Column("rows", "bigint", "rows of its result"),
        Column("log10_trends", "double", "log10 of the trends it counted in all windows"),
        Column("wall_seconds", "double", "from start to end"),
        Column("cpu_seconds", "double", "of all tasks"),
        Column("events_per_second", "double", "events by wall time"),
        Column("peak_stored", "bigint", "aggregates, events and pointers it kept at once, at most"),
        Column("peak_memory", "bigint", "bytes that a task took at most, beyond those that its process had"),
        Column("compared", "bigint", "windows compared with the other engines"),
        Column("agrees", "boolean", "whether all compared rows are the same; null where none was compared"),
        Column("difference", "string", "the first row that differs"),
        Column("at", "timestamp", "when it ended", required=True),
    ),
    partition=("query", "interval_date"),
    keys=("query", "interval_date", "run_id", "purpose", "engine", "events_a_window"),
)

INTERVAL_DATE = Column("interval_date", "date", "the interval that owns the window: the unit of writing", required=True)
# What every row of gold says about itself, after its window, group and aggregates.
PROVENANCE = (
    Column("exact", "boolean", "whether all its numbers are exact", required=True),
    Column("engine", "string", "what aggregated it", required=True),
    RUN,
    Column("revision", "int", "1 for the first value of this window and group, then one more a change", required=True),
    Column("query_version", "string", "which query it was: hash of its canonical text", required=True),
    Column("silver_version", "bigint", "version of silver that it was computed on", required=True),
    Column("published_at", "timestamp", "when this revision was published", required=True),
)
LOG10 = "_log10"


def gold(name: str, about: str, query: Query, source: Table) -> Table:
    """A query's answers: window, group, the items of RETURN, and where they come from; `source`: what it reads."""
    types = {column.name: column for column in source.columns}
    groups = [types[attribute] for attribute in query.group_by]
    own = (
        INTERVAL_DATE,
        Column("window_start", "timestamp", "when the window begins, in UTC", required=True),
        Column("window_end", "timestamp", "when it ends", required=True),
        *(Column(g.name, g.type, g.about, required=True, sensitive=g.sensitive) for g in groups),
    )
    items = tuple(_item_columns(query, types, {column.name for column in (*own, *PROVENANCE)}))
    return Table(
        "gold",
        name,
        about,
        (*own, *items, *PROVENANCE),
        partition=("interval_date",),
        keys=("window_start", "window_end", *query.group_by),
        constraints={"revision_from_1": "revision >= 1"},
    )


def gold_history(answers: Table) -> Table:
    """What a gold table held before: superseded revisions, and rows that vanished."""
    return Table(
        "gold",
        f"{answers.name}_history",
        f"{answers.about}: what was superseded",
        (
            *answers.columns,
            Column("superseded_by", "string", "the run that changed or removed the row", required=True),
            Column("superseded_silver", "bigint", "version of silver that this run read", required=True),
            Column("superseded_at", "timestamp", "when it did", required=True),
        ),
        partition=answers.partition,
        keys=(*answers.keys, "revision"),
    )


def item_name(item: tree.Item) -> str:
    """The column of an item of RETURN: its alias, or the item in snake case.

    >>> item_name(tree.Item(tree.Aggregate("AVG", "S", "price"), None))
    'avg_s_price'
    """
    return item.alias or re.sub(r"\W+", "_", item.label).strip("_").lower()


def _item_columns(query: Query, types: dict[str, Column], taken: set[str]) -> Iterator[Column]:
    """The columns of RETURN; a count or sum has any number of digits, so that it is text, with its log10 beside it."""
    used = {name.lower() for name in taken}
    for item in query.tree.returns:
        name, value = item_name(item), item.value
        if isinstance(value, tree.Name):
            if name == value.name:
                continue
            source = types[value.name]
            columns = [Column(name, source.type, source.about, required=True, sensitive=source.sensitive)]
        elif value.function in ("COUNT", "SUM"):
            columns = [
                Column(name, "string", f"{value}: decimal text, as many digits as it has"),
                Column(name + LOG10, "double", f"log10 of the absolute {value}; null where that is 0"),
            ]
        else:
            source = types[value.attribute or ""]
            kind = "double" if value.function == "AVG" else source.type
            columns = [Column(name, kind, str(value), sensitive=source.sensitive)]
        for column in columns:
            if column.name.lower() in used:
                message = f"two columns of the result are called {column.name}"
                raise QueryError(message, query.text, item.span, query.file, "give it a name of its own: AS …")
            used.add(column.name.lower())
            yield column


def catalogue(datasets: Iterable[Declared]) -> tuple[Table, ...]:
    """All tables, in the order in which data flows."""
    known = tuple(datasets)
    return (*(layer(dataset) for dataset in known for layer in (bronze, silver, quarantine)), *OPS)


def named(name: str, tables: Iterable[Table]) -> Table:
    """The table that a user names."""
    known = {table.full_name: table for table in tables}
    if name not in known:
        near = nearest(name, known)
        raise SetupError(
            f"there is no table {name!r}\nhint: " + (f"did you mean {near}?" if near else f"one of {', '.join(known)}")
        )
    return known[name]


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever it holds.

    >>> quoted("by")
    '`by`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    r"""A text as SQL takes it, whatever it holds.

    >>> print(literal("it's 1\\2"))
    'it\'s 1\\2'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
