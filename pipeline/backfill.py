"""Backfill: which intervals of which questions are to be answered, why, and doing that, several at once.

What was computed on the same events, by the same query and engine, is left alone, whatever else silver has got since: a
backfill that was killed goes on where it was, and an interval that is published again as it was is no commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from pipeline.aggregate.cut import spread
from pipeline.aggregate.snapshot import Snapshot, look
from pipeline.answers import answer_interval
from pipeline.config import Config
from pipeline.engines.choice import AUTO, choose
from pipeline.errors import TrendsError
from pipeline.publish import publications
from pipeline.publish.publications import Publication
from pipeline.publish.stale import Stale, stale
from pipeline.questions import Question
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SHOWN = 3  # files


@dataclass(frozen=True)
class Todo:
    """An interval of a question that is to be answered, and why."""

    question: Question
    day: date
    why: str
    rows: int  # of silver that it needs, about


def to_do(
    spark: SparkSession,
    config: Config,
    questions: Sequence[Question],
    first: date,
    last: date,
    *,
    engine: str = AUTO,
    only_missing: bool = False,
    changed: bool = False,
    again: bool = False,
) -> list[Todo]:
    """The intervals to answer: all that are not up to date; or those never published; or those whose events changed.

    `again`: those that are up to date, too.
    """
    datasets = {question.dataset.name: question.dataset for question in questions}
    snapshots = {name: look(spark, config, silver(dataset))[0] for name, dataset in datasets.items()}
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    found = []
    for question in questions:
        held = snapshots[question.dataset.name]
        there_are = publications.read(spark, config, question.name, first, last)
        published = {one.interval_date: one for one in there_are}
        old = stale(spark, config, question, first, last) if published and not only_missing else []
        reasons = {one.interval_date: _told(one) for one in old}
        name = choose(question.query, engine).name
        for day in days:
            if there := published.get(day):
                why = reasons.get(day)
                if not (why or changed or only_missing):
                    why = _asked_otherwise(there, name, again)
            else:
                why = None if changed else "not published yet"
            if why:
                found.append(Todo(question, day, why, _rows(question, held, day)))
    return found


def backfill(
    spark: SparkSession,
    config: Config,
    work: Sequence[Todo],
    run_id: str,
    *,
    engine: str = AUTO,
    parallel: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Todo, Publication | TrendsError]]:
    """Answer the intervals, those of one dataset and day together; each with its publication, or why it has none."""
    jobs: dict[tuple[str, date], list[Todo]] = {}
    for todo in work:
        jobs.setdefault((todo.question.dataset.name, todo.day), []).append(todo)

    def run(todos: Sequence[Todo]) -> list[tuple[Todo, Publication | TrendsError]]:
        asked, day = [todo.question for todo in todos], todos[0].day
        outcomes = answer_interval(spark, config, asked, day, run_id, engine=engine, say=say)
        return [(todo, outcomes[todo.question.name]) for todo in todos]

    pool = ThreadPoolExecutor(parallel)
    try:
        for done in as_completed([pool.submit(run, todos) for todos in jobs.values()]):
            yield from done.result()
    finally:
        # Who interrupts a year's backfill does not wait for the days that have not begun.
        pool.shutdown(cancel_futures=True)


def _asked_otherwise(there: Publication, engine: str, again: bool) -> str | None:
    """Why to answer an interval that is as its events and query are."""
    if there.engine != engine:
        return f"{there.engine} answered it, not {engine}"
    return "asked for again" if again else None


def _told(old: Stale) -> str:
    if not old.events:
        return old.reason
    files = ", ".join(change.file for change in old.files[:SHOWN]) + (", …" if len(old.files) > SHOWN else "")
    return f"{old.reason}: {old.events:,} events in {old.windows:,} windows, from {files}"


def _rows(question: Question, held: Snapshot, day: date) -> int:
    return round(sum(count for _, _, count in spread(held.files, question.reach.events(*question.reach.ends(day)))))
