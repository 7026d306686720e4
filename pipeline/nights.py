"""What the tasks of the nightly DAGs do: each is one call here, safe to repeat, and ends the night's work of one step.

`trends ingest` and `trends backfill` do the same steps in one go.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import answers, arrow_tables, days, ready
from pipeline.aggregate.snapshot import look
from pipeline.compare import Comparison
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset
from pipeline.engines.choice import AUTO, choose
from pipeline.errors import TrendsError, nearest
from pipeline.ingest.landing import file_sizes
from pipeline.publish.gold import prepare
from pipeline.publish.publications import Publication
from pipeline.quality import results
from pipeline.quality.report import Report, Result
from pipeline.questions import SUFFIX, Question, find_own, query_files
from pipeline.spark import first_line, session
from pipeline.staging import CHECKED, COMPARED, SHARED, Staging
from pipeline.tables import OPS_QUALITY, silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = 5  # landing files that a task's log names


@contextmanager
def opened(config: Config) -> Iterator[SparkSession]:
    """A session at the Connect server for one step; otherwise that of the process, which ends with it."""
    sys.set_int_max_str_digits(0)  # counts have any number of digits
    spark = session(config)
    try:
        yield spark
    finally:
        if config.remote:
            spark.stop()


def say(message: str) -> None:
    """Into the task's log."""
    print(message, flush=True)


# -------------------------------------------------------------------------------------------------------- a landing day


def check_landing(config: Config, dataset: Dataset, day: date, run_id: str) -> None:
    """Fail where files are expected and none is there, nor was ever; `ops.intervals` says so then."""
    files = file_sizes(config, dataset, day)
    for path, size in [*files.items()][:SHOWN]:
        say(f"{config.landing}/{path}: {size:,} bytes")
    if len(files) > SHOWN:
        say(f"… and {len(files) - SHOWN} more files; {sum(files.values()):,} bytes in all")
    if files:
        return
    if not dataset.expects(day):
        say(f"{dataset.name} {day}: no files are expected ({dataset.calendar.about} from {dataset.first_day} on)")
        return
    with opened(config) as spark:
        days.prepare(spark, config, dataset)
        days.ingest_day(spark, config, dataset, day, run_id, say=say)


def to_bronze(config: Config, dataset: Dataset, day: date, run_id: str, *, reprocess: bool = False) -> list[str]:
    """Bring the day's files into bronze; what a person should look at."""
    with opened(config) as spark:
        days.prepare(spark, config, dataset)
        return days.ingest_day(spark, config, dataset, day, run_id, reprocess=reprocess, say=say)


def to_silver(
    config: Config, dataset: Dataset, day: date, run_id: str, warnings: Sequence[str], *, reprocess: bool = False
) -> dict[str, Any]:
    """Bring the day from bronze into silver; what became of its rows."""
    with opened(config) as spark:
        done = days.refine_day(spark, config, dataset, day, run_id, warnings, reprocess=reprocess, say=say)
    counts = ("status", "source_rows", "events", "quarantined", "duplicates", "late", "silver_version")
    return {name: getattr(done, name) for name in counts}


def quality(config: Config, dataset: Dataset, day: date) -> dict[str, int]:
    """Say what the latest checks of the day's bronze and silver found; how many results there are of each state."""
    names = [field.name for field in fields(Result)]
    tables = (f"bronze.{dataset.name}", f"silver.{dataset.name}")
    rows = arrow_tables.rows(config, OPS_QUALITY, names, dataset=dataset.name)
    of_day = [row for row in rows if row["landing_date"] == day and row["table_name"] in tables]
    found = results.latest(Result(**row | {"examples": tuple(row["examples"] or ())}) for row in of_day)
    report = Report(tuple(sorted(found, key=lambda one: (one.table_name, one.expectation))))
    states = {state: report.of(state) for state in ("failed", "warned", "waived", "passed")}
    say(f"{dataset.name} {day}: " + ", ".join(f"{len(ones)} {state}" for state, ones in states.items()))
    for state in ("failed", "warned", "waived"):
        for one in states[state]:
            say(f"  {one}" + (f" ({one.waived_reason})" if one.waived_reason else ""))
            for example in one.examples:
                say(f"    {example}")
    return {state: len(ones) for state, ones in states.items()}


