"""Publishing intervals on real Spark and Delta: revisions, kills, and two writers at once."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest

from pipeline import delta
from pipeline.arrow_tables import StoredTable
from pipeline.config import Config
from pipeline.publish import engine_runs, gold, publications
from pipeline.publish.engine_runs import COMPARISON, FINISHED, NIGHT, EngineRun
from pipeline.questions import Question, ask
from pipeline.tables import OPS_PUBLICATIONS, Table, gold_history
from tests.publish.samples import (
    BY_SECTOR,
    MONDAY,
    QUERY,
    TUESDAY,
    Counts,
    answers,
    few_answers,
    made,
    past,
    revisions,
    rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Publish = Callable[..., publications.Publication]


# How answers are published: by Spark, as few rows without it, or in a lake that is no folder, where Spark does it all.
SPARK, FEW, STORE = "spark", "few", "another store"


def given(spark: SparkSession, way: str, counts: Counts, day: date = MONDAY) -> Any:
    """Answers as they are published in one of these ways."""
    return few_answers(counts, day) if way == FEW else answers(spark, counts, day)


@pytest.fixture
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a folder pass for another store."""
    monkeypatch.setattr(Config, "lake_folder", None)


@pytest.fixture(params=[SPARK, "connect", FEW, STORE])
def way(request: pytest.FixtureRequest) -> str:
    """The test runs in all ways, and by Spark Connect."""
    if request.param == STORE:
        request.getfixturevalue("store")
    return str(request.param)


@pytest.fixture
def session(request: pytest.FixtureRequest, way: str) -> SparkSession:
    """Spark, as the way has it."""
    found: SparkSession = request.getfixturevalue("connect" if way == "connect" else "spark")
    return found


@pytest.fixture
def publish(way: str, session: SparkSession, config: Config) -> Publish:
    """Publishes answers."""
    gold.prepare(session, config, [BY_SECTOR])

    def put(counts: Counts, run_id: str, silver: int, question: Any = BY_SECTOR, **options: Any) -> Any:
        return gold.publish(
            session, config, question, MONDAY, given(session, way, counts), made(run_id, silver, **options)
        )

    return put


def before_commits(patched: pytest.MonkeyPatch, call: Callable[[str], None]) -> None:
    """Call a function with the table's name before each commit, by Spark or without it."""
    by_spark, without = delta.replace, StoredTable.replace

    def spark_commit(spark: SparkSession, config: Config, table: Table, *rest: Any, **more: Any) -> int:
        call(table.full_name)
        return by_spark(spark, config, table, *rest, **more)

    def commit(table: StoredTable, *rest: Any, **more: Any) -> int:
        call(".".join(table.root.split("/")[-2:]))
        return without(table, *rest, **more)

    patched.setattr(delta, "replace", spark_commit)
    patched.setattr(StoredTable, "replace", commit)


def versions(spark: SparkSession, config: Config) -> tuple[int, ...]:
    tables = (BY_SECTOR.table, gold_history(BY_SECTOR.table), OPS_PUBLICATIONS)
    return tuple(delta.current_version(spark, config, table) for table in tables)


def test_the_life_of_a_row(publish: Publish, session: SparkSession, config: Config) -> None:
    first = publish({(0, "A"): 1, (0, "B"): 2, (10, "A"): 3}, "one", 1)
    assert (first.rows, first.changed, first.gold_version, first.files) == (3, 3, 1, made("", 0).files)
    assert publications.read(session, config, "trends_by_sector") == [first]
    before, state = rows(session, config, BY_SECTOR.table), versions(session, config)
    assert {row["engine"] for row in before} == {"pane"}

    # The same again: nothing is written at all.
    assert publish({(0, "A"): 1, (0, "B"): 2, (10, "A"): 3}, "again", 1) == first
    assert versions(session, config) == state

    # Newer silver, another engine, the same answers: the publication alone moves on.
    moved = publish({(0, "A"): 1, (0, "B"): 2, (10, "A"): 3}, "two", 2, engine="cogra")
    assert (moved.silver_version, moved.engine, moved.changed, moved.gold_version) == (2, "cogra", 0, 1)
    assert rows(session, config, BY_SECTOR.table) == before
    assert versions(session, config)[:2] == state[:2]

    # One row changes, one vanishes, one is new; the rest stay as they are, to the moment of their publication.
    changed = publish({(0, "A"): 1, (0, "B"): 5, (20, "A"): 4}, "three", 3)
    assert (changed.rows, changed.changed) == (3, 3)
    assert revisions(session, config) == {(0, "A", 1, 1, "one"), (0, "B", 5, 2, "three"), (20, "A", 4, 1, "three")}
    assert rows(session, config, BY_SECTOR.table)[0] == before[0]
    assert past(session, config) == [(0, "B", 2, 1, "one", "three"), (10, "A", 3, 1, "one", "three")]

    # What vanished comes back, and goes on from its revision in history.
    publish({(0, "A"): 1, (0, "B"): 5, (10, "A"): 3, (20, "A"): 4}, "four", 4)
    assert (10, "A", 3, 2, "four") in revisions(session, config)
    assert len(past(session, config)) == 2

    # Older answers are not published.
    late = publish({}, "late", 3)
    assert (late.run_id, late.silver_version) == ("four", 4)

    # Another version of the query: every row is new.
    text = QUERY.format(slide="10 minutes").replace("[company]", "[company] AND S.price > 0")
    other = ask(text, BY_SECTOR.query.file)
    publish({(0, "A"): 1, (0, "B"): 5}, "five", 4, other)
    assert revisions(session, config) == {(0, "A", 1, 2, "five"), (0, "B", 5, 3, "five")}
    assert {row["query_version"] for row in rows(session, config, BY_SECTOR.table)} == {other.version}
    assert len(past(session, config)) == 6

    # Nothing is left.
    assert publish({}, "six", 5, other).rows == 0
    assert revisions(session, config) == set()
    nothing_lost(session, config)


