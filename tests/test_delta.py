"""Tables on real Spark and Delta, in this process and through Spark Connect."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import deltalake
import pyarrow.parquet
import pytest

from pipeline import delta
from pipeline.config import Config
from pipeline.errors import DidNotFinishError, SetupError
from pipeline.tables import (
    DECLARATION,
    ENGINE_RUNS,
    OPS,
    OPS_INTERVALS,
    OPS_WAIVERS,
    Column,
    Table,
    bronze,
    catalogue,
    named,
    quarantine,
    silver,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MONDAY, TUESDAY = date(2013, 10, 7), date(2013, 10, 8)


@dataclass(frozen=True)
class Dataset:
    """A declaration that is as small as one can be."""

    name: str = "steps"
    about: str = "steps of people's feet"
    columns: tuple[Column, ...] = (
        Column("type", "string", "which foot", required=True),
        Column("patient", "string", "whose", sensitive=True),
        Column("speed", "double", "metres a second"),
    )
    retention: int = 14


STEPS = silver(Dataset())
SMALL = Table(
    "silver",
    "small",
    "a table that is quick to write",
    (
        Column("landing_date", "date", "the day", required=True),
        Column("word", "string", "it's a word"),
        Column("number", "int", "at least 0"),
    ),
    partition=("landing_date",),
    constraints={"number_from_0": "number >= 0"},
    change_feed=True,
)

GROWN = dataclasses.replace(
    OPS_WAIVERS,
    columns=(*OPS_WAIVERS.columns, Column("until", "date", "the last day")),
    constraints={**OPS_WAIVERS.constraints, "someone": "by <> ''"},
)


def rows(spark: SparkSession, day: date, *words: str, number: int = 1) -> DataFrame:
    values = ", ".join(f"(DATE'{day}', '{word}', {number})" for word in words)
    return spark.sql(f"SELECT * FROM VALUES {values} AS t(landing_date, word, number)")


def words(spark: SparkSession, config: Config, day: date, version: int | None = None) -> list[str]:
    found = delta.read(spark, config, SMALL, version).where(delta.predicate({"landing_date": day})).collect()
    return sorted(row["word"] for row in found)


def one_step(spark: SparkSession, event_date: str = "2013-10-07", event_id: str = "'a'") -> DataFrame:
    return spark.sql(
        f"""SELECT {event_id} AS event_id, TIMESTAMP'2013-10-07 23:59:59.999999' AS time,
        DATE'{event_date}' AS event_date, 'left' AS type, 'Ann' AS patient, 1.5D AS speed,
        CAST(NULL AS STRING) AS derived, false AS ambiguous_time, false AS late,
        'steps/2013-10-07/a.csv' AS file, 1 AS line, DATE'2013-10-07' AS landing_date"""
    )


def test_the_catalogue_has_every_table_once() -> None:
    names = [table.full_name for table in catalogue([Dataset()])]
    assert names == ["bronze.steps", "silver.steps", "quarantine.steps", *(table.full_name for table in OPS)]
    assert named("silver.steps", catalogue([Dataset()])) == STEPS
    with pytest.raises(SetupError, match=r"hint: did you mean silver\.steps\?"):
        named("silver.stesp", catalogue([Dataset()]))


def test_sensitive_columns_reach_the_tables() -> None:
    assert [column.name for column in STEPS.columns if column.sensitive] == ["patient"]
    assert [column.name for column in quarantine(Dataset()).columns if column.sensitive] == ["raw"]


def test_a_table_of_columns_that_do_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"silver\.small: no column nothing"):
        dataclasses.replace(SMALL, keys=("nothing",))
    with pytest.raises(ValueError, match=r"silver\.small: two columns word"):
        dataclasses.replace(SMALL, columns=(*SMALL.columns, SMALL.columns[1]))


def test_every_table_can_be_made_and_made_again(
    any_spark: SparkSession, config: Config, request: pytest.FixtureRequest
) -> None:
    # Through Spark Connect one of them is enough, that with most features.
    for table in [STEPS] if request.node.callspec.id == "connect" else catalogue([Dataset()]):
        assert not delta.exists(any_spark, config, table)
        for _ in range(2):
            delta.create(any_spark, config, table)
        assert delta.current_version(any_spark, config, table) == 0  # whole in one commit
        found = delta.read(any_spark, config, table).schema
        assert [(field.name, field.metadata["comment"]) for field in found.fields] == [
            (column.name, column.about) for column in table.columns
        ]
        detail = any_spark.sql(f"DESCRIBE DETAIL {table.sql(config)}").collect()[0]
        assert detail["partitionColumns"] == list(table.partition)
        assert detail["description"] == table.about
        assert detail["minReaderVersion"] == 1  # nothing that a reader must know of
        assert {*detail["tableFeatures"]} <= {"appendOnly", "changeDataFeed", "checkConstraints", "invariants"}


def test_a_table_is_the_same_whoever_makes_it(
    spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = dataclasses.replace(config, lake=f"{config.lake}-other")
    for table in (STEPS, SMALL, quarantine(Dataset()), ENGINE_RUNS):
        delta.create(spark, config, table)
        with monkeypatch.context() as patched:
            patched.setattr(Config, "lake_folder", None)  # as if only Spark could make it
            delta.create(spark, other, table)
        assert delta.read(spark, config, table).schema.json() == delta.read(spark, other, table).schema.json()
        made, by_spark = (spark.sql(f"DESCRIBE DETAIL {table.sql(lake)}").collect()[0] for lake in (config, other))
        for fact in ("description", "partitionColumns", "properties", "minReaderVersion", "minWriterVersion"):
            assert made[fact] == by_spark[fact]


def test_other_readers_can_read_it(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, STEPS)
    delta.replace(any_spark, config, STEPS, one_step(any_spark), {"landing_date": MONDAY})
    table = deltalake.DeltaTable(STEPS.path(config))
    [file] = table.file_uris()
    stored = pyarrow.parquet.read_table(file)
    assert str(stored.schema.field("time").type) == "timestamp[us, tz=UTC]"
    assert stored["time"].to_pylist() == [datetime(2013, 10, 7, 23, 59, 59, 999999, UTC)]
    assert pyarrow.parquet.ParquetFile(file).metadata.row_group(0).column(1).statistics.has_min_max


def test_replacing_a_day_leaves_the_others(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, SMALL)
    on_monday = {"landing_date": MONDAY}
    assert delta.replace(any_spark, config, SMALL, rows(any_spark, MONDAY, "a", "b"), on_monday) == 1
    assert delta.replace(any_spark, config, SMALL, rows(any_spark, TUESDAY, "c"), {"landing_date": TUESDAY}) == 2
    version = delta.replace(any_spark, config, SMALL, rows(any_spark, MONDAY, "d"), on_monday, {"run_id": "r1"})
    assert version == 3
    assert (words(any_spark, config, MONDAY), words(any_spark, config, TUESDAY)) == (["d"], ["c"])
    assert words(any_spark, config, MONDAY, version=2) == ["a", "b"]
    latest = delta.history(any_spark, config, SMALL)[0]
    assert (latest.version, latest.operation, latest.metadata["run_id"]) == (3, "WRITE", "r1")
    assert abs(latest.at.replace(tzinfo=UTC) - datetime.now(UTC)) < timedelta(minutes=5)
    assert delta.row_count(any_spark, config, SMALL) == 2
    assert delta.row_count(any_spark, config, SMALL, on_monday, version=1) == 2
    now = delta.state(any_spark, config, SMALL)
    assert (now.version, now.rows, now.files) == (3, 2, 2)
    assert now.size > 0


def test_a_day_can_be_emptied(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, SMALL)
    nothing = rows(any_spark, MONDAY, "a").limit(0)
    assert delta.replace(any_spark, config, SMALL, nothing, {"landing_date": MONDAY}) == 0
    delta.replace(any_spark, config, SMALL, rows(any_spark, MONDAY, "a"), {"landing_date": MONDAY})
    delta.replace(any_spark, config, SMALL, nothing, {"landing_date": MONDAY})
    assert words(any_spark, config, MONDAY) == []


def test_part_of_a_day_can_be_replaced(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, SMALL)
    delta.append(any_spark, config, SMALL, rows(any_spark, MONDAY, "it\\'s", "b", "c"))
    where = {"landing_date": MONDAY, "word": ["it's", "b"]}
    delta.replace(any_spark, config, SMALL, rows(any_spark, MONDAY, "b", "b"), where)
    assert words(any_spark, config, MONDAY) == ["b", "b", "c"]


def test_rows_of_another_day_are_refused(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, SMALL)
    with pytest.raises(delta.ConstraintError, match="landing_date = DATE '2013-10-07'"):
        delta.replace(any_spark, config, SMALL, rows(any_spark, TUESDAY, "a"), {"landing_date": MONDAY})
    assert delta.row_count(any_spark, config, SMALL) == 0


def test_constraints_hold_and_their_messages_tell_no_values(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, STEPS)
    day = {"landing_date": MONDAY}
    with pytest.raises(delta.ConstraintError) as broken:
        delta.replace(any_spark, config, STEPS, one_step(any_spark, event_date="2013-10-08"), day)
    assert str(broken.value) == (
        "silver.steps: nothing was written: CHECK constraint event_date_of_time (event_date = CAST(time AS DATE))"
    )
    with pytest.raises(delta.ConstraintError, match=r"NOT NULL .*event_id"):
        delta.append(any_spark, config, STEPS, one_step(any_spark, event_id="CAST(NULL AS STRING)"))
    assert delta.current_version(any_spark, config, STEPS) == 0


def test_what_is_missing_is_said(any_spark: SparkSession, config: Config) -> None:
    for action in (delta.read, delta.history, delta.state, delta.optimise, delta.vacuum):
        with pytest.raises(delta.MissingTableError, match=r"silver\.small: there is no such table in .*lake\nhint: "):
            action(any_spark, config, SMALL)
    with pytest.raises(delta.MissingTableError, match=r"silver\.small: there is no such table"):
        delta.replace(any_spark, config, SMALL, rows(any_spark, MONDAY, "a"), {"landing_date": MONDAY})
    assert not Path(SMALL.path(config)).exists()
    delta.create(any_spark, config, SMALL)
    with pytest.raises(delta.MissingTableError, match=r"silver\.small: version 7 is not there\nhint: "):
        delta.read(any_spark, config, SMALL, version=7)


def test_a_declaration_can_grow(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, SMALL)
    delta.append(any_spark, config, SMALL, rows(any_spark, MONDAY, "a"))
    grown = dataclasses.replace(
        SMALL,
        columns=(*SMALL.columns, Column("by", "string", "who", required=True)),
        constraints={**SMALL.constraints, "Short": "length(word) < 5"},
        kept_days=60,
    )
    for _ in range(2):
        delta.create(any_spark, config, grown)
    assert [row.asDict()["by"] for row in delta.read(any_spark, config, grown).collect()] == [None]
    assert delta.current_version(any_spark, config, SMALL) == 4  # column, constraint, settings: once each
    with pytest.raises(delta.ConstraintError, match="CHECK constraint short"):
        delta.append(any_spark, config, grown, rows(any_spark, MONDAY, "longer").selectExpr("*", "'me' AS by"))
    with pytest.raises(
        delta.SchemaError, match=r"silver\.small: the lake's table has a column by that is not declared"
    ):
        delta.create(any_spark, config, SMALL)
    number = dataclasses.replace(SMALL.columns[2], type="double")
    changed = dataclasses.replace(grown, columns=(*SMALL.columns[:2], number, grown.columns[3]))
    with pytest.raises(delta.SchemaError, match=r"silver\.small\.number: int in the lake, double declared\nhint: "):
        delta.create(any_spark, config, changed)


def test_files_are_joined_and_old_ones_removed(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, SMALL)
    for day in (MONDAY, TUESDAY):
        for word in "abc":
            delta.append(any_spark, config, SMALL, rows(any_spark, day, word))
    assert delta.optimise(any_spark, config, SMALL, {"landing_date": MONDAY}) == (3, 1)
    assert delta.optimise(any_spark, config, SMALL) == (3, 1)
    assert delta.optimise(any_spark, config, SMALL) == (0, 0)
    assert words(any_spark, config, MONDAY) == ["a", "b", "c"]

    def files() -> int:
        return len(list(Path(SMALL.path(config)).glob("landing_date=*/*.parquet")))

    delta.vacuum(any_spark, config, SMALL)
    assert files() == 8
    any_spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        delta.vacuum(any_spark, config, SMALL, days=0)
    finally:
        any_spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert files() == 2
    assert words(any_spark, config, TUESDAY) == ["a", "b", "c"]


def test_the_change_feed_tells_what_a_write_changed(any_spark: SparkSession, config: Config) -> None:
    delta.create(any_spark, config, SMALL)
    delta.append(any_spark, config, SMALL, rows(any_spark, MONDAY, "a", "b"))
    version = delta.replace(any_spark, config, SMALL, rows(any_spark, MONDAY, "c"), {"landing_date": MONDAY})
    feed = any_spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", version)
    changes = sorted((row["_change_type"], row["word"]) for row in feed.load(SMALL.path(config)).collect())
    assert changes == [("delete", "a"), ("delete", "b"), ("insert", "c")]


# ------------------------------------------------------------------------------------------------- two writers at once


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before a second try."""
    taken: list[float] = []
    monkeypatch.setattr(delta, "sleep", taken.append)
    return taken