# ------------------------------------------------------------------------------------------------------------ questions


def query_names(config: Config, dataset: Dataset, wanted: Sequence[str] | None = None) -> list[str]:
    """The names of a dataset's query files, below its folder, as they are now; or some of them."""
    root = Path(config.queries) / dataset.name
    there = [str(file.relative_to(root).with_suffix("")) for file in query_files(root.parent, [dataset.name])]
    if wanted is None:
        return there
    chosen = []
    for name in wanted:
        plain = name.removesuffix(SUFFIX).removeprefix(f"{dataset.name}/")
        same = [one for one in there if plain in (one, Path(one).name)]
        if len(same) != 1:
            close = nearest(plain, there)
            hint = f"say which: {', '.join(same)}" if same else f"did you mean {close}?" if close else f"see {root}"
            raise TrendsError(f"{dataset.name} has no query {name!r}\nhint: {hint}")
        chosen += same
    return chosen


def question(config: Config, dataset: Dataset, name: str) -> Question:
    """The question of a query file's name below the dataset's folder."""
    folder = Path(config.queries)
    return find_own(folder / dataset.name / f"{name}{SUFFIX}", folder)


def needed_days(config: Config, dataset: Dataset, day: date, names: Sequence[str]) -> list[date]:
    """The landing days that can hold events of these queries' windows of an interval."""
    return ready.needed_days(dataset, _good(config, dataset, names), day)


def share(
    config: Config, dataset: Dataset, day: date, run_id: str, names: Sequence[str], *, engine: str = AUTO
) -> list[str]:
    """Answer all queries in one job, for each to take its part; those are left out that would keep the others back."""
    asked = _good(config, dataset, names)
    done: list[str] = []
    with opened(config) as spark:
        good = []
        for one in asked:
            try:
                choose(one.query, engine)
                prepare(spark, config, [one])
                good.append(one)
            except TrendsError as error:
                say(f"{one.name} is left to itself: {error}")
        if good:
            say(f"{dataset.name} {day}: answers {len(good)} queries in one job")
            try:
                Staging(config, run_id, day).stage(spark, good, engine=engine, step=SHARED)
                done = [one.name for one in good]
            except Exception as error:  # one of them is too much for the job: each is tried by itself
                say(f"all are left to themselves: {first_line(error)}")
    say(f"{dataset.name} {day}: {len(done)} of {len(names)} queries answered in one job")
    return done


def aggregate(config: Config, dataset: Dataset, day: date, run_id: str, name: str, *, engine: str = AUTO) -> str:
    """Stage a query's answers, those of the shared job where it has some; the name of its gold table."""
    one = question(config, dataset, name)
    staging, chosen = Staging(config, run_id, day), choose(one.query, engine).name
    if staging.take(one, chosen):
        say(f"{one.name} {day}: answered by {chosen} with the others")
        return one.name
    with opened(config) as spark:
        held, _ = look(spark, config, silver(dataset))
        if staging.is_up_to_date(one, held.version, chosen):
            say(f"{one.name} {day}: answered on version {held.version} of silver already")
            return one.name
        prepare(spark, config, [one])
        staging.stage(spark, [one], engine=engine)
        answer = staging.answer(spark, one)
        say(f"{one.name} {day}: {answer.strategy}, {answer.events:,} events, {answer.wall_seconds:.1f} s")
    return one.name


def agree(config: Config, dataset: Dataset, day: date, run_id: str, name: str) -> str:
    """Compare some windows of a query's staged answers with other engines."""
    one, staging = question(config, dataset, name), Staging(config, run_id, day)
    with opened(config) as spark:
        about, answer = staging.about(one), staging.answer(spark, one)
        found = answers.agreed(spark, config, answer, day, run_id)
        result = found.result(run_id)
        staging.write(one, COMPARED, {"about": about, "result": asdict(result)})
        if found.differences:
            _keep(spark, config, result)
        told = _told(found)
        say(told)
        answers.raise_on_difference(spark, config, found)
    return told


