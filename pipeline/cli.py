"""The command `trends`: queries over files of events are here, what works on the lake is in commands.py."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import answer_commands, commands, report_command
from pipeline.commands import as_day, lake_arguments, lake_config, natural, print_lines
from pipeline.errors import QueryError, TrendsError, locate
from pipeline.services import commands as services

if TYPE_CHECKING:
    from pipeline.engines.contract import Cost, Engine
    from pipeline.query.checked import Query

# Heavy imports are inside the commands, so that --help and mistakes answer at once.

DEFAULT_TIMEOUT = 600.0
RUN_EXAMPLES = """\
examples:
  trends run queries/example/skip-till-any-match.query --events queries/example/sample.csv
  trends run queries/stock/down-trends-by-sector.query --events ticks.parquet --types company,sector --format jsonl
  trends run 'RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 1 hour SLIDE 1 hour' --events events.jsonl
  trends run shoplifting.query --events readings.csv --matches

exit codes: 0 done, 2 the query or the input is wrong, 3 the engine cannot run the query, 4 did not finish
"""


class WithoutPandas:
    """Hides pandas: pyarrow imports it, which takes longer than most runs, to see whether a value is a frame."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """No module's place, and an error for pandas, which pyarrow takes as its absence."""
        if name == "pandas":
            raise ImportError("hidden: no frames are used here")