def test_changed_columns(spark: SparkSession, config: Config) -> None:
    gold.prepare(spark, config, [BY_SECTOR])
    gold.publish(spark, config, BY_SECTOR, MONDAY, answers(spark, {(0, "A"): 1}), made("one", 1))
    text = QUERY.format(slide="10 minutes")
    wider = ask(text.replace("COUNT(*)", "COUNT(*), MIN(S.volume) AS least"), BY_SECTOR.query.file)
    for _ in range(2):
        gold.prepare(spark, config, [wider])
    more = answers(spark, {(0, "A"): 1}).selectExpr("*", "7L AS least")
    gold.publish(spark, config, wider, MONDAY, more, made("two", 1))
    assert [row["least"] for row in rows(spark, config, wider.table)] == [7]
    assert [row["least"] for row in rows(spark, config, gold_history(wider.table))] == [None]
    for other, message in (
        (text.replace("AVG(S.price)", "MIN(S.volume)"), r"history\.mean: double in the lake, bigint declared"),
        (text, r"the lake's table has a column least that is not declared"),
    ):
        with pytest.raises(delta.SchemaError, match=rf"^queries/stock/\S+\.query: .*{message}\nhint: .*AS"):
            gold.prepare(spark, config, [ask(other, BY_SECTOR.query.file)])


# --------------------------------------------------------------------------------------------------------------- kills


class Killed(Exception):
    pass


@pytest.mark.parametrize("way", [SPARK, FEW])
def test_a_run_that_was_killed_between_commits_is_made_good(
    spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    gold.prepare(spark, config, [BY_SECTOR])
    before, after = {(0, "A"): 1, (10, "A"): 2, (20, "A"): 3}, {(0, "A"): 1, (10, "A"): 7, (30, "A"): 4}

    def publish(counts: Counts, run_id: str, silver: int, day: date) -> publications.Publication:
        return gold.publish(spark, config, BY_SECTOR, day, given(spark, way, counts, day), made(run_id, silver))

    def state(day: date) -> Any:
        def plain(name: str, value: Any) -> bool:
            return name.startswith(("window", "interval")) or isinstance(value, datetime)

        (publication,) = publications.read(spark, config, BY_SECTOR.name, day, day)
        return (
            revisions(spark, config, day=day),
            past(spark, config, day=day),
            {k: v for k, v in dataclasses.asdict(publication).items() if k != "gold_version" and not plain(k, v)},
        )

    publish(before, "one", 1, MONDAY)
    publish(after, "two", 2, MONDAY)
    expected = state(MONDAY)
    for number, table in enumerate((gold_history(BY_SECTOR.table), BY_SECTOR.table, OPS_PUBLICATIONS)):
        day = TUESDAY + timedelta(days=number)
        publish(before, "one", 1, day)

        def kill(name: str, victim: str = table.full_name) -> None:
            if name == victim:
                raise Killed

        with monkeypatch.context() as patched:
            before_commits(patched, kill)
            with pytest.raises(Killed):
                publish(after, "killed", 2, day)
        publish(after, "two", 2, day)
        found = state(day)
        if table == OPS_PUBLICATIONS:  # its rows were published then, and are not published again
            found = ({(*row[:4], row[4].replace("killed", "two")) for row in found[0]}, *found[1:])
            found[1][:] = [(*row[:5], row[5].replace("killed", "two")) for row in found[1]]
        assert found == expected, table.full_name


# ------------------------------------------------------------------------------------------------- two writers at once


class Turns:
    """One writer at a time: each runs up to its next commit, then the next letter of the schedule says who goes on."""

    def __init__(self, schedule: str) -> None:
        self.left = {*schedule}
        self.schedule = iter(schedule)
        self.running = next(self.schedule)
        self.moved = threading.Condition()

    def wait(self, name: str) -> None:
        with self.moved:
            assert self.moved.wait_for(lambda: self.running == name, 120)

    def give_way(self, name: str) -> None:
        with self.moved:
            self._next()
        self.wait(name)

    def leave(self, name: str) -> None:
        with self.moved:
            self.left.remove(name)
            self._next()

    def _next(self) -> None:
        self.running = next((one for one in self.schedule if one in self.left), min(self.left, default=""))
        self.moved.notify_all()


def interleaved(
    spark: SparkSession,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    day: date,
    schedule: str,
    writers: dict[str, tuple[int, Counts]],
    ways: dict[str, str],
    questions: dict[str, Question] | None = None,
) -> dict[str, publications.Publication]:
    """Two writers, each with a version of silver, its answers, and its way to publish them."""
    turns = Turns(schedule)
    found = {name: given(spark, ways[name], counts, day) for name, (_, counts) in writers.items()}

    def write(name: str) -> publications.Publication:
        threading.current_thread().name = name
        try:
            turns.wait(name)
            question = (questions or {}).get(name, BY_SECTOR)
            return gold.publish(spark, config, question, day, found[name], made(name, writers[name][0]))
        finally:
            turns.leave(name)

    with monkeypatch.context() as patched:
        before_commits(patched, lambda _: turns.give_way(threading.current_thread().name))
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(writers, pool.map(write, writers), strict=True))


