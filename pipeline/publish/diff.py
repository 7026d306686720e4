"""Differences: how answers changed from revision to revision, and the landing files behind each change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

from pipeline import delta
from pipeline.aggregate.reach import as_micros, as_time
from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.publish.changes import MICROS, NET, VERSION, FileChange, changes, collect_kept, netted
from pipeline.questions import Question
from pipeline.tables import INTERVAL_DATE, PROVENANCE, gold_history, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(frozen=True)
class Revision:
    """A row as it was published, or that there was none: `values` is None, `revision` that of the row before, or 0.

    `files`: what changed in the window's events since the revision before; None where that is no longer kept.
    """

    revision: int
    values: Mapping[str, Any] | None
    run_id: str
    silver_version: int
    at: datetime
    query_version: str | None = None
    files: Sequence[FileChange] | None = ()


@dataclass(frozen=True)
class Difference:
    """A row that changed: its window and group, and its revisions, oldest first."""

    window_start: datetime
    window_end: datetime
    group: Mapping[str, Any]
    revisions: Sequence[Revision]


def differences(
    spark: SparkSession,
    config: Config,
    question: Question,
    start: datetime,
    end: datetime | None = None,
    group: Mapping[str, Any] | None = None,
) -> list[Difference]:
    """The rows that changed, of the window that begins at `start`, or of those that begin from there up to `end`.

    `group` gives the values of some GROUP-BY attributes. Times are in UTC.
    """
    rows, first = _rows(spark, config, question, start, end, group or {})
    return _with_files(spark, config, question, list(_differences(question, rows, first)))


def _rows(
    spark: SparkSession,
    config: Config,
    question: Question,
    start: datetime,
    end: datetime | None,
    group: Mapping[str, Any],
) -> tuple[list[Row], dict[date, Row]]:
    """All revisions of rows, and where their intervals' first answers come from."""
    from pyspark.sql import functions as F

    for name in group.keys() - {*question.query.group_by}:
        known = f"one of {', '.join(question.query.group_by)}" if question.query.group_by else "the query has none"
        raise TrendsError(f"{question.query.file}: {name} is not in GROUP-BY\nhint: {known}")
    first_start = as_micros(start)
    last_start = as_micros(end) - 1 if end else first_start
    days = (question.reach.owner(window + question.reach.within) for window in (first_start, last_start))
    history = delta.read(spark, config, gold_history(question.table))
    both = history.unionByName(delta.read(spark, config, question.table), allowMissingColumns=True)
    both = both.where(F.col(INTERVAL_DATE.name).between(*days))
    origin = F.min(F.struct("silver_version", "published_at", "run_id", "query_version"))
    first = {row[0]: row[1] for row in both.groupBy(INTERVAL_DATE.name).agg(origin).collect()}
    wanted = F.unix_micros("window_start").between(first_start, last_start)
    for name, value in group.items():
        wanted &= F.col(quoted(name)) == value
    rows = both.where(wanted).withColumns({name: F.unix_micros(name) for name in ("window_start", "window_end")})
    return rows.collect(), first


def _differences(question: Question, rows: Sequence[Row], first: Mapping[date, Row]) -> Iterator[Difference]:
    of_row: dict[tuple[Any, ...], dict[int, Row]] = defaultdict(dict)
    # Gold's rows last: one that history has before its time is still there.
    for row in sorted(rows, key=lambda row: row["superseded_at"] is None):
        of_row[tuple(row[key] for key in question.table.keys)][row["revision"]] = row
    for (start, end, *group), by_revision in sorted(of_row.items(), key=lambda item: (item[0][:2], str(item[0][2:]))):
        revisions = list(_revisions(question, [by_revision[number] for number in sorted(by_revision)]))
        origin = first[by_revision[min(by_revision)][INTERVAL_DATE.name]]
        if origin["silver_version"] < revisions[0].silver_version:  # there were answers, and none for this row
            revisions.insert(0, _revision(0, None, origin))
        if len(revisions) > 1:
            named = dict(zip(question.query.group_by, group, strict=True))
            yield Difference(as_time(start), as_time(end), named, revisions)


def _revisions(question: Question, rows: Sequence[Row]) -> Iterator[Revision]:
    about = {INTERVAL_DATE.name, *question.table.keys, *(column.name for column in PROVENANCE)} - {"exact"}
    values = [column.name for column in question.table.columns if column.name not in about]
    for row, after in zip_longest(rows, rows[1:]):
        yield _revision(row["revision"], {name: row[name] for name in values}, row)
        gone_at = row["superseded_at"]
        # What takes a row's place is published at the moment that supersedes it, by a run that came second even before.
        if gone_at and (after is None or after["published_at"] > gone_at):
            run_id, silver_version = row["superseded_by"], row["superseded_silver"]
            yield Revision(row["revision"], None, run_id, silver_version, gone_at.replace(tzinfo=UTC))


def _revision(number: int, values: Mapping[str, Any] | None, row: Row) -> Revision:
    at = row["published_at"].replace(tzinfo=UTC)
    return Revision(number, values, row["run_id"], row["silver_version"], at, row["query_version"])


def _with_files(
    spark: SparkSession, config: Config, question: Question, found: Sequence[Difference]
) -> list[Difference]:
    """With the files behind each step from one revision to the next."""
    from pyspark.sql import functions as F

    steps = [
        (
            at,
            number,
            *question.reach.events(end, end + 1),
            before.silver_version,
            one.silver_version,
            *row.group.values(),
        )
        for at, row in enumerate(found)
        for end in [as_micros(row.window_end)]
        for number, (before, one) in enumerate(pairwise(row.revisions), 1)
        if before.silver_version < one.silver_version
    ]
    if not steps:
        return list(found)
    groups = question.query.group_by
    types = {column.name: column.type for column in question.table.columns}
    schema = "row int, step int, low bigint, high bigint, after bigint, upto bigint"
    frame = spark.createDataFrame(
        steps, ", ".join([schema, *(f"group_{n} {types[name]}" for n, name in enumerate(groups))])
    )
    upto = max(step[5] for step in steps)

    def by_file(version: int) -> DataFrame:
        events = changes(spark, config, question, version, upto)
        is_in = (
            (F.col(MICROS) >= F.col("low"))
            & (F.col(MICROS) < F.col("high"))
            & (F.col(VERSION) > F.col("after"))
            & (F.col(VERSION) <= F.col("upto"))
        )
        for number, name in enumerate(groups):
            is_in &= F.col(f"group_{number}") == F.col(quoted(name))
        left = netted(events.join(F.broadcast(frame), is_in), question, "row", "step")
        return left.groupBy("row", "step", "file").agg(
            F.count_if(F.col(NET) > 0).alias("added"), F.count_if(F.col(NET) < 0).alias("removed")
        )

    kept, rows = collect_kept((step[4] for step in steps), by_file)
    files: dict[tuple[int, int], list[FileChange] | None] = {step[:2]: None if step[4] < kept else [] for step in steps}
    for row in sorted(rows, key=lambda row: row["file"]):
        known = files[row["row"], row["step"]]
        if known is not None:
            known.append(FileChange(row["file"], row["added"], row["removed"]))
    return [
        replace(one, revisions=[replace(r, files=files.get((at, n), ())) for n, r in enumerate(one.revisions)])
        for at, one in enumerate(found)
    ]