def together(*actions: Callable[[], object]) -> list[object]:
    """Start them all at the same moment."""
    gate = threading.Barrier(len(actions))

    def start(action: Callable[[], object]) -> object:
        gate.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(start, actions))


def test_two_processes_write_different_days_without_conflict(
    spark: SparkSession, connect: SparkSession, config: Config, pauses: list[float]
) -> None:
    delta.create(spark, config, SMALL)

    def write(writer: SparkSession, day: date) -> list[int]:
        return [
            delta.replace(writer, config, SMALL, rows(writer, day, f"{n}"), {"landing_date": day}) for n in range(5)
        ]

    mine, theirs = together(lambda: write(spark, MONDAY), lambda: write(connect, TUESDAY))
    assert isinstance(mine, list)
    assert isinstance(theirs, list)
    assert sorted(mine + theirs) == list(range(1, 11))  # each knows its own commits
    assert (words(spark, config, MONDAY), words(spark, config, TUESDAY)) == (["4"], ["4"])
    assert pauses == []


@pytest.mark.parametrize("slow_one", ["in process", "connect"])
def test_of_two_writers_of_one_day_the_later_tries_again(
    spark: SparkSession, connect: SparkSession, config: Config, pauses: list[float], slow_one: str
) -> None:
    slow, fast = (spark, connect) if slow_one == "in process" else (connect, spark)
    delta.create(spark, config, SMALL)
    for day in (MONDAY, TUESDAY):
        delta.append(spark, config, SMALL, rows(spark, day, "old"))
    # Two rows a writer, so that half of a write would be seen.
    waiting = rows(slow, MONDAY, "slow", "slow").selectExpr(
        "landing_date", "word", "number + length(reflect('java.lang.Thread', 'sleep', 2000L)) * 0 AS number"
    )

    def begin_later() -> int:
        threading.Event().wait(1.5)
        return delta.replace(fast, config, SMALL, rows(fast, MONDAY, "fast", "fast"), {"landing_date": MONDAY})

    versions = together(
        lambda: delta.replace(slow, config, SMALL, waiting, {"landing_date": MONDAY}),
        begin_later,
    )
    assert versions == [4, 3]
    assert words(spark, config, MONDAY) == ["slow", "slow"]
    assert words(spark, config, MONDAY, version=3) == ["fast", "fast"]
    assert words(spark, config, TUESDAY) == ["old"]
    assert len(pauses) == 1


