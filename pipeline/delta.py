"""Reading and writing the lake's tables, by SQL and the DataFrame API alone: all of it works through Spark Connect."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from time import sleep, time
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline import first_commit
from pipeline.config import Config
from pipeline.errors import DidNotFinishError, SetupError, TrendsError
from pipeline.tables import DECLARATION, Table, literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ATTEMPTS = 12
LONGEST_PAUSE = 5.0  # seconds
SEARCHED = (3, 200)  # latest commits in which one's own is looked for: nearly always it is the last

# Errors are known by these names: the same one is a Py4JJavaError here and a SparkConnectGrpcException there.
CONFLICT = re.compile(
    r"DELTA_CONCURRENT_(APPEND|DELETE_DELETE|DELETE_READ|TRANSACTION|WRITE)|DELTA_(METADATA|PROTOCOL)_CHANGED\b"
    r"|\b(Concurrent(Append|DeleteDelete|DeleteRead|Transaction|Write)|(Metadata|Protocol)Changed)Exception\b"
    r"|Failed to commit transaction"  # deltalake's
)
# What one of two runs may see that make the same table, column or constraint.
IN_THE_MAKING = re.compile(
    r"DELTA_CREATE_TABLE_WITH_(NON_EMPTY_LOCATION|DIFFERENT_\w+)|(CONSTRAINT|FIELD|TABLE_OR_VIEW)_ALREADY_EXISTS"
    r"|DELTA_DUPLICATE_COLUMNS_FOUND\.ADDING_COLUMNS"
)
UNFINISHED = 20.0  # seconds after which a table without a commit is taken for one that nobody makes any more
BROKEN = re.compile(r"\[DELTA_(?:VIOLATE_CONSTRAINT_WITH_VALUES|NOT_NULL_CONSTRAINT_VIOLATED)\S*\] (.*)")
MISSING = re.compile(
    r"PATH_NOT_FOUND|DELTA_(MISSING_DELTA_TABLE|TABLE_NOT_FOUND|TABLE_ONLY_OPERATION|PATH_DOES_NOT_EXIST)"
)
NO_VERSION = re.compile(r"DELTA_(CANNOT_FIND_VERSION|VERSION_NOT_FOUND|LOG_FILE_NOT_FOUND\w*|FILE_NOT_FOUND\w*)")

Value = str | int | date
Where = Mapping[str, Value | Sequence[Value]]  # the values of some columns, or one of several
Row = Mapping[str, Any]
Unit = Mapping[str, str | date]  # the values that some rows have in common
T = TypeVar("T")


class MissingTableError(TrendsError):
    """A table, or a version of it, that is not in the lake."""


class ConstraintError(TrendsError):
    """Rows that break a constraint of the table; nothing was written."""


class SchemaError(TrendsError):
    """A table in the lake that is not what the catalogue declares."""


@dataclass(frozen=True)
class Commit:
    """A version of a table."""

    version: int
    at: datetime
    operation: str
    metadata: Mapping[str, str]
    metrics: Mapping[str, str]


@dataclass(frozen=True)
class State:
    """A table as it is now."""

    version: int
    changed_at: datetime
    rows: int
    files: int
    size: int  # bytes


# --------------------------------------------------------------------------------------------------------------- create


def create(spark: SparkSession, config: Config, table: Table) -> None:
    """Make the table unless it is there; add the columns and constraints that its declaration has gained since."""

    def attempt() -> None:
        try:
            if config.lake_folder is not None and first_commit.is_plain(table):
                first_commit.write(Path(table.path(config)), table)
            if not _is_as_declared(config, table):
                _create(spark, config, table)
        except MissingTableError:
            if config.lake_folder is not None:
                _remove_unfinished(Path(table.path(config)) / "_delta_log")
            raise

    def race(error: Exception) -> bool:
        return isinstance(error, MissingTableError) or bool(IN_THE_MAKING.search(str(error))) or is_conflict(error)

    try:
        retrying(table, attempt, race)
    except DidNotFinishError as error:
        raise SetupError(
            f"{table.full_name}: {table.path(config)} holds something that is no table\n"
            "hint: remove it if nobody needs it; what a run left that was killed goes by itself after some seconds"
        ) from error


def _remove_unfinished(log: Path) -> None:
    """Remove what a run left that was killed while it made the table: Delta takes any folder of a log for a table."""
    try:
        if time() - log.stat().st_mtime < UNFINISHED or any(file.name[:1].isdigit() for file in log.iterdir()):
            return
        for file in log.iterdir():
            file.rmdir() if file.is_dir() else file.unlink()
        log.rmdir()  # only when it is empty: a commit that came just now stays
    except OSError:
        return


def _is_as_declared(config: Config, table: Table) -> bool:
    """Whether the table is there and the same program made it; in a folder that is known without Spark."""
    from pipeline.arrow_tables import open_table

    if config.lake_folder is None:
        return False
    try:
        return open_table(config, table.full_name).properties.get(DECLARATION) == table.declaration
    except MissingTableError:
        return False


def _create(spark: SparkSession, config: Config, table: Table) -> None:
    spark.sql(table.ddl(config)).collect()
    if _is_as_declared(config, table):
        return
    declared = spark.sql(
        f"SELECT {', '.join(f'CAST(NULL AS {c.type}) {quoted(c.name)}' for c in table.columns)}"
    ).schema
    stored = read(spark, config, table).schema
    _check_types(table, declared, stored)
    name = table.sql(config)
    if new := [column for column in table.columns if column.name not in stored.names]:
        # Rows that are there already have nulls in it.
        columns = ", ".join(dataclasses.replace(column, required=False).ddl for column in new)
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({columns})").collect()
    properties = {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    for constraint, condition in table.constraints.items():
        if f"delta.constraints.{constraint.lower()}" not in properties:
            spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT {quoted(constraint)} CHECK ({condition})").collect()
    settings = {key: value for key, value in table.properties.items() if not key.startswith("delta.constraints.")}
    if changed := {key: value for key, value in settings.items() if properties.get(key) != value}:
        pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in changed.items())
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({pairs})").collect()


def _check_types(table: Table, declared: StructType, stored: StructType) -> None:
    for found in stored.fields:
        if found.name not in declared.names:
            raise SchemaError(
                f"{table.full_name}: the lake's table has a column {found.name} that is not declared\n"
                "hint: another version of the program wrote it; use that one, or another lake (TRENDS_LAKE)"
            )
        if found.dataType != declared[found.name].dataType:
            raise SchemaError(
                f"{table.full_name}.{found.name}: {found.dataType.simpleString()} in the lake, "
                f"{declared[found.name].dataType.simpleString()} declared\n"
                "hint: write it into another lake (TRENDS_LAKE), or give the changed column another name"
            )


# ----------------------------------------------------------------------------------------------------------------- read


def read(spark: SparkSession, config: Config, table: Table, version: int | None = None) -> DataFrame:
    """The table's rows, now or at a version."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    with _explained(table, config, version):
        frame = reader.load(table.path(config))
        frame.schema  # noqa: B018 -- Spark Connect asks the server only now
    return frame


