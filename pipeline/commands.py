"""The commands over the lake: generate, ingest, tables, show, quality, maintain, doctor."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import TrendsError, nearest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.config import Config
    from pipeline.datasets.declaration import Dataset
    from pipeline.intervals import Interval
    from pipeline.tables import Table

ALL = "all"
GENERATED_ROWS = 20_000
SHOWN_ROWS = 20
INGEST_EXAMPLES = """\
examples:
  trends ingest stock --from 2013-10-07 --to 2013-10-08
  trends ingest taxi                                     every day that has a landing folder
  trends ingest stock --from 2013-10-07 --reprocess      from bronze again, after a parser was mended
"""
SPARK_HINT = "hint: run it again; TRENDS_SPARK_CONF='spark.log.level=WARN' shows what Spark has to say"

# Adds a command, with what it does in a line.
Add = Callable[..., argparse.ArgumentParser]


def register(add: Add) -> None:
    """Add the commands to the parser."""
    generate = add("generate", help="write generated files in the raw formats into the landing folder")
    _dataset_argument(generate)
    day_arguments(generate)
    generate.add_argument("--rows", type=int, default=GENERATED_ROWS, metavar="N", help=f"a day; {GENERATED_ROWS:,}")
    generate.add_argument("--seed", type=int, default=1, metavar="N", help="another seed, other files (default: 1)")
    generate.add_argument("--bad", type=float, metavar="SHARE", help="of the rows (default: 0.001)")
    generate.set_defaults(command=_generate)

    ingest = add(
        "ingest",
        help="bring landing days into bronze and silver",
        epilog=INGEST_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _dataset_argument(ingest)
    day_arguments(ingest)
    ingest.add_argument("--reprocess", action="store_true", help="refine again what bronze has, though it is complete")
    ingest.set_defaults(command=_ingest)

    tables = add("tables", help="list the lake's tables: rows, versions, freshness")
    tables.set_defaults(command=_tables)

    show = add("show", help="show rows of a table")
    show.add_argument("table", metavar="TABLE", help="such as silver.stock")
    show.add_argument("--date", type=as_day, metavar="DAY", help="of this landing day or interval alone")
    show.add_argument("--rows", type=natural, default=SHOWN_ROWS, metavar="N", help=f"at most (default: {SHOWN_ROWS})")
    show.add_argument("--version", type=int, metavar="N", help="as it was in this version")
    show.add_argument("--reveal", action="store_true", help="sensitive columns as they are, not masked")
    show.add_argument("--format", default="table", choices=("table", "jsonl", "csv"), help="default: table")
    show.set_defaults(command=_show)

    quality = add("quality", help="list what the data checks found, or waive a failure")
    quality.set_defaults(command=_quality)
    quality.add_argument("--dataset", default=ALL, metavar="NAME", help=f"of this dataset alone (default: {ALL})")
    day_arguments(quality)
    quality.add_argument("--every", action="store_true", help="checks that passed too")
    actions = quality.add_subparsers(metavar="waive")
    waive = actions.add_parser("waive", help="let a known failure of one day through")
    waive.add_argument("check", metavar="CHECK", help="such as silver.stock.price_positive")
    waive.add_argument("--date", type=as_day, required=True, metavar="DAY", help="the landing day")
    waive.add_argument("--reason", required=True, help="why it may fail; it is shown with the result")
    waive.set_defaults(command=_waive)

    maintain = add("maintain", help="compact the tables and remove files that no kept version needs")
    maintain.set_defaults(command=_maintain)

    doctor = add("doctor", help="look for what is missing or wrong on this machine, and how to mend it")
    doctor.set_defaults(command=_doctor)

    for parser in (generate, ingest, tables, show, quality, waive, maintain, doctor):
        lake_arguments(parser)


def lake_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the tables and the raw files are."""
    parser.add_argument("--lake", metavar="PATH", help="the tables (default: TRENDS_LAKE, or lake)")
    parser.add_argument("--landing", metavar="PATH", help="the raw files (default: TRENDS_LANDING, or landing)")


def _dataset_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", metavar="DATASET", help=f"stock, taxi, activity, or {ALL}")


def day_arguments(parser: argparse.ArgumentParser) -> None:
    """The first and the last day."""
    parser.add_argument("--from", dest="first", type=as_day, metavar="DAY", help="the first landing day, as 2013-10-07")
    parser.add_argument("--to", dest="last", type=as_day, metavar="DAY", help="the last one (default: the first)")


def natural(text: str) -> int:
    """A number of things that a user wrote."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def as_day(text: str) -> date:
    """A day that a user wrote."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day, such as 2013-10-07") from None


# ------------------------------------------------------------------------------------------------------------ commands


