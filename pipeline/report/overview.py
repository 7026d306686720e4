"""The overview: last nights, freshness, and what needs somebody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from pipeline import freshness
from pipeline.datasets import DATASETS
from pipeline.freshness import Freshness
from pipeline.intervals import COMPLETE, Interval
from pipeline.publish.engine_runs import EngineRun
from pipeline.publish.publications import Publication
from pipeline.publish.stale import Stale
from pipeline.report.facts import Facts, by_key
from pipeline.report.subjects import Subject

NIGHTS = 14
MOST_ALERTS = 40
MOST_NAMED = 5


@dataclass(frozen=True)
class Alert:
    """Something for a person to look at."""

    state: str  # failed or warned
    text: str
    detail: str
    link: str | None = None


@dataclass(frozen=True)
class QueryLine:
    """A query in the list of all."""

    subject: Subject
    freshness: Freshness
    last: Publication | None
    intervals: int
    rows: int
    stale: Sequence[Stale]
    error: str | None

    @property
    def state(self) -> str:
        """For the filter: what is worst comes first."""
        if self.error:
            return "error"
        if self.stale:
            return "stale"
        return self.freshness.state


@dataclass(frozen=True)
class Night:
    """A day: what came in, and what was published for it."""

    day: date
    intervals: Sequence[Interval]
    queries: int
    rows: int
    changed: int


def dataset_lines(facts: Facts, now: datetime) -> list[tuple[str, Freshness]]:
    """Every dataset's freshness."""
    return [(name, freshness.of_dataset(dataset, facts.status(name), now)) for name, dataset in DATASETS.items()]


def query_line(subject: Subject, facts: Facts, found: Mapping[date, Stale], error: str | None) -> QueryLine:
    """A query's state."""
    published = facts.published(subject.name)
    days = [one.interval_date for one in published]
    dataset = subject.dataset
    return QueryLine(
        subject,
        freshness.of_query(dataset, facts.status(dataset.name) if dataset else {}, days),
        published[-1] if published else None,
        len(published),
        sum(one.rows for one in published),
        [found[day] for day in sorted(found)],
        error,
    )


def nights(facts: Facts) -> list[Night]:
    """The newest days, newest first."""
    by_day = by_key(facts.intervals, lambda one: one.landing_date)
    published = by_key(facts.publications, lambda one: one.interval_date)
    days = sorted({*by_day, *published}, reverse=True)[:NIGHTS]
    return [
        Night(
            day,
            by_day.get(day, ()),
            len(published.get(day, ())),
            sum(one.rows for one in published.get(day, ())),
            sum(one.changed for one in published.get(day, ())),
        )
        for day in days
    ]


def alerts(facts: Facts, datasets: Sequence[tuple[str, Freshness]], queries: Sequence[QueryLine]) -> list[Alert]:
    """What needs somebody, the worst first."""
    found = [
        *_broken(facts, queries),
        *_days(facts),
        *_checks(facts),
        *_engines(facts, queries),
        *_late(datasets, queries),
        *_stale(queries),
    ]
    return sorted(found, key=lambda alert: alert.state != "failed")[:MOST_ALERTS]


def _broken(facts: Facts, queries: Sequence[QueryLine]) -> Iterator[Alert]:
    for table, error in facts.errors.items():
        yield Alert("failed", f"{table} cannot be read", error)
    for line in queries:
        if line.error:
            text = f"{line.subject.title}: something is wrong with this query"
            yield Alert("failed", text, line.error.splitlines()[0], line.subject.page)


def _days(facts: Facts) -> Iterator[Alert]:
    newest = set(sorted({one.landing_date for one in facts.intervals})[-NIGHTS:])
    for one in reversed(facts.intervals):
        if one.status != COMPLETE and one.landing_date in newest:
            detail = "; ".join(one.warnings)
            yield Alert("failed", f"{one.dataset} {one.landing_date}: {one.status}", detail, "quality.html")


def _checks(facts: Facts) -> Iterator[Alert]:
    """Of the newest days, a line a table and day."""
    days = sorted({result.landing_date for result in facts.results})[-NIGHTS:]
    failed = [
        result for result in facts.results if result.landing_date in days and result.state in ("failed", "warned")
    ]
    by_table = by_key(reversed(failed), lambda result: (result.state, result.table_name, result.landing_date))
    for (state, table, day), results in by_table.items():
        names = ", ".join(result.expectation.rpartition(".")[2] for result in results)
        yield Alert(state, f"{table} {day}: checks {state}: {len(results)}", names, "quality.html#failures")


def _engines(facts: Facts, queries: Sequence[QueryLine]) -> Iterator[Alert]:
    pages = {line.subject.name: line.subject for line in queries}
    newest: dict[tuple[str, date, str, str], EngineRun] = {}
    for run in facts.engine_runs:  # by time
        newest[run.query, run.interval_date, run.purpose, run.engine] = run
    for run in newest.values():
        if run.agrees is False:
            subject = pages.get(run.query, Subject(run.query))
            text = f"{subject.title} {run.interval_date}: {run.engine} disagrees with other engines"
            yield Alert("failed", text, run.difference or "", subject.page)


def _late(datasets: Sequence[tuple[str, Freshness]], queries: Sequence[QueryLine]) -> Iterator[Alert]:
    for name, fresh in datasets:
        if fresh.state == freshness.LATE:
            yield Alert("warned", f"{name}: {fresh.text}", f"trends ingest {name} {_days_of(fresh.missing)}")
    late = [line for line in queries if line.freshness.state == freshness.LATE]
    for missing, lines in by_key(late, lambda line: line.freshness.missing).items():
        text = f"{_named(lines)} not published: {lines[0].freshness.text}"
        detail = f"trends backfill {_some(lines)} {_days_of(missing)} --only-missing"
        yield Alert("warned", text, detail, _page(lines))


def _stale(queries: Sequence[QueryLine]) -> Iterator[Alert]:
    """A line a reason and day, however many queries it is about."""
    stale = [(one, line) for line in queries for one in line.stale]
    by_day = by_key(stale, lambda pair: (pair[0].interval_date, pair[0].reason))
    for (day, reason), pairs in sorted(by_day.items(), reverse=True):
        lines = [line for _, line in pairs]
        detail = f"trends backfill {_some(lines)} --from {day} --changed"
        yield Alert("warned", f"{_named(lines)} stale on {day}: {reason}", detail, _page(lines))


def _days_of(days: Sequence[date]) -> str:
    return f"--from {days[0]}" + (f" --to {days[-1]}" if len(days) > 1 else "")


def _named(lines: Sequence[QueryLine]) -> str:
    return f"{len(lines)} queries are" if len(lines) > 1 else f"{lines[0].subject.title} is"


def _some(lines: Sequence[QueryLine]) -> str:
    """As a command takes them; of many, all, since it leaves alone what is up to date."""
    return " ".join(line.subject.title for line in lines) if len(lines) <= MOST_NAMED else "all"


def _page(lines: Sequence[QueryLine]) -> str:
    return lines[0].subject.page if len(lines) == 1 else "index.html#queries"