def check(config: Config, dataset: Dataset, day: date, run_id: str, name: str) -> list[str]:
    """Check a query's staged answers; what a person should look at."""
    one, staging = question(config, dataset, name), Staging(config, run_id, day)
    with opened(config) as spark:
        about, answer = staging.about(one), staging.answer(spark, one)
        compared = _result(staging.noted(one, COMPARED)["result"])
        report = answers.checked(spark, config, answer, day, run_id, compared)
    say(f"{one.name} {day}: {len(report.of('passed'))} of {len(report.results)} checks passed")
    report.raise_on_critical()
    staging.write(one, CHECKED, {"about": about, "warnings": report.warnings})
    return report.warnings


def publish(config: Config, dataset: Dataset, day: date, run_id: str, name: str) -> dict[str, Any]:
    """Publish a query's staged answers, which were compared and checked."""
    one, staging = question(config, dataset, name), Staging(config, run_id, day)
    with opened(config) as spark:
        answer, warnings = staging.answer(spark, one), staging.noted(one, CHECKED)["warnings"]
        done = answers.published(spark, config, answer, day, run_id, warnings)
    say(published_line(done))
    return {"query": done.query, "name": name, "rows": done.rows, "changed": done.changed, "engine": done.engine}


def report(
    config: Config,
    dataset: Dataset,
    day: date,
    run_id: str,
    names: Sequence[str] | None,
    done: Sequence[dict[str, Any] | None] | None,
) -> list[str]:
    """End the night: build the report, then fail where a query was not published; those that were."""
    build_report(config)
    published = [one["name"] for one in done or () if one is not None]
    if names is None:
        raise TrendsError(f"{dataset.name} {day}: nothing was answered\nhint: see the task before that failed")
    say(f"{dataset.name} {day}: {len(published)} of {len(names)} queries published")
    failed = [name for name in names if name not in published]
    if failed:
        raise TrendsError(
            f"{dataset.name} {day}: not published: {', '.join(failed)}\n"
            "hint: see the tasks of these queries; mend what they say, then clear them"
        )
    return published


def build_report(config: Config) -> None:
    """Write the report site from what the tables say now."""
    from pipeline.report.build import build

    built = build(config, Path(config.site), Path(config.queries))
    say(f"report of {built.queries} queries in {built.folder}")


def published_line(done: Publication) -> str:
    """A publication in a line."""
    return f"{done.query} {done.interval_date}: {done.rows:,} rows, {done.changed:,} changed, by {done.engine}"


# -------------------------------------------------------------------------------------------------------------- helpers


def dataset_named(name: str) -> Dataset:
    """The dataset of this name."""
    return DATASETS[name]


def _good(config: Config, dataset: Dataset, names: Sequence[str]) -> list[Question]:
    """The questions of these files but those with a mistake, which their own tasks show."""
    found = []
    for name in names:
        try:
            found.append(question(config, dataset, name))
        except TrendsError:
            continue
    return found


def _told(found: Comparison) -> str:
    engines = ", ".join(f"{run.engine} {run.status}" for run in found.runs)
    return f"{found.question.name} {found.day}: {found.compared} of {found.total} windows compared: {engines}"


def _keep(spark: SparkSession, config: Config, result: Result) -> None:
    """Keep the result of a comparison after which nothing else is checked."""
    past = results.stored(spark, config, result.dataset, result.landing_date, result.landing_date)
    same = ("table_name", "run_id")
    again = any(all(getattr(old, name) == getattr(result, name) for name in same) for old in past)
    results.write(spark, config, [result], again=again)


def _result(note: dict[str, Any]) -> Result:
    """A result as a note keeps it."""
    return Result(
        **note
        | {
            "landing_date": date.fromisoformat(note["landing_date"]),
            "checked_at": datetime.fromisoformat(note["checked_at"]).astimezone(UTC),
            "examples": tuple(note["examples"]),
        }
    )
