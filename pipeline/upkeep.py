"""What is done beside the nights: stale windows revised, engines compared, tables compacted, old staging removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import arrow_tables, delta, nights, staging
from pipeline.backfill import backfill, to_do
from pipeline.compare import COMPARED, compare
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset
from pipeline.errors import TrendsError
from pipeline.publish.engine_runs import record
from pipeline.publish.gold import prepare
from pipeline.questions import Question, lake_tables, table_name
from pipeline.spark import first_line
from pipeline.tables import OPS_PUBLICATIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.tables import Table


def revise(
    config: Config,
    dataset: Dataset,
    run_id: str,
    wanted: Sequence[str] | None = None,
    first: str | None = None,
    last: str | None = None,
) -> list[str]:
    """Answer again what was published before its events changed, as `trends backfill --changed`; a line each."""
    published = _published(config)
    names = nights.query_names(config, dataset, wanted and _of(config, dataset, wanted))
    asked, mistakes = _asked(config, dataset, names)
    days = [day for one in asked for day in published.get(one.name, ())]
    if not days:
        nights.say(f"{dataset.name}: nothing is published")
        return _raised(mistakes)
    done, failed = [], mistakes
    with nights.opened(config) as spark:
        prepare(spark, config, asked)
        low = date.fromisoformat(first) if first else min(days)
        high = date.fromisoformat(last) if last else max(days)
        work = to_do(spark, config, asked, low, high, changed=True)
        nights.say(f"{dataset.name}: {len(work)} stale intervals")
        for todo in work:
            nights.say(f"  {todo.question.name} {todo.day}: {todo.why}")
        for todo, outcome in backfill(spark, config, work, run_id, say=nights.say):
            if isinstance(outcome, TrendsError):
                failed.append(f"{todo.question.name} {todo.day}: {outcome}")
            else:
                done.append(nights.published_line(outcome))
                nights.say(done[-1])
    _raised(failed)
    return done


def comparable(config: Config, wanted: Sequence[str] | None = None, day: date | None = None) -> list[list[str]]:
    """The queries to compare engines on: dataset, name, and the interval, by default the latest that is published."""
    published = _published(config)
    found = []
    for dataset in DATASETS.values():
        for name in nights.query_names(config, dataset, wanted and _of(config, dataset, wanted)):
            at = day or max(published.get(table_name(name), ()), default=None)
            if at is not None:
                found.append([dataset.name, name, str(at)])
    if wanted and not found:
        raise TrendsError(f"nothing is published of {', '.join(wanted)}\nhint: give an interval, or publish them first")
    return found


def compare_engines(
    config: Config, run_id: str, one: Sequence[str], engines: Sequence[str] | None = None, windows: int = COMPARED
) -> str:
    """Run the engines over the same windows of a query's interval, and record what they took."""
    dataset, name, day = DATASETS[one[0]], one[1], date.fromisoformat(one[2])
    asked = nights.question(config, dataset, name)
    with nights.opened(config) as spark:
        prepare(spark, config, [asked])
        found = compare(spark, config, asked, day, engines, run_id=run_id, windows=windows)
        record(spark, config, found.runs)
    for run in found.runs:
        rate = f", {run.events_per_second:,.0f} events/s" if run.events_per_second else ""
        nights.say(f"{run.events_a_window:>9,} events a window  {run.engine:6}  {run.status}{rate}")
    found.raise_on_difference()
    return f"{asked.name} {day}: {found.compared} of {found.total} windows compared"


def maintain(config: Config) -> list[str]:
    """Compact all tables, remove files that no kept version needs, and old staging; what was done."""
    done: list[str] = []
    failed: list[str] = []
    with nights.opened(config) as spark:
        for line, error in maintained(spark, config, Path(config.queries)):
            nights.say(line)
            (failed if error else done).append(line)
    gone = staging.remove_old(config)
    done.append(f"staging: {len(gone)} runs removed")
    nights.say(done[-1])
    _raised(failed)
    return done


def maintained(spark: SparkSession, config: Config, folder: Path) -> Iterable[tuple[str, bool]]:
    """Each table compacted and vacuumed: what was done, and whether it failed."""
    for table, _ in lake_tables(folder):
        if not delta.exists(spark, config, table):
            continue
        try:
            yield _maintained(spark, config, table), False
        except Exception as error:  # py4j's and gRPC's have no base of their own; the other tables are still done
            yield f"{table.full_name}: {first_line(error)}", True


def _maintained(spark: SparkSession, config: Config, table: Table) -> str:
    said = ""
    # Silver's files are ranges of time, in order: joining them would lose that.
    if table.layer != "silver":
        removed, added = delta.optimise(spark, config, table)
        said = f"{removed} files became {added}; "
    delta.vacuum(spark, config, table)
    return f"{table.full_name}: {said}files older than {table.kept_days} days that no version needs are gone"


def _published(config: Config) -> dict[str, list[date]]:
    """The published intervals, by query."""
    found: dict[str, list[date]] = {}
    for row in arrow_tables.rows(config, OPS_PUBLICATIONS, ("query", "interval_date")):
        found.setdefault(row["query"], []).append(row["interval_date"])
    return found


def _asked(config: Config, dataset: Dataset, names: Iterable[str]) -> tuple[list[Question], list[str]]:
    """The questions of these names, and what is wrong with those that are none."""
    found, mistakes = [], []
    for name in names:
        try:
            found.append(nights.question(config, dataset, name))
        except TrendsError as error:
            mistakes.append(str(error))
    return found, mistakes


def _of(config: Config, dataset: Dataset, wanted: Sequence[str]) -> list[str]:
    """Those of some names that are this dataset's."""
    there = nights.query_names(config, dataset)
    return [name for name in wanted if name in there or any(name == one.rpartition("/")[2] for one in there)]


def _raised(failed: list[str]) -> list[str]:
    if failed:
        raise TrendsError("\n".join([*failed, "hint: mend what is said, and clear the task"]))
    return []