def nothing_lost(spark: SparkSession, config: Config, day: date = MONDAY) -> None:
    """Every row that readers ever saw is in gold or in history; no revision has two values, none is there twice."""
    table = BY_SECTOR.table
    commits = delta.history(spark, config, table, 100)
    versions = [commit.version for commit in commits if commit.metadata.get("interval") == str(day)]
    frames = [delta.read(spark, config, table, version) for version in versions]
    found = (
        reduce(lambda one, two: one.unionAll(two), frames)
        .where(delta.predicate({"interval_date": day}))
        .distinct()
        .collect()
    )
    seen = {(row["window_start"], row["sector"], row["revision"]): row.asDict() for row in found}
    assert len(seen) == len(found)
    history = rows(spark, config, gold_history(table), day)
    kept = {(row["window_start"], row["sector"], row["revision"]): row for row in history}
    assert len(kept) == len(history)
    for row in rows(spark, config, table, day):
        kept[row["window_start"], row["sector"], row["revision"]] = row
    assert set(seen) == set(kept)
    for key, row in seen.items():
        assert row == {name: kept[key][name] for name in row}


BEFORE = {(0, "A"): 1, (10, "A"): 2, (20, "A"): 3}
OLDER, NEWER = {(0, "A"): 1, (10, "A"): 5, (30, "A"): 5}, {(0, "A"): 7, (10, "A"): 7, (20, "A"): 3}


SCHEDULES = {
    "AAABBBBA": NEWER,  # B as a whole, before A's row
    "BBBAAAAB": NEWER,  # A as a whole, before B's row
    "ABABABAB": NEWER,  # step by step
    "BAABBBAA": NEWER,  # B's history and gold between A's
    "ABBBBAAA": BEFORE,  # A after B, which changed nothing
    "BAAAAB": BEFORE,  # A as a whole, after B found nothing to change
}
WAYS = [((FEW, FEW), schedule) for schedule in SCHEDULES]
WAYS += [((STORE, STORE), schedule) for schedule in ("ABABABAB", "BAABBBAA", "BAAAAB")]


@pytest.mark.parametrize(("ways", "schedule"), [*WAYS, ((SPARK, FEW), "ABABABAB"), ((FEW, SPARK), "ABABABAB")])
def test_the_newer_silver_wins(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    ways: tuple[str, str],
    schedule: str,
) -> None:
    newer = SCHEDULES[schedule]
    if STORE in ways:
        request.getfixturevalue("store")
    gold.prepare(spark, config, [BY_SECTOR])
    gold.publish(spark, config, BY_SECTOR, MONDAY, answers(spark, BEFORE), made("before", 1))
    interleaved(
        spark,
        config,
        monkeypatch,
        MONDAY,
        schedule,
        {"A": (5, OLDER), "B": (7, newer)},
        dict(zip("AB", ways, strict=True)),
    )
    assert {row[:3] for row in revisions(spark, config)} == {(*key, n) for key, n in newer.items()}
    (stands,) = publications.read(spark, config, BY_SECTOR.name)
    assert (stands.silver_version, stands.run_id) == (7, "B")
    now = rows(spark, config, BY_SECTOR.table)
    assert rows(spark, config, BY_SECTOR.table, version=stands.gold_version) == now
    nothing_lost(spark, config)