def rows(spark: SparkSession, config: Config, table: Table, **partition: str) -> list[dict[str, Any]]:
    """The rows of a small table, of one partition or of all; none where there is no table. Times are in UTC.

    In a folder they are read without Spark, which needs a few jobs, and so a second, for a handful of rows.
    """
    if config.lake_folder is not None:
        from pipeline import arrow_tables

        return arrow_tables.rows(config, table, **partition)
    try:
        frame = read(spark, config, table)
    except MissingTableError:
        return []
    found = (frame.where(predicate(partition)) if partition else frame).collect()
    return [_with_zone(row.asDict(recursive=True)) for row in found]


def exists(spark: SparkSession, config: Config, table: Table) -> bool:
    """Whether the table is in the lake."""
    from pipeline.arrow_tables import open_table

    try:
        read(spark, config, table) if config.lake_folder is None else open_table(config, table.full_name)
    except MissingTableError:
        return False
    return True


def current_version(spark: SparkSession, config: Config, table: Table) -> int:
    """The table's version now."""
    return history(spark, config, table, 1)[0].version


def history(spark: SparkSession, config: Config, table: Table, limit: int = 20) -> list[Commit]:
    """The latest commits, newest first."""
    if config.lake_folder is None:
        with _explained(table, config):
            found = spark.sql(f"DESCRIBE HISTORY {table.sql(config)} LIMIT {limit}").collect()
        commits = [_with_zone(row.asDict()) for row in found]
    else:
        from pipeline.arrow_tables import open_table

        commits = open_table(config, table.full_name).history(limit)
    return [
        Commit(
            commit["version"],
            commit["timestamp"],
            commit["operation"],
            _metadata(commit.get("userMetadata")),
            commit.get("operationMetrics") or {},
        )
        for commit in commits
    ]


