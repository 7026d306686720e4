"""The job: some questions over one dataset, for the windows of an interval, as staged frames of gold's columns."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pipeline import delta
from pipeline.aggregate import few, tasks
from pipeline.aggregate.cut import Range, Strategy, cut, spread_by, task_ranges
from pipeline.aggregate.partials import data_columns
from pipeline.aggregate.reach import as_time
from pipeline.aggregate.sample import events_a_pane
from pipeline.aggregate.snapshot import DataFile, Snapshot, look
from pipeline.aggregate.tasks import Plan, Work
from pipeline.config import Config
from pipeline.engines.choice import AUTO, choose
from pipeline.questions import Question
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Answer:
    """A question's staged rows, and what they took."""

    question: Question
    engine: str
    rows: DataFrame
    silver_version: int
    strategy: str
    files: tuple[str, ...]
    events: int
    peak_stored: int
    peak_memory: int
    cpu_seconds: float
    wall_seconds: float  # of the whole job, which may have other questions
    few: Any = None  # the same rows as an Arrow table, where they are few: then nothing needs a job for them


def plan(
    asked: Sequence[tuple[Question, Range]],
    found: Snapshot,
    cores: int,
    engine: str = AUTO,
    strategy: Strategy | None = None,
) -> Plan:
    """How the questions' windows with these ends are aggregated."""
    needs = [question.reach.events(*ends) for question, ends in asked]
    events = min(low for low, _ in needs), max(high for _, high in needs)
    files = found.within(*events)
    ranges = task_ranges(files, events, cores)
    works = []
    for question, ends in asked:
        chosen = choose(question.query, engine)
        way = cut(question, chosen, files, ends, len(ranges), partial(events_a_pane, question, files), strategy)
        works.append(Work(question, chosen.name, ends, way))
    return Plan(tuple(works), files, ranges)


@contextmanager
def aggregated(
    spark: SparkSession,
    config: Config,
    asked: Sequence[tuple[Question, Range]],
    *,
    engine: str = AUTO,
    version: int | None = None,
    strategy: Strategy | None = None,
    by_spark: bool | None = None,
    folder: str | None = None,
) -> Iterator[list[Answer]]:
    """The answers of questions over one dataset, each for the windows with these ends; staged until the block ends.

    All are computed on one version of silver, the newest by default. `by_spark`: files are read by Spark, not by the
    tasks themselves; by default where tasks cannot reach them. `folder`: staged there, as Parquet, and left there.
    """
    from pyspark import StorageLevel

    dataset = asked[0][0].dataset
    started = time.perf_counter()
    found, unread = look(spark, config, silver(dataset), version, by_spark)
    if unread:
        strategy = Strategy.KEYS
    work = plan(asked, found, parallelism(spark, config), engine, strategy)
    with described(spark, config, "; ".join(f"{one.question.name}: {one.cut}" for one in work.works)):
        frame = _frame(spark, config, work, found.version if unread else None)
        if folder is None:
            staged = frame.persist(StorageLevel.DISK_ONLY)
        else:
            frame.write.parquet(folder)
            staged = spark.read.schema(tasks.SCHEMA).parquet(folder)
        try:
            costs, blobs = _collected(staged, work, most=0 if folder else few.FEW_BYTES)
            wall = time.perf_counter() - started
            answers = [
                _answer(staged, number, work, found.version, costs[number], wall) for number in range(len(asked))
            ]
            yield [
                answer if content is None else few.with_rows(spark, answer, few.joined(answer.question, content))
                for answer, content in zip(answers, blobs, strict=True)
            ]
        finally:
            if folder is None:
                staged.unpersist()


def staged_rows(staged: DataFrame, number: int, question: Question) -> DataFrame:
    """The rows of a question, which has this number in a staged frame, with the columns of its gold table."""
    schema = ", ".join(f"`{column.name}` {column.type}" for column in data_columns(question.table))
    return staged.where(f"question = {number} AND kind = '{tasks.ROWS}'").mapInArrow(tasks.unpacking(number), schema)


def parallelism(spark: SparkSession, config: Config) -> int:
    """How many tasks run at once, with all the cores that the session may get: a cluster gives them bit by bit."""

    def setting(name: str) -> str | None:
        return spark.conf.get(name, None)

    if given := setting("spark.default.parallelism"):
        return int(given)
    return max(2 if config.remote else spark.sparkContext.defaultParallelism, most_cores(setting))