@pytest.mark.parametrize("way", [SPARK, FEW])
@pytest.mark.parametrize("schedule", ["ABABABAB", "ABABABBA"])
def test_an_interval_holds_one_version_of_the_query(
    spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch, schedule: str, way: str
) -> None:
    gold.prepare(spark, config, [BY_SECTOR])
    text = QUERY.format(slide="10 minutes").replace("[company]", "[company] AND S.price > 0")
    writers = {"A": (5, OLDER), "B": (7, NEWER)}
    questions = {"A": BY_SECTOR, "B": ask(text, BY_SECTOR.query.file)}
    interleaved(spark, config, monkeypatch, MONDAY, schedule, writers, {"A": way, "B": way}, questions)
    (stands,) = publications.read(spark, config, BY_SECTOR.name)
    now = rows(spark, config, BY_SECTOR.table)
    assert {row["query_version"] for row in now} == {stands.query_version} == {questions["B"].version}
    assert {row[:3] for row in revisions(spark, config)} == {(*key, n) for key, n in NEWER.items()}
    nothing_lost(spark, config)


@pytest.mark.parametrize("way", [SPARK, FEW])
def test_a_writer_that_was_killed_over_newer_answers_is_made_good(
    spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    gold.prepare(spark, config, [BY_SECTOR])
    newer = gold.publish(spark, config, BY_SECTOR, MONDAY, given(spark, way, NEWER), made("newer", 7))
    with monkeypatch.context() as patched:
        # As if it had looked before the newer one was published.
        patched.setattr(publications, "read", lambda *_: [])
        patched.setattr(publications, "write", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            gold.publish(spark, config, BY_SECTOR, MONDAY, given(spark, way, OLDER), made("older", 5))
    stands = gold.publish(spark, config, BY_SECTOR, MONDAY, given(spark, way, OLDER), made("again", 5))
    assert (stands.run_id, stands.silver_version, stands.rows) == (newer.run_id, 7, 3)
    assert {row[:3] for row in revisions(spark, config)} == {(*key, n) for key, n in NEWER.items()}
    nothing_lost(spark, config)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses before a second try."""
    taken: list[float] = []
    monkeypatch.setattr(delta, "sleep", taken.append)
    return taken


@pytest.mark.parametrize("way", [SPARK, FEW])
def test_threads(
    spark: SparkSession, config: Config, pauses: list[float], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    gold.prepare(spark, config, [BY_SECTOR])

    def write(run_id: str, day: date, silver: int) -> publications.Publication:
        counts = {(minute, "A"): silver + minute for minute in range(0, 60, 10)}
        return gold.publish(spark, config, BY_SECTOR, day, given(spark, way, counts, day), made(run_id, silver))

    with ThreadPoolExecutor(2) as pool:
        # Different days never disturb each other.
        for silver in (1, 2):
            both = list(pool.map(lambda day, silver=silver: write("x", day, silver), (MONDAY, TUESDAY)))
            assert [one.changed for one in both] == [6, 6]
        assert pauses == []
        monkeypatch.undo()  # without pauses, two writers of one day could use up their tries
        # The same, empty day.
        day = TUESDAY + timedelta(days=1)
        list(pool.map(lambda silver: write(str(silver), day, silver), (8, 9)))
    assert {row[2] - row[0] for row in revisions(spark, config, day=day)} == {9}
    assert publications.read(spark, config, BY_SECTOR.name, day)[0].silver_version == 9
    for one in (MONDAY, TUESDAY, day):
        nothing_lost(spark, config, one)


# --------------------------------------------------------------------------------------------------------- engine runs


def test_a_run_records_an_interval_once(spark: SparkSession, config: Config) -> None:
    gold.prepare(spark, config, [])
    at = datetime(2030, 1, 8, 1, tzinfo=UTC)
    night = EngineRun("q", MONDAY, "one", NIGHT, "pane", FINISHED, "v", 3, rows=7, wall_seconds=1.5, agrees=True, at=at)
    compared = dataclasses.replace(night, purpose=COMPARISON, events_a_window=100)
    more = dataclasses.replace(compared, engine="sase", at=at + timedelta(seconds=1))
    for _ in range(2):
        engine_runs.record(spark, config, [more, night, compared])
    engine_runs.record(spark, config, [dataclasses.replace(night, rows=8)])
    engine_runs.record(spark, config, [dataclasses.replace(night, query="other", interval_date=TUESDAY)])
    found = engine_runs.read(spark, config, "q", MONDAY, TUESDAY)
    assert {dataclasses.replace(night, rows=8), compared, more} == set(found)
    assert len(found) == 3