def program() -> int:
    """The command in a process of its own; returns its exit code."""
    if sys.argv[1:2] == ["run"]:
        sys.meta_path.insert(0, WithoutPandas)
    return main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    sys.set_int_max_str_digits(0)  # counts have any number of digits
    try:
        return int(options.command(options))
    except TrendsError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except MemoryError:
        print("did not finish: out of memory\nhint: fewer events, or a shorter WITHIN", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (head, less) has seen enough; nothing more may be written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trends", description="Exact aggregates over all event trends.")
    parsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    run = parsers.add_parser(
        "run",
        help="run one query over one file of events",
        description="Run one query over one file of events, in this process.",
        epilog=RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _query_argument(run)
    run.add_argument("--events", required=True, metavar="FILE", help="CSV, JSONL or Parquet with a column time")
    run.add_argument("--types", metavar="A,B", help="the columns that hold the events' types (default: type)")
    run.add_argument("--engine", default="auto", metavar="NAME", help="see 'trends engines' (default: auto)")
    run.add_argument("--format", default="table", choices=("table", "jsonl", "csv"), help="default: table")
    run.add_argument("--matches", action="store_true", help="give the trends themselves, one row each")
    run.add_argument("--bad-rows", default="fail", choices=("fail", "skip"), help="skip: set them aside and count them")
    run.add_argument(
        "--timeout", type=_seconds, default=DEFAULT_TIMEOUT, metavar="SECONDS", help="default: 600; 0 for no end"
    )
    run.add_argument("--max-trends", type=natural, metavar="N", help="give up once more trends were built")
    run.add_argument(
        "--max-bits", type=natural, default=65_536, metavar="N", help="longer integers are rounded (default: 65536)"
    )
    run.add_argument(
        "--without",
        default="",
        metavar="A,B",
        help="turn off sase's optimisations: stacks, partitions, window, predicates",
    )
    run.add_argument("--cost", action="store_true", help="say on standard error what the run took")
    run.set_defaults(command=_run)

    explain = parsers.add_parser("explain", help="show a query's plan, and why", description="Show a query's plan.")
    _query_argument(explain)
    explain.add_argument("--format", default="text", choices=("text", "json", "dot", "mermaid"), help="default: text")
    explain.add_argument("--interval", type=as_day, metavar="DAY", help="how a job over the tables would answer it")
    lake_arguments(explain)
    explain.set_defaults(command=_explain)

    check = parsers.add_parser("check", help="find mistakes in queries", description="Find mistakes in queries.")
    check.add_argument("paths", nargs="*", metavar="PATH", help="files, or folders of *.query (default: queries)")
    check.set_defaults(command=_check)

    engines = parsers.add_parser("engines", help="list the engines and what each can run")
    engines.set_defaults(command=_engines)
    commands.register(parsers.add_parser)
    answer_commands.register(parsers.add_parser)
    report_command.register(parsers.add_parser)
    services.register(parsers.add_parser)
    return parser


def _query_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="a file, '-' for standard input, or the query's text itself")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


# ------------------------------------------------------------------------------------------------------------ commands


def _run(options: argparse.Namespace) -> int:
    query = _load(options.query)
    from pipeline.engines.choice import check_can_run, choose
    from pipeline.engines.contract import Cost, Limits, TrendBuilder
    from pipeline.output import formatted
    from pipeline.run import Input, fit, match_columns, run_matches, run_rows

    # --without is about sase, which auto would seldom take.
    name = "sase" if options.without and options.engine == "auto" else options.engine
    engine = choose(query, name, builds_trends=options.matches)
    if options.without:
        engine = _without(engine, options.without)
        check_can_run(query, engine)
    progress = _Progress()
    limits = Limits(options.timeout or None, options.max_trends, options.max_bits, progress=progress)
    types = tuple(name.strip() for name in options.types.split(",")) if options.types else None
    cost = Cost()
    started = time.monotonic()
    fitted = fit(query, Input(Path(options.events), types, options.bad_rows), limits, all_columns=options.matches)
    read = time.monotonic()
    for note in fitted.notes:
        progress.clear()
        print(f"note: {note}", file=sys.stderr)
    try:
        if options.matches:
            assert isinstance(engine, TrendBuilder)
            if query.tree.having is not None:
                print("note: --matches gives all trends; HAVING does not apply", file=sys.stderr)
            matches = run_matches(query, engine, fitted, limits, cost)
            print_lines(formatted(progress.paused(matches), options.format, match_columns(query)))
        else:
            rows = run_rows(query, engine, fitted, limits, cost)
            progress.clear()
            labels = [item.label for item in query.tree.returns]
            exact = ["exact"] if any("exact" in row for row in rows) else []
            columns = list(dict.fromkeys(["window_start", "window_end", *query.group_by, *labels, *exact]))
            print_lines(formatted(rows, options.format, columns))
    finally:
        progress.clear()
        if options.cost:
            _print_cost(engine, cost, read - started, time.monotonic() - read)
    return 0


def _explain(options: argparse.Namespace) -> int:
    query = _load(options.query)
    if options.interval is not None:
        if options.format != "text":
            raise TrendsError(f"--interval with --format {options.format}: a job's plan is told as text alone")
        print_lines(_explained_job(query, options))
        return 0
    import json

    from pipeline.explain import as_json, as_text, explain
    from pipeline.query.draw import as_dot, as_mermaid

    if options.format == "dot":
        print(as_dot(query))
    elif options.format == "mermaid":
        print(as_mermaid(query))
    elif options.format == "json":
        print(json.dumps(as_json(explain(query)), indent=2, ensure_ascii=False))
    else:
        print(as_text(explain(query)))
    return 0


def _explained_job(query: Query, options: argparse.Namespace) -> Iterator[str]:
    """How a job would answer a query for one day."""
    from pipeline.aggregate.job import plan
    from pipeline.aggregate.reach import as_time
    from pipeline.aggregate.snapshot import snapshot
    from pipeline.questions import ask
    from pipeline.tables import silver

    question = ask(query.text, query.file)
    ends = question.reach.ends(options.interval)
    table = silver(question.dataset)
    found = snapshot(lake_config(options), table)
    job = plan([(question, ends)], found, os.cpu_count() or 1)
    low, high = (as_time(time) for time in question.reach.events(*ends))
    yield f"engine    {job.works[0].engine}"
    yield f"way       {job.works[0].cut}"
    yield f"windows   that end from {as_time(ends[0]):%Y-%m-%d %H:%M:%S.%f} to {as_time(ends[1] - 1):%Y-%m-%d %H:%M:%S}"
    tasks = "1 task" if len(job.ranges) == 1 else f"{len(job.ranges)} tasks"
    yield f"events    from {low:%Y-%m-%d %H:%M:%S} to {high:%Y-%m-%d %H:%M:%S}, {tasks} on this machine"
    yield (
        f"reads     {', '.join(job.names)} of {table.full_name} version {found.version}: "
        f"{len(job.files)} of {len(found.files)} files, {sum(file.rows for file in job.files):,} rows"
    )
    yield f"gold      {question.table.full_name}, query version {question.version}"


def _check(options: argparse.Namespace) -> int:
    files = [file for path in options.paths or ["queries"] for file in _query_files(Path(path))]
    worst, mistakes, warnings = 0, 0, 0
    for file in files:
        try:
            query = _load(str(file))
        except TrendsError as error:
            print(error)
            mistakes += 1
            worst = 2 if isinstance(error, QueryError) else max(worst, error.exit_code) if worst != 2 else worst
            continue
        for warning in query.warnings:
            print("\n".join(locate(f"warning: {warning.message}", query.text, warning.span, query.file)))
        over_tables, changed = _check_tables(query)
        print_lines(f"warning: over the tables: {problem}" for problem in over_tables)
        warnings += len(query.warnings) + len(over_tables)
        if changed:
            print_lines(f"{file}: {column}" for column in changed)
            print(
                "hint: published columns keep their types: give the item another name (AS …), or the query another file"
            )
            mistakes, worst = mistakes + 1, 2
    print(f"queries checked: {len(files)}, with mistakes: {mistakes}, warnings: {warnings}")
    return worst


def _check_tables(query: Query) -> tuple[list[str], list[str]]:
    """Of a query over a dataset: why its tables cannot answer it, and which published columns would change."""
    from pipeline.config import Config
    from pipeline.datasets import DATASETS
    from pipeline.publish.published import changed_columns
    from pipeline.questions import ask

    if (query.tree.source or "").lower() not in DATASETS:
        return [], []
    try:
        return [], changed_columns(Config.from_environment(), ask(query.text, query.file))
    except TrendsError as error:
        return [str(error)], []


def _engines(_: argparse.Namespace) -> int:
    from pipeline.engines.choice import ENGINES

    for engine in ENGINES:
        about = (engine.idea, f"runs {engine.can}", f"from {engine.source}")
        print_lines(f"{engine.name if number == 0 else '':<7}{line}" for number, line in enumerate(about))
    return 0


# ------------------------------------------------------------------------------------------------------------- helpers


def _load(argument: str) -> Query:
    """The checked query in a file, on standard input, or in the argument itself."""
    from pipeline.query.check import check

    if not argument.strip():
        raise TrendsError("the query is empty\nhint: give a file, or the query's text, which begins with RETURN")
    if argument == "-":
        return check(sys.stdin.read(), "standard input")
    try:
        return check(Path(argument).read_text(encoding="utf-8-sig"), argument)
    except UnicodeDecodeError:
        raise TrendsError(f"{argument}: this is not a text file in UTF-8") from None
    except (OSError, ValueError) as error:
        if argument.lstrip()[:6].upper() == "RETURN":
            return check(argument, "query")
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "give a file, or the query's text, which begins with RETURN"
        raise TrendsError(f"{argument}: {reason}\nhint: {hint}") from None


def _query_files(path: Path) -> Iterable[Path]:
    if not path.exists():
        raise TrendsError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    files = sorted(path.rglob("*.query"))
    if not files:
        raise TrendsError(f"{path}: no *.query in this folder")
    return files


def _without(engine: Engine, names: str) -> Engine:
    from pipeline.engines.sase import OPTIMISATIONS, Sase
    from pipeline.errors import nearest

    chosen = names.split(",")
    for name in chosen:
        if name not in OPTIMISATIONS:
            close = nearest(name, OPTIMISATIONS)
            hint = f"did you mean {close}?" if close else f"sase has {', '.join(OPTIMISATIONS)}"
            raise TrendsError(f"--without {name}: no such optimisation\nhint: {hint}")
    if not isinstance(engine, Sase):
        raise TrendsError(f"--without is for sase, not for {engine.name}\nhint: --engine sase")
    return engine.without(*chosen)


def _print_cost(engine: Engine, cost: Cost, reading: float, running: float) -> None:
    followed = f", {cost.links:,} links followed" if cost.links else ""
    hits = f", {cost.cache_hits:,} cache hits" if cost.cache_hits else ""
    print(
        f"{engine.name}: {cost.events:,} events read in {reading:.2f} s, "
        f"{cost.trends:,} trends built in {running:.2f} s, "
        f"at most {cost.peak_stored:,} events, pointers and aggregates stored{followed}{hits}",
        file=sys.stderr,
    )


class _Progress:
    """One line on a terminal that says how far a long run is; nothing elsewhere, nor in the first second."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty()
        self.next = time.monotonic() + 1
        self.width = 0

    def __call__(self, message: str) -> None:
        if self.on and time.monotonic() > self.next:
            self.next = time.monotonic() + 0.2
            self.clear()
            print(f"\r{message}", end="", file=sys.stderr, flush=True)
            self.width = len(message)

    def clear(self) -> None:
        """Take the line away."""
        if self.width:
            print(f"\r{' ' * self.width}\r", end="", file=sys.stderr, flush=True)
            self.width = 0

    def paused(self, rows: Iterable[dict[str, object]]) -> Iterable[dict[str, object]]:
        """Rows, with no progress line in their way."""
        for row in rows:
            self.clear()
            yield row


if __name__ == "__main__":
    sys.exit(program())