def test_two_processes_make_a_table_at_once(spark: SparkSession, connect: SparkSession, config: Config) -> None:
    for table in (OPS_INTERVALS, OPS_WAIVERS, bronze(Dataset())):
        together(*[lambda s=s, t=table: delta.create(s, config, t) for s in (spark, connect)])
        assert delta.current_version(spark, config, table) == 0
    together(*[lambda s=s: delta.create(s, config, GROWN) for s in (spark, connect)])
    assert delta.read(connect, config, GROWN).columns[-1] == "until"


def test_no_commit_of_two_processes_is_lost(spark: SparkSession, connect: SparkSession, config: Config) -> None:
    delta.create(spark, config, SMALL)

    def append(session: SparkSession) -> None:
        for number in range(10):
            delta.append(session, config, SMALL, rows(session, MONDAY, "word", number=number))

    together(*[lambda s=s: append(s) for s in (spark, connect)])
    found = delta.read(spark, config, SMALL).collect()
    assert sorted(row["number"] for row in found) == sorted([*range(10), *range(10)])
    # What Delta's own way leaves beside a commit: it would lose one of some hundred here.
    assert not list((Path(SMALL.path(config)) / "_delta_log").glob("*.json.crc"))


@pytest.mark.parametrize("step", ["ADD COLUMNS", "ADD CONSTRAINT", "SET TBLPROPERTIES"])
def test_two_processes_take_the_same_step(
    step: str, spark: SparkSession, connect: SparkSession, config: Config
) -> None:
    delta.create(spark, config, OPS_WAIVERS)
    gate = threading.Barrier(2)

    class Gated:
        """A session that waits before its first such step for the other one."""

        def __init__(self, session: SparkSession) -> None:
            self.session = session
            self.waits = True

        def __getattr__(self, name: str) -> object:
            return getattr(self.session, name)

        def sql(self, text: str) -> object:
            if step in text and self.waits:
                self.waits = False
                gate.wait(timeout=60)
            return self.session.sql(text)

    sessions = [cast("SparkSession", Gated(session)) for session in (spark, connect)]
    together(*[lambda s=s: delta.create(s, config, GROWN) for s in sessions])
    assert delta.read(spark, config, GROWN).columns[-1] == "until"
    assert deltalake.DeltaTable(GROWN.path(config)).metadata().configuration[DECLARATION] == GROWN.declaration