def row_count(
    spark: SparkSession,
    config: Config,
    table: Table,
    where: Where | None = None,
    version: int | None = None,
) -> int:
    """How many rows it has, all or those with these values; Delta answers from its log where it can."""
    frame = read(spark, config, table, version)
    return (frame.where(predicate(where)) if where else frame).count()


def state(spark: SparkSession, config: Config, table: Table) -> State:
    """Version, rows, files and size of the table; of a folder's from Delta's log, without Spark."""
    latest = history(spark, config, table, 1)[0]
    if config.lake_folder is not None:
        from pipeline.arrow_tables import open_table

        files = open_table(config, table.full_name, latest.version).files
        size = sum(file.bytes for file in files)
        return State(latest.version, latest.at, sum(file.rows for file in files), len(files), size)
    detail = spark.sql(f"DESCRIBE DETAIL {table.sql(config)}").collect()[0]
    rows = row_count(spark, config, table, version=latest.version)
    return State(latest.version, latest.at, rows, detail["numFiles"], detail["sizeInBytes"])


# ---------------------------------------------------------------------------------------------------------------- write


def replace(
    spark: SparkSession,
    config: Config,
    table: Table,
    frame: DataFrame,
    where: Where | str,
    metadata: Mapping[str, str] | None = None,
) -> int:
    """Replace the rows with these values (`{"landing_date": day}`) by the frame's, in one commit; its version.

    `where` may also be a condition of SQL, which should name a partition.

    Nothing replaced by nothing is no commit: the version is the current one.
    All rows of the frame must have these values. Readers see the old rows or the new ones. Writers of different
    partitions do not disturb each other; where two write the same one, the later waits for a moment and tries again.
    """
    return _write(
        spark,
        config,
        table,
        frame,
        "overwrite",
        {"replaceWhere": where if isinstance(where, str) else predicate(where)},
        metadata,
    )


def append(
    spark: SparkSession, config: Config, table: Table, frame: DataFrame, metadata: Mapping[str, str] | None = None
) -> int:
    """Add the frame's rows; the version of the commit."""
    return _write(spark, config, table, frame, "append", {}, metadata)