def _generate(options: argparse.Namespace) -> int:
    from pipeline.sources.generator import generate
    from pipeline.sources.generator.files import Shares

    config = lake_config(options)
    if "://" in config.landing:
        raise TrendsError(f"files are generated into a folder of this machine, not {config.landing}\nhint: --landing")
    if options.rows < 1:
        raise TrendsError(f"--rows {options.rows}: at least one row is needed")
    try:
        shares = Shares() if options.bad is None else Shares(bad=options.bad)
    except ValueError as error:
        raise TrendsError(f"--bad: {error}") from None
    days = _range(options.first or date.today() - timedelta(days=1), options.last)
    for dataset in _datasets(options.dataset):
        made = generate(dataset, Path(config.landing), days, options.rows, seed=options.seed, shares=shares)
        bad = sum(made.bad.values())
        print(
            f"{dataset.name}: {len(made.files)} files with {made.rows:,} rows, {bad:,} of them bad, "
            f"{made.duplicates:,} duplicates, {made.late:,} late, in {config.landing}/{dataset.name}"
        )
    return 0


def _ingest(options: argparse.Namespace) -> int:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pipeline.days import new_run_id, prepare, process_day
    from pipeline.ingest.landing import landing_days
    from pipeline.intervals import is_between
    from pipeline.quality.check import pages
    from pipeline.spark import first_line

    run_id, failed = new_run_id(), 0
    with lake(options) as (spark, config):
        for dataset in _datasets(options.dataset):
            days = _range(options.first, options.last) if options.first else landing_days(config, dataset)
            days = [day for day in days if is_between(day, options.first, options.last)]
            if not days:
                failed += 1
                hint = "trends generate, or --landing"
                print(f"{config.landing}/{dataset.name} has no day with files\nhint: {hint}", file=sys.stderr)
                continue
            prepare(spark, config, dataset)
            for day in days:
                say = sayer(f"{dataset.name} {day}")
                try:
                    interval = process_day(spark, config, dataset, day, run_id, reprocess=options.reprocess, say=say)
                except TrendsError as error:
                    failed += 1
                    print(error, file=sys.stderr)
                except (PySparkException, Py4JError) as error:
                    failed += 1
                    print(f"{dataset.name} {day}: {first_line(error)}\n{SPARK_HINT}", file=sys.stderr)
                else:
                    print_lines(_told(interval))
    print(f"checks: {pages(config) / 'index.html'}; tables: {config.lake}")
    return 2 if failed else 0


def _tables(options: argparse.Namespace) -> int:
    from pipeline import delta
    from pipeline.output import formatted
    from pipeline.questions import lake_tables

    rows = []
    with _log_of_lake(options) as (spark, config):
        for table, _ in lake_tables():
            if delta.exists(spark, config, table):
                state = delta.state(spark, config, table)
                newest = _newest(spark, config, table)
                rows.append(
                    {
                        "table": table.full_name,
                        "rows": state.rows,
                        "files": state.files,
                        "MB": round(state.size / 1e6, 1),
                        "version": state.version,
                        "changed": f"{state.changed_at:%Y-%m-%d %H:%M}",
                        "newest day": str(newest or ""),
                        "about": table.about,
                    }
                )
    if not rows:
        print(f"no tables in {config.lake} yet\nhint: trends generate {ALL}, then trends ingest {ALL}")
        return 0
    print_lines(formatted(rows, "table", list(rows[0])))
    return 0


def _show(options: argparse.Namespace) -> int:
    from pipeline import delta
    from pipeline.output import formatted
    from pipeline.quality.mask import with_masks
    from pipeline.questions import lake_tables
    from pipeline.tables import named

    known = lake_tables()
    table = named(options.table, [table for table, _ in known])
    dataset = next(dataset for other, dataset in known if other is table)
    with lake(options) as (spark, config):
        frame = delta.read(spark, config, table, options.version)
        if options.date is not None:
            frame = frame.where(delta.predicate({_day_column(table): options.date}))
        if not options.reveal and dataset is not None:
            frame = frame.transform(with_masks, dataset, *table.sensitive)
        rows = [
            {name: _plain(value) for name, value in row.asDict(recursive=True).items()}
            for row in frame.limit(options.rows).collect()
        ]
        print_lines(formatted(rows, options.format, frame.columns))
    return 0


def _quality(options: argparse.Namespace) -> int:
    from pipeline.output import formatted
    from pipeline.quality.check import pages
    from pipeline.quality.results import results

    names = {dataset.name for dataset in _datasets(options.dataset)}
    with _log_of_lake(options) as (spark, config):
        every = results(spark, config, None, options.first, options.last or options.first)
    found = [result for result in every if result.dataset in names]
    shown = [result for result in found if options.every or not result.success]
    rows = [
        {
            "day": str(result.landing_date),
            "check": result.expectation,
            "result": result.state,
            "rows": result.unexpected,
            "observed": result.observed or "",
            "note": result.waived_reason or next(iter(result.examples), ""),
        }
        for result in shown
    ]
    if rows:
        print_lines(formatted(rows, "table", list(rows[0])))
    passed = sum(result.success for result in found)
    print(f"checks: {len(found)}, passed: {passed}; pages: {pages(config) / 'index.html'}")
    return 0