def most_cores(setting: Callable[[str], str | None]) -> int:
    """How many cores a session may get, by its settings; 0 where these do not say."""
    if local := re.fullmatch(r"local\[(\d+)(,\s*\d+)?\]", setting("spark.master") or ""):
        return int(local[1])
    is_dynamic = setting("spark.dynamicAllocation.enabled") == "true"
    executors = setting("spark.dynamicAllocation.maxExecutors" if is_dynamic else "spark.executor.instances")
    each = setting("spark.executor.cores")
    return max(int(setting("spark.cores.max") or 0), int(executors or 0) * int(each or 1))


@contextmanager
def described(spark: SparkSession, config: Config, text: str) -> Iterator[None]:
    """Say in Spark's own pages what its jobs are for."""
    if config.remote:  # which has tags alone, without commas
        tag = text.replace(",", ";")[:200]
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    spark.sparkContext.setJobDescription(text)
    try:
        yield
    finally:
        spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]


def _frame(spark: SparkSession, config: Config, work: Plan, read_version: int | None) -> DataFrame:
    from pyspark.sql import functions as F

    if read_version is None:
        count = len(work.ranges)
        frame = spark.range(0, count, 1, count).mapInArrow(tasks.reading(work), tasks.SCHEMA)
    else:
        low, high = work.ranges[0][0], work.ranges[-1][1]
        table = silver(work.works[0].question.dataset)
        in_time = F.col("time").between(as_time(low), as_time(high - 1))
        rows = delta.read(spark, config, table, read_version).where(in_time).select(*work.names)
        frame = rows.mapInArrow(tasks.splitting(work), tasks.SCHEMA)
    shuffled = [one for one in work.works if one.cut.strategy is not Strategy.SLICES]
    if shuffled:
        buckets = max(one.cut.buckets * len(one.cut.slices) for one in shuffled)
        frame = frame.repartitionById(buckets, F.col("bucket")).mapInArrow(tasks.joining(work), tasks.SCHEMA)
        if any({*spread_by(one.question)} != {*one.question.query.group_by} for one in shuffled):
            frame = frame.repartitionById(len(work.ranges), F.col("bucket")).mapInArrow(
                tasks.adding(work), tasks.SCHEMA
            )
    return frame


def _collected(staged: DataFrame, work: Plan, most: int) -> tuple[list[list[dict[str, Any]]], list[list[bytes] | None]]:
    """By question, what the steps of its tasks took, and their rows: None where `most` bytes may not hold all."""
    from pyspark.sql import functions as F

    costs: list[list[dict[str, Any]]] = [[] for _ in work.works]
    blobs: list[list[bytes] | None] = [[] for _ in work.works]
    tasks_at_most = max(len(work.ranges), *(one.cut.buckets * len(one.cut.slices) for one in work.works))
    each = most // (len(work.works) * tasks_at_most)
    is_cost = F.col("kind") == tasks.COST
    content = F.when(is_cost | (F.length("bytes") <= each), F.col("bytes")).alias("bytes")
    for row in staged.select("question", is_cost.alias("is_cost"), content).collect():
        if row.is_cost:
            costs[row.question].append(json.loads(bytes(row.bytes)))
        elif row.bytes is None:
            blobs[row.question] = None
        elif (found := blobs[row.question]) is not None:
            found.append(bytes(row.bytes))
    return costs, blobs


def _answer(
    staged: DataFrame, number: int, work: Plan, version: int, costs: Sequence[dict[str, Any]], wall: float
) -> Answer:
    one = work.works[number]
    return Answer(
        one.question,
        one.engine,
        staged_rows(staged, number, one.question),
        version,
        str(one.cut),
        tuple(_below(file) for file in work.files),
        events=sum(cost["events"] for cost in costs),
        peak_stored=max((cost["peak_stored"] for cost in costs), default=0),
        peak_memory=max((cost["peak_memory"] for cost in costs), default=0),
        cpu_seconds=sum(cost["cpu_seconds"] for cost in costs),
        wall_seconds=wall,
    )


def _below(file: DataFile) -> str:
    """The file's path below the table's folder."""
    return "/".join(file.path.split("/")[-2:])
