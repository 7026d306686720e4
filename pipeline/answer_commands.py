"""The commands over published answers: backfill, compare, diff."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.commands import Add, as_day, day_arguments, lake, lake_arguments, natural, print_lines
from pipeline.errors import TrendsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.config import Config
    from pipeline.questions import Question

ALL = "all"
BACKFILL_EXAMPLES = """\
examples:
  trends backfill down-trends-by-sector --from 2013-10-07 --to 2013-10-08
  trends backfill queries/taxi/*.query --from 2013-01-01 --to 2013-12-31 --parallel 2 --only-missing
  trends backfill all --from 2013-10-01 --to 2013-10-31 --changed --dry-run
"""


def register(add: Add) -> None:
    """Add the commands to the parser."""
    backfill = add(
        "backfill",
        help="answer queries over the tables, for the windows of some days, and publish the answers",
        epilog=BACKFILL_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    backfill.add_argument("queries", nargs="+", metavar="QUERY", help=f"a file, its name, a dataset's name, or {ALL}")
    day_arguments(backfill)
    backfill.add_argument("--engine", default="auto", metavar="NAME", help="see 'trends engines' (default: auto)")
    backfill.add_argument("--parallel", type=int, default=1, metavar="N", help="days at once (default: 1)")
    backfill.add_argument("--only-missing", action="store_true", help="what was never published")
    backfill.add_argument("--changed", action="store_true", help="what was published before its silver rows changed")
    backfill.add_argument("--again", action="store_true", help="though nothing has changed since")
    backfill.add_argument("--dry-run", action="store_true", help="list the intervals, why, and the rows to read")
    backfill.set_defaults(command=_backfill)

    compare = add("compare", help="run several engines over the same windows, and compare their rows and cost")
    compare.add_argument("query", metavar="QUERY", help="a file, or its name")
    compare.add_argument("--interval", type=as_day, required=True, metavar="DAY", help="whose windows are tried")
    compare.add_argument("--engines", metavar="A,B", help="beside the baseline sase (default: all)")
    compare.add_argument("--windows", type=natural, default=6, metavar="N", help="how many are tried (default: 6)")
    compare.add_argument(
        "--budget", type=float, default=2.0, metavar="SECONDS", help="of an engine for a window (default: 2)"
    )
    compare.set_defaults(command=_compare)

    diff = add("diff", help="show the revisions of a window's answers, and the files behind a change")
    diff.add_argument("query", metavar="QUERY", help="a file, or its name")
    diff.add_argument(
        "--window", type=_time, required=True, metavar="TIME", help="when it begins in UTC, as 2013-10-07T14:30:00"
    )
    diff.add_argument("--reveal", action="store_true", help="sensitive values as they are, not masked")
    diff.set_defaults(command=_diff)

    for parser in (backfill, compare, diff):
        lake_arguments(parser)


def _backfill(options: argparse.Namespace) -> int:
    from pipeline.backfill import backfill, to_do
    from pipeline.days import new_run_id
    from pipeline.output import formatted
    from pipeline.publish.gold import prepare

    if options.first is None:
        raise TrendsError("--from is missing\nhint: the first day of the windows to answer: --from 2013-10-07")
    if options.parallel < 1:
        raise TrendsError(f"--parallel {options.parallel}: at least one day is done at a time")
    if options.only_missing and options.changed:
        raise TrendsError(
            "--only-missing and --changed exclude each other\nhint: leave both out for whatever is not up to date"
        )
    last = options.last or options.first
    if last < options.first:
        raise TrendsError(f"--to {last} is before --from {options.first}")
    questions, mistakes = _questions(options.queries)
    with lake(options) as (spark, config):
        questions, without = _with_events(spark, config, questions)
        mistakes += without
        failed = len(mistakes)
        print("".join(f"{mistake}\n" for mistake in mistakes), end="", file=sys.stderr, flush=True)
        if not options.dry_run:
            prepare(spark, config, questions)
        work = to_do(
            spark,
            config,
            questions,
            options.first,
            last,
            engine=options.engine,
            only_missing=options.only_missing,
            changed=options.changed,
            again=options.again,
        )
        if options.dry_run:
            rows = [
                {"query": todo.question.name, "interval": str(todo.day), "rows to read": todo.rows, "why": todo.why}
                for todo in work
            ]
            if rows:
                print_lines(formatted(rows, "table", list(rows[0])))
        days = (last - options.first).days + 1
        total = len(questions) * days
        print(f"intervals: {total:,}, to do: {len(work):,}, up to date: {total - len(work):,}", flush=True)
        if options.dry_run:
            return 2 if failed else 0
        done = backfill(spark, config, work, new_run_id(), engine=options.engine, parallel=options.parallel, say=_say)
        for number, (todo, outcome) in enumerate(done, 1):
            name = f"[{number:,}/{len(work):,}] {todo.question.name} {todo.day}"
            if isinstance(outcome, TrendsError):
                failed += 1
                print(f"{name}: not published\n{outcome}", file=sys.stderr, flush=True)
                continue
            print(f"{name}: {outcome.rows:,} rows, {outcome.changed:,} changed, by {outcome.engine}", flush=True)
            print_lines(f"  warning: {warning}" for warning in outcome.warnings)
    return 2 if failed else 0


def _compare(options: argparse.Namespace) -> int:
    from pipeline.compare import EXPERIMENT, compare
    from pipeline.days import new_run_id
    from pipeline.output import formatted
    from pipeline.publish.engine_runs import record
    from pipeline.publish.gold import prepare
    from pipeline.questions import find

    if not options.budget > 0:
        raise TrendsError(f"--budget {options.budget:g}: an engine needs some time")
    question = find(options.query)
    engines = options.engines.split(",") if options.engines else None
    with lake(options) as (spark, config):
        prepare(spark, config, [question])
        found = compare(
            spark,
            config,
            question,
            options.interval,
            engines,
            run_id=new_run_id(),
            windows=options.windows,
            budget=replace(EXPERIMENT, seconds=options.budget),
        )
        record(spark, config, found.runs)
    rows = [
        {
            "events a window": run.events_a_window,
            "engine": run.engine,
            "status": run.status,
            "log10 of trends": "" if run.log10_trends is None else f"{run.log10_trends:.1f}",
            "events/s": "" if run.events_per_second is None else f"{run.events_per_second:,.0f}",
            "stored": "" if run.peak_stored is None else f"{run.peak_stored:,}",
            "agrees": {True: "yes", False: "NO", None: ""}[run.agrees],
            "why": (run.reason or "").partition("\n")[0],
        }
        for run in found.runs
    ]
    if rows:
        print_lines(formatted(rows, "table", list(rows[0])))
    print(f"windows: {found.total}, compared: {found.compared}, differences: {len(found.differences)}")
    nothing = [] if found.total else [f"no window of {options.interval} has events"]
    print_lines(f"warning: {warning}" for warning in (*found.warnings, *nothing))
    found.raise_on_difference()
    return 0


def _diff(options: argparse.Namespace) -> int:
    from pipeline.publish.diff import differences
    from pipeline.quality.mask import masked
    from pipeline.questions import find

    question = find(options.query)
    hidden = () if options.reveal else question.table.sensitive

    def shown(values: Mapping[str, object]) -> list[str]:
        return [f"{name} {masked(name, value) if name in hidden else value}" for name, value in values.items()]

    with lake(options) as (spark, config):
        found = differences(spark, config, question, options.window)
    for difference in found:
        window = f"{difference.window_start:%Y-%m-%d %H:%M:%S} to {difference.window_end:%Y-%m-%d %H:%M:%S}"
        print(f"window {', '.join([window, *shown(difference.group)])}")
        for one in difference.revisions:
            values = ", ".join(shown(one.values or {}))
            print(
                f"  revision {one.revision}: {values or ('gone' if one.revision else 'no answer')}  "
                f"({one.at:%Y-%m-%d %H:%M}, run {one.run_id}, silver version {one.silver_version})"
            )
            if one.files is None:
                print("    which files changed is no longer kept")
            print_lines(
                f"    {file.file}: {file.added:,} events added, {file.removed:,} removed" for file in one.files or ()
            )
    if not found:
        print(f"no answer of this window was ever revised; see trends show {question.table.full_name}")
    return 0


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, such as 2013-10-07T14:30:00") from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _questions(names: Sequence[str]) -> tuple[list[Question], list[str]]:
    """The questions of some names, and what is wrong with those that are none."""
    from pipeline.datasets import DATASETS
    from pipeline.questions import find, query_files

    found: dict[str, Question] = {}
    mistakes = []
    for name in names:
        several = [str(file) for file in query_files(datasets=DATASETS if name == ALL else [name])]
        for one in several if name == ALL or name in DATASETS else [name]:
            try:
                question = find(one)
            except TrendsError as error:
                if one == name:
                    raise
                mistakes.append(str(error))
                continue
            other = found.setdefault(question.name, question).query.file
            if Path(other).resolve() != Path(question.query.file).resolve():
                mistakes.append(
                    f"{question.query.file}: the answers of {other} go to {question.table.full_name} already\n"
                    "hint: rename one of the files"
                )
    return list(found.values()), mistakes


def _with_events(
    spark: SparkSession, config: Config, questions: Sequence[Question]
) -> tuple[list[Question], list[str]]:
    """Those whose datasets have tables, and what is said of the others."""
    from pipeline import delta
    from pipeline.tables import silver

    tables = {question.dataset.name: silver(question.dataset) for question in questions}
    there = {name: delta.exists(spark, config, table) for name, table in tables.items()}
    return (
        [question for question in questions if there[question.dataset.name]],
        [
            f"{question.name}: {delta.missing(tables[question.dataset.name], config)}"
            for question in questions
            if not there[question.dataset.name]
        ],
    )


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