def _waive(options: argparse.Namespace) -> int:
    from pipeline.quality.waivers import waive

    with lake(options) as (spark, config):
        datasets = waive(spark, config, options.check, options.date, options.reason)
    layer, name = options.check.split(".")[:2]
    for dataset in datasets:
        again = f"backfill {name}" if layer == "gold" else f"ingest {dataset}"
        print(f"waived; run the day again: trends {again} --from {options.date}")
    return 0


def _maintain(options: argparse.Namespace) -> int:
    from pipeline import staging
    from pipeline.questions import FOLDER
    from pipeline.upkeep import maintained

    failed = 0
    with lake(options) as (spark, config):
        for line, is_error in maintained(spark, config, FOLDER):
            failed += is_error
            print(line, file=sys.stderr, flush=True)
        print(f"staging: {len(staging.remove_old(config))} runs removed", file=sys.stderr)
    return 2 if failed else 0


def _doctor(options: argparse.Namespace) -> int:
    from pipeline.doctor import checks

    findings = checks(lake_config(options))
    print_lines(map(str, findings))
    errors = sum(finding.level == "error" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    print(f"looked at: {len(findings)}, errors: {errors}, warnings: {warnings}")
    return 2 if errors else 0


# ------------------------------------------------------------------------------------------------------------- helpers


def lake_config(options: argparse.Namespace) -> Config:
    from pipeline.config import Config

    config = Config.from_environment()
    return replace(config, lake=options.lake or config.lake, landing=options.landing or config.landing)


@contextmanager
def lake(options: argparse.Namespace) -> Iterator[tuple[SparkSession, Config]]:
    """A Spark session that ends with the command; what goes wrong in it is a message."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pipeline.spark import first_line, session

    config = lake_config(options)
    spark = session(config)
    try:
        yield spark, config
    except (PySparkException, Py4JError) as error:
        raise TrendsError(f"{first_line(error)}\n{SPARK_HINT}") from error
    finally:
        spark.stop()


def _log_of_lake(options: argparse.Namespace) -> AbstractContextManager[tuple[Any, Config]]:
    """The same for what a folder's tables tell without Spark."""
    config = lake_config(options)
    return lake(options) if config.lake_folder is None else nullcontext((None, config))


def _datasets(name: str) -> list[Dataset]:
    from pipeline.datasets import DATASETS

    if name == ALL:
        return list(DATASETS.values())
    if name not in DATASETS:
        close = nearest(name, (*DATASETS, ALL))
        hint = f"did you mean {close}?" if close else f"the datasets are {', '.join(DATASETS)}"
        raise TrendsError(f"there is no dataset {name!r}\nhint: {hint}")
    return [DATASETS[name]]


def _range(first: date, last: date | None) -> list[date]:
    last = last or first
    if last < first:
        raise TrendsError(f"--to {last} is before --from {first}")
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def sayer(subject: str) -> Callable[[str], None]:
    """Says what is going on, on standard error."""
    return lambda message: print(f"{subject} {message}", file=sys.stderr, flush=True)


def _told(interval: Interval) -> Iterator[str]:
    yield (
        f"{interval.dataset} {interval.landing_date}: {interval.status}: {interval.source_rows:,} rows gave "
        f"{interval.events:,} events; {interval.quarantined:,} rows quarantined, {interval.duplicates:,} duplicates, "
        f"{interval.late:,} late events"
    )
    for reason, count in sorted(interval.reasons.items(), key=lambda item: -item[1]):
        yield f"  quarantined: {reason}: {count:,}"
    yield from (f"  warning: {warning}" for warning in interval.warnings)


def _newest(spark: SparkSession, config: Config, table: Table) -> date | None:
    if not {"landing_date", "interval_date"} & {column.name for column in table.columns}:
        return None
    day = _day_column(table)
    if config.lake_folder is not None:
        from pipeline.arrow_tables import open_table

        stored = open_table(config, table.full_name)
        if day in table.partition:  # which the log knows
            return max((file.partition[day] for file in stored.files), default=None)
        return max((row[day] for row in stored.rows(names=[day])), default=None)
    from pyspark.sql import functions as F

    from pipeline import delta

    newest: date | None = delta.read(spark, config, table).agg(F.max(day)).collect()[0][0]
    return newest


def _day_column(table: Table) -> str:
    """The column that says which landing day or interval a row is of."""
    return "interval_date" if any(column.name == "interval_date" for column in table.columns) else "landing_date"


def _plain(value: object) -> object:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, at once."""
    for line in lines:
        print(line)
    sys.stdout.flush()