def replace_rows(
    spark: SparkSession,
    config: Config,
    table: Table,
    rows: Sequence[Row],
    where: Unit,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """The same with a few rows for a small table; in a folder without Spark."""
    if config.lake_folder is None:
        replace(spark, config, table, _frame(spark, table, rows), where, metadata)
        return
    from pipeline.arrow_tables import open_table

    retrying(table, lambda: open_table(config, table.full_name).replace(rows, where, metadata))


def append_rows(spark: SparkSession, config: Config, table: Table, rows: Sequence[Row]) -> None:
    """Add a few rows to a small table; in a folder without Spark."""
    if config.lake_folder is None:
        append(spark, config, table, _frame(spark, table, rows))
        return
    from pipeline.arrow_tables import open_table

    retrying(table, lambda: open_table(config, table.full_name).append(rows))


def _frame(spark: SparkSession, table: Table, rows: Sequence[Row]) -> DataFrame:
    schema = ", ".join(f"{quoted(column.name)} {column.type}" for column in table.columns)
    values = [tuple(row[column.name] for column in table.columns) for row in rows]
    return spark.createDataFrame(values, schema).coalesce(1)


def _write(
    spark: SparkSession,
    config: Config,
    table: Table,
    frame: DataFrame,
    mode: str,
    options: Mapping[str, str],
    metadata: Mapping[str, str] | None,
) -> int:
    # The id tells one's own commit from those of writers that came between.
    mark = uuid.uuid4().hex
    noted = json.dumps({**(metadata or {}), "commit": mark})

    def write() -> None:
        with _explained(table, config):
            writer = frame.write.format("delta").mode(mode).options(**options, userMetadata=noted)
            writer.save(table.path(config))

    read(spark, config, table)  # the writer would make a missing table, without its constraints
    retrying(table, write)
    for searched in SEARCHED:
        commits = history(spark, config, table, searched)
        if own := next((commit for commit in commits if commit.metadata.get("commit") == mark), None):
            return own.version
    return commits[0].version


# ------------------------------------------------------------------------------------------------------------- maintain


def optimise(spark: SparkSession, config: Config, table: Table, where: Where | None = None) -> tuple[int, int]:
    """Join the small files of all partitions, or of those with these values; how many files were removed and added."""
    condition = f" WHERE {predicate(where)}" if where else ""

    def run() -> tuple[int, int]:
        with _explained(table, config):
            metrics = spark.sql(f"OPTIMIZE {table.sql(config)}{condition}").collect()[0]["metrics"]
        return metrics["numFilesRemoved"], metrics["numFilesAdded"]

    return retrying(table, run)


def vacuum(spark: SparkSession, config: Config, table: Table, days: int | None = None) -> None:
    """Remove files that no version of the last `days` days needs (by default, as many as the table declares)."""
    retain = f" RETAIN {days * 24} HOURS" if days is not None else ""
    with _explained(table, config):
        spark.sql(f"VACUUM {table.sql(config)}{retain}").collect()


# -------------------------------------------------------------------------------------------------------------- helpers


def predicate(where: Where) -> str:
    """A condition of SQL: every column has its value, or one of its values.

    >>> predicate({"landing_date": date(2013, 10, 7), "file": ["a.csv", "b.csv"]})
    "`landing_date` = DATE'2013-10-07' AND `file` IN ('a.csv', 'b.csv')"
    """
    if not where:
        raise ValueError("a condition on no column would mean all rows")
    return " AND ".join(f"{quoted(name)} {_equals(value)}" for name, value in where.items())


def is_conflict(error: Exception) -> bool:
    """Whether it says that another writer's commit came first."""
    return bool(CONFLICT.search(str(error)))


def retrying(table: Table, action: Callable[[], T], again: Callable[[Exception], bool] = is_conflict) -> T:
    """Do it, again where another writer's commit came first; the action must be safe to repeat."""
    for attempt in range(ATTEMPTS):
        try:
            return action()
        except Exception as error:  # py4j's and gRPC's have no base of their own
            if not again(error):
                raise
            last = error
        sleep(random.uniform(0.1, min(LONGEST_PAUSE, 0.2 * 2**attempt)))
    raise DidNotFinishError(
        f"{table.full_name}: other runs changed the same rows {ATTEMPTS} times in a row; nothing was written\n"
        "hint: run it again when they are done"
    ) from last


@contextmanager
def _explained(table: Table, config: Config, version: int | None = None) -> Iterator[None]:
    """Turn Spark's errors about a table into messages."""
    try:
        yield
    except TrendsError:
        raise
    except Exception as error:
        text, name = str(error), table.full_name
        if broken := BROKEN.search(text):
            # The rest of the text holds the row's values, which may be sensitive.
            what = broken[1].split(" violated by row")[0].strip()
            raise ConstraintError(f"{name}: nothing was written: {what}") from None
        if version is not None and NO_VERSION.search(text):
            hint = f"versions are kept for {table.kept_days} days"
            raise MissingTableError(f"{name}: version {version} is not there\nhint: {hint}") from None
        if MISSING.search(text):
            raise missing(table, config) from None
        raise


def missing(table: Table, config: Config) -> MissingTableError:
    """What is said of a table that is not there."""
    hint = "ingest something first, or check TRENDS_LAKE"
    return MissingTableError(f"{table.full_name}: there is no such table in {config.lake}\nhint: {hint}")


def _equals(value: Value | Sequence[Value]) -> str:
    if isinstance(value, str | int | date):
        return f"= {_value(value)}"
    return f"IN ({', '.join(_value(item) for item in value)})"


def _value(value: Value) -> str:
    if isinstance(value, str):
        return literal(value)
    return f"DATE'{value.isoformat()}'" if isinstance(value, date) else str(value)


def _with_zone(row: dict[str, Any]) -> dict[str, Any]:
    """Spark gives times without a zone, in that of the session."""
    return {name: value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for name, value in row.items()}


def _metadata(text: str | None) -> dict[str, str]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}  # another program's note
    return found if isinstance(found, dict) else {}
