"""One interval of some questions over a dataset: silver → aggregated → compared → checked → gold.

All are computed on one version of silver, in one job. Each question is published by itself: what is wrong with one
does not keep the others back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import TYPE_CHECKING

from pipeline.aggregate.job import Answer, aggregated
from pipeline.compare import Comparison, agreement
from pipeline.config import Config
from pipeline.engines.choice import AUTO
from pipeline.errors import TrendsError
from pipeline.publish.engine_runs import FINISHED, NIGHT, EngineRun, record
from pipeline.publish.gold import publish
from pipeline.publish.made import Made
from pipeline.publish.publications import Publication
from pipeline.quality.check import check
from pipeline.quality.mask import mask
from pipeline.quality.report import Report, Result
from pipeline.quality.waivers import reasons
from pipeline.questions import Question
from pipeline.spark import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Said = Callable[[str], None]


def answer_interval(
    spark: SparkSession,
    config: Config,
    questions: Sequence[Question],
    day: date,
    run_id: str,
    *,
    engine: str = AUTO,
    say: Said = lambda _: None,
) -> dict[str, Publication | TrendsError]:
    """Answer and publish questions over one dataset for the interval of a day: by name, the publication or why none."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    def failure(name: str, error: Exception) -> TrendsError:
        if isinstance(error, TrendsError):
            return error
        return TrendsError(f"{name} {day}: {first_line(error)}\nhint: run it again")

    asked = [(question, question.reach.ends(day)) for question in questions]
    outcomes: dict[str, Publication | TrendsError] = {}
    try:
        with aggregated(spark, config, asked, engine=engine) as answers:
            for answer in answers:
                name = answer.question.name
                say(f"{name} {day}: {answer.strategy}")
                try:
                    outcomes[name] = _publish(spark, config, answer, day, run_id)
                except (TrendsError, PySparkException, Py4JError) as error:
                    outcomes[name] = failure(name, error)
    except (TrendsError, PySparkException, Py4JError) as error:
        left = [question for question in questions if question.name not in outcomes]
        if len(questions) == 1:
            return {question.name: failure(question.name, error) for question in left} | outcomes
        # One of them is too much for the job: the others can do without it.
        for question in left:
            outcomes |= answer_interval(spark, config, [question], day, run_id, engine=engine, say=say)
    return outcomes


def _publish(spark: SparkSession, config: Config, answer: Answer, day: date, run_id: str) -> Publication:
    found = agreed(spark, config, answer, day, run_id)
    report = checked(spark, config, answer, day, run_id, found.result(run_id))
    raise_on_difference(spark, config, found)
    report.raise_on_critical()
    return published(spark, config, answer, day, run_id, report.warnings)


# --------------------------------------------------------------------------------------- the steps, each safe to repeat


def agreed(spark: SparkSession, config: Config, answer: Answer, day: date, run_id: str) -> Comparison:
    """Compare some windows of staged answers with other engines, and record what all of them took."""
    rows = answer.rows if answer.few is None else answer.few
    found = agreement(
        spark, config, answer.question, day, rows, answer.engine, run_id=run_id, version=answer.silver_version
    )
    record(spark, config, [_night(answer, day, run_id), *found.runs])
    return found


def raise_on_difference(spark: SparkSession, config: Config, found: Comparison) -> None:
    """Stop where engines differ, unless a person lets that day through."""
    if found.differences and (found.day, found.check) not in reasons(spark, config):
        found.raise_on_difference()


def checked(spark: SparkSession, config: Config, answer: Answer, day: date, run_id: str, found: Result) -> Report:
    """Check staged answers by the suite of their table; `found`: what the comparison with other engines found."""
    question, table = answer.question, answer.question.table
    rows = answer.rows.transform(_with_facts, question, day)
    subject = question.dataset, day, table.full_name
    return check(spark, config, *subject, rows, run_id, also=[found], sensitive=table.sensitive)


def published(
    spark: SparkSession, config: Config, answer: Answer, day: date, run_id: str, warnings: Sequence[str]
) -> Publication:
    """Publish staged answers that were compared and checked."""
    made = Made(run_id, answer.engine, answer.silver_version, answer.events, answer.files, warnings)
    rows = answer.rows if answer.few is None or config.lake_folder is None else answer.few
    return publish(spark, config, answer.question, day, rows, made)


def _with_facts(rows: DataFrame, question: Question, day: date) -> DataFrame:
    """`answer`, which names a row, sensitive values masked, and `is_owned`: whether its window is the interval's."""
    from pyspark.sql import functions as F

    low, high = question.reach.ends(day)
    end = F.unix_micros("window_end")
    hidden = question.table.sensitive
    keys = (mask(rows, key) if key in hidden else F.col(key).cast("string") for key in question.table.keys)
    named = F.concat_ws(" ", *keys)
    return rows.withColumns({"answer": named, "is_owned": (end >= low) & (end < high)})


def _night(answer: Answer, day: date, run_id: str) -> EngineRun:
    rows, windows = _counted(answer)
    return EngineRun(
        answer.question.name,
        day,
        run_id,
        NIGHT,
        answer.engine,
        FINISHED,
        answer.question.version,
        answer.silver_version,
        strategy=answer.strategy,
        events=answer.events,
        windows=windows,
        rows=rows,
        wall_seconds=answer.wall_seconds,
        cpu_seconds=answer.cpu_seconds,
        events_per_second=answer.events / answer.wall_seconds,
        peak_stored=answer.peak_stored,
        peak_memory=answer.peak_memory,
    )


def _counted(answer: Answer) -> tuple[int, int]:
    """How many rows and windows it has."""
    from pyspark.sql import functions as F

    window = ["window_start", "window_end"]
    if answer.few is not None:
        return answer.few.num_rows, answer.few.group_by(window).aggregate([]).num_rows
    rows, windows = answer.rows.agg(F.count("*"), F.count_distinct(*window)).collect()[0]
    return rows, windows
