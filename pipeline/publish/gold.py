"""Answers → `gold.<query>`, an interval at a time: history first, then gold, then `ops.publications`.

Each of the three is one commit that can be repeated, so a run that was killed anywhere is made good by the next one.
Rows that did not change stay as they are; without any change there is no commit.

Two writers of one interval:

- The commit of gold reads the rows that it replaces itself, in the snapshot that Delta guards: a commit that comes
  before it is read, and one that comes meanwhile is a conflict, after which it is read. So revisions are always counted
  on from what is replaced. A row that it would replace and that history does not have yet ends the commit, which is
  then begun again with history. History only gains rows, each (window, group, revision) once: nothing is lost.
- `ops.publications` decides. Its row only moves on to newer versions of silver, and its commit guards that in the same
  way. After it has written there, a writer looks at both tables again. Say that A is of an older version of silver than
  B, and both have committed gold, or found nothing to change. If A's row comes before B's, B sees A's commit of gold,
  and publishes again. If it comes after B's, A sees B's row, and puts the answers back that gold had with it. Either
  way gold ends with B's. A result counts when its row is there: before that its writer, or a rerun, is answerable.
- Answers of two versions of a query have no order: those stay that came to gold last.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Union

import pyarrow as pa

from pipeline import delta
from pipeline.config import Config
from pipeline.errors import DidNotFinishError, TrendsError
from pipeline.publish import few, publications
from pipeline.publish.made import Made, Outcome
from pipeline.publish.publications import Publication
from pipeline.questions import Question
from pipeline.tables import ENGINE_RUNS, INTERVAL_DATE, OPS_PUBLICATIONS, PROVENANCE, gold_history, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TRIES = 10  # at an interval that other runs publish at the same time
NOT_IN_HISTORY = "a row that is not in history would be replaced"

Answers = Union["DataFrame", pa.Table]


def prepare(spark: SparkSession, config: Config, questions: Iterable[Question]) -> None:
    """Make the tables that the answers need, or add their new columns, once before parallel tasks."""
    for table in (ENGINE_RUNS, OPS_PUBLICATIONS):
        delta.create(spark, config, table)
    for question in questions:
        try:
            for table in (gold_history(question.table), question.table):
                delta.create(spark, config, table)
        except delta.SchemaError as error:
            raise delta.SchemaError(
                f"{question.query.file}: {str(error).splitlines()[0]}\n"
                "hint: published columns stay and keep their types: give a changed item of RETURN another name (AS …), "
                "or give the query another file name, and so a table of its own"
            ) from None


def publish(
    spark: SparkSession,
    config: Config,
    question: Question,
    day: date,
    answers: Answers,
    made: Made,
) -> Publication:
    """Put an interval's answers in the place of those that gold has; the publication that stands then.

    `answers` are the columns of gold up to `exact`, without the interval; an Arrow table where they are few and the
    lake is a folder. Where answers of a newer version of silver are published, these stay.
    """
    return _Interval(spark, config, question, day).publish(answers, made)


class _Interval:
    def __init__(self, spark: SparkSession, config: Config, question: Question, day: date) -> None:
        self.lake = spark, config
        self.question, self.day = question, day
        self.table, self.history = question.table, gold_history(question.table)
        self.where: delta.Where = {INTERVAL_DATE.name: day}
        stamps = {INTERVAL_DATE.name, *(column.name for column in PROVENANCE)} - {"exact"}
        # An alias may hold any character.
        self.values = [quoted(column.name) for column in self.table.columns if column.name not in stamps]
        self.keys = [quoted(name) for name in self.table.keys]

    def publish(self, answers: Answers, made: Made) -> Publication:
        """Until the publication that stands is what gold holds."""
        for _ in range(TRIES):
            last = self._last()
            if last and self._is_older(made, last):
                if not self._is_overwritten(last):
                    return last
                answers, made = self._answers_of(last, isinstance(answers, pa.Table))
            outcome = self._commit(answers, made)
            if last and not outcome.changed and self._is_same(made, last):
                return last
            mine = self._publication(made, outcome, last)
            publications.write(*self.lake, mine)
            stands, later = self._last() or mine, self._commits_after(mine.gold_version)
            if stands == mine and not later:
                return mine
            if {stands.query_version, *(c.metadata["query_version"] for c in later[:1])} != {self.question.version}:
                return stands
        raise DidNotFinishError(
            f"{self.table.full_name}: other runs published {self.day} {TRIES} times in a row\n"
            "hint: run it again when they are done"
        )

    # ------------------------------------------------------------------------------------------------- publications

    def _last(self) -> Publication | None:
        return next(iter(publications.read(*self.lake, self.table.name, self.day, self.day)), None)

    def _is_older(self, made: Made, last: Publication) -> bool:
        return last.query_version == self.question.version and last.silver_version > made.silver_version

    def _is_same(self, made: Made, last: Publication) -> bool:
        return (last.query_version, last.silver_version, last.engine) == (
            self.question.version,
            made.silver_version,
            made.engine,
        )

    def _is_overwritten(self, last: Publication) -> bool:
        """Whether a run with older answers came after it, and did not come to see that."""
        return any(
            commit.metadata["query_version"] == last.query_version
            and int(commit.metadata["silver_version"]) < last.silver_version
            for commit in self._commits_after(last.gold_version)[:1]
        )

    def _answers_of(self, last: Publication, are_few: bool) -> tuple[Answers, Made]:
        made = Made(last.run_id, last.engine, last.silver_version, last.events, last.files, last.warnings)
        if are_few:
            return few.answers_at(self.lake[1], self.question, self.day, last.gold_version), made
        then = delta.read(*self.lake, self.table, last.gold_version).where(delta.predicate(self.where))
        return then.select(*self.values), made

    def _publication(self, made: Made, outcome: Outcome, last: Publication | None) -> Publication:
        # A run that was killed may have changed rows and not come to say so.
        before = last.gold_version if last else -1
        changed = sum(int(commit.metadata["changed"]) for commit in self._commits_after(before))
        return Publication(
            self.table.name,
            self.day,
            self.question.dataset.name,
            made.run_id,
            self.question.version,
            made.engine,
            made.silver_version,
            outcome.version,
            outcome.rows,
            changed,
            made.events,
            tuple(made.files),
            tuple(made.warnings),
        )

    # --------------------------------------------------------------------------------------------- history and gold

    def _commits_after(self, version: int) -> list[delta.Commit]:
        """The latest commits of this interval, newest first."""
        commits = delta.history(*self.lake, self.table, delta.SEARCHED[-1])
        return [c for c in commits if c.version > version and c.metadata.get("interval") == str(self.day)]

    def _commit(self, answers: Answers, made: Made) -> Outcome:
        def again(error: Exception) -> bool:
            return NOT_IN_HISTORY in str(error) or delta.is_conflict(error)

        def attempt() -> Outcome:
            if isinstance(answers, pa.Table):
                return few.commit(self.lake[1], self.question, self.day, answers, made)
            return self._attempt(answers, made)

        return delta.retrying(self.table, attempt, again)

    def _attempt(self, answers: DataFrame, made: Made) -> Outcome:
        from pyspark.sql import functions as F

        version = delta.current_version(*self.lake, self.table)
        compared = self._compared(answers)
        rows, superseded, changed, most = compared.agg(
            F.count("new"), F.count_if("is_superseded"), F.count_if("is_changed"), F.max("answers")
        ).collect()[0]
        if most and most > 1:
            raise TrendsError(f"{self.table.full_name} {self.day}: {most} answers for one window and group")
        if not changed:
            return Outcome(version, rows, 0)
        at = datetime.now(UTC)
        if superseded:
            self._commit_history(compared, made, at)
        metadata = made.noted(self.question, self.day, changed)
        frame = self._published(compared, made, at)
        return Outcome(delta.replace(*self.lake, self.table, frame, self.where, metadata), rows, changed)

    def _compared(self, answers: DataFrame) -> DataFrame:
        """Each row of gold, `old`, beside that of the answers, `new`; `past`: its latest revision in history.

        It is read anew by every job, so that a commit reads what it replaces.
        """
        from pyspark.sql import functions as F

        keys = self.keys
        there = delta.read(*self.lake, self.table).where(delta.predicate(self.where))
        history = delta.read(*self.lake, self.history).where(delta.predicate(self.where))
        old = there.select(*keys, F.struct("*").alias("old"))
        new = answers.select(*keys, F.struct(*self.values).alias("new"))
        past = history.select(*keys, F.col("revision").alias("past"))
        # One shuffle does what two joins would, and takes the nulls of a GROUP-BY attribute that the query has gained.
        sides = old.unionByName(new, allowMissingColumns=True).unionByName(past, allowMissingColumns=True)
        paired = sides.groupBy(*keys).agg(
            F.first("old", ignorenulls=True).alias("old"),
            F.first("new", ignorenulls=True).alias("new"),
            F.max("past").alias("past"),
            F.count("new").alias("answers"),
        )
        same = _all(F.col(f"old.{name}").eqNullSafe(F.col(f"new.{name}")) for name in self.values)
        is_kept = F.coalesce(same & (F.col("old.query_version") == self.question.version), F.lit(False))
        is_old, is_new = F.col("old").isNotNull(), F.col("new").isNotNull()
        return paired.withColumns(
            {
                "is_kept": is_kept,
                "is_superseded": is_old & ~is_kept,
                "is_changed": (is_old | is_new) & ~is_kept,
            }
        )

    def _commit_history(self, compared: DataFrame, made: Made, at: datetime) -> None:
        """Add what will be replaced; a row that a run added and then did not replace gets the name of this run."""
        from pyspark.sql import functions as F

        superseded = compared.where("is_superseded").select(
            "old.*",
            F.lit(made.run_id).alias("superseded_by"),
            F.lit(made.silver_version).cast("bigint").alias("superseded_silver"),
            F.lit(at).alias("superseded_at"),
        )
        there = delta.read(*self.lake, self.history).where(delta.predicate(self.where))
        latest = F.max_by(F.struct("*"), "superseded_at").alias("row")
        frame = there.unionByName(superseded).groupBy(*self.keys, "revision").agg(latest).select("row.*")
        delta.replace(*self.lake, self.history, frame, self.where, {"run_id": made.run_id})

    def _published(self, compared: DataFrame, made: Made, at: datetime) -> DataFrame:
        """The interval as it will be; an error where a row would be lost."""
        from pyspark.sql import functions as F

        stamps = {
            INTERVAL_DATE.name: F.lit(self.day),
            "engine": F.lit(made.engine),
            "run_id": F.lit(made.run_id),
            "revision": F.coalesce(F.greatest("old.revision", "past"), F.lit(0)) + 1,
            "query_version": F.lit(self.question.version),
            "silver_version": F.lit(made.silver_version).cast("bigint"),
            "published_at": F.lit(at),
        }
        is_lost = F.col("is_superseded") & (F.coalesce("past", F.lit(0)) < F.col("old.revision"))
        checked = compared.where(
            F.when(is_lost, F.raise_error(NOT_IN_HISTORY).cast("boolean")).otherwise(F.col("new").isNotNull())
        )
        kept_stamps = (
            F.when(F.col("is_kept"), F.col(f"old.{name}")).otherwise(stamp).alias(name)
            for name, stamp in stamps.items()
        )
        return checked.select("new.*", *kept_stamps)


def _all(conditions: Iterable[Column]) -> Column:
    return reduce(and_, conditions)