def test_a_table_that_a_killed_run_began_is_made(any_spark: SparkSession, config: Config, pauses: list[float]) -> None:
    log = Path(SMALL.path(config)) / "_delta_log"
    (log / "_staged_commits").mkdir(parents=True)
    (log / ".00000000000000000000.json.0a.tmp").write_text("half of a comm")
    with pytest.raises(SetupError, match=r"silver\.small: .* holds something that is no table\nhint: "):
        delta.create(any_spark, config, SMALL)  # it may still be in the making
    long_ago = time.time() - 60
    os.utime(log, (long_ago, long_ago))
    delta.create(any_spark, config, SMALL)
    assert delta.current_version(any_spark, config, SMALL) == 0


def test_a_folder_of_something_else_is_left_alone(spark: SparkSession, config: Config, pauses: list[float]) -> None:
    note = Path(SMALL.path(config)) / "note.txt"
    note.parent.mkdir(parents=True)
    note.write_text("mine")
    with pytest.raises(SetupError, match=r"silver\.small: .* holds something that is no table\nhint: "):
        delta.create(spark, config, SMALL)
    assert note.read_text() == "mine"


def test_a_conflict_that_does_not_end_is_said(pauses: list[float]) -> None:
    def conflict() -> None:
        raise RuntimeError("[DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] …")

    with pytest.raises(DidNotFinishError, match=r"silver\.small: other runs changed the same rows 12 times in a row"):
        delta.retrying(SMALL, conflict)
    assert max(pauses) <= delta.LONGEST_PAUSE

    def mistake() -> None:
        raise RuntimeError("another one")

    with pytest.raises(RuntimeError, match="another one"):
        delta.retrying(SMALL, mistake)
