"""What the lake's own records say: intervals, publications, checks and engine runs, each read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeVar

from pipeline.arrow_tables import open_table
from pipeline.config import Config
from pipeline.delta import MissingTableError
from pipeline.intervals import File, Interval
from pipeline.publish.engine_runs import EngineRun
from pipeline.publish.publications import Publication
from pipeline.quality.report import Result
from pipeline.quality.results import latest, with_reasons
from pipeline.tables import ENGINE_RUNS, OPS_INTERVALS, OPS_PUBLICATIONS, OPS_QUALITY, OPS_WAIVERS, Table

T = TypeVar("T")
Values = dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """The records of a lake; `errors` says what is wrong with a table that cannot be read, by its name."""

    intervals: tuple[Interval, ...] = ()  # by day and dataset
    publications: tuple[Publication, ...] = ()  # by query and day
    results: tuple[Result, ...] = ()  # of each table's and day's latest run, by day, table and check
    engine_runs: tuple[EngineRun, ...] = ()  # by query, day and time
    errors: Mapping[str, str] = field(default_factory=dict)

    def published(self, query: str) -> list[Publication]:
        """The intervals of a query, by day."""
        return [one for one in self.publications if one.query == query]

    def status(self, dataset: str) -> dict[date, str]:
        """Of each landing day of a dataset."""
        return {one.landing_date: one.status for one in self.intervals if one.dataset == dataset}

    def runs(self, query: str) -> list[EngineRun]:
        """The engine runs of a query."""
        return [one for one in self.engine_runs if one.query == query]


def read_facts(config: Config) -> Facts:
    """Read them; a table that is not there yet has no rows."""
    errors: dict[str, str] = {}

    def rows(table: Table, make: Callable[[Values], T]) -> list[T]:
        try:
            # One by one, so that a row that cannot be understood is an error of its table alone.
            return [make(row) for row in open_table(config, table.full_name).read().to_pylist()]
        except MissingTableError:
            return []
        except Exception as error:
            errors[table.full_name] = told(error)
            return []

    intervals = rows(OPS_INTERVALS, _interval)
    publications = rows(OPS_PUBLICATIONS, _publication)
    waived = dict(rows(OPS_WAIVERS, _waiver))
    results = with_reasons(latest(rows(OPS_QUALITY, _result)), waived)
    runs = rows(ENGINE_RUNS, lambda row: EngineRun(**row))
    return Facts(
        tuple(sorted(intervals, key=lambda one: (one.landing_date, one.dataset))),
        tuple(sorted(publications, key=lambda one: (one.query, one.interval_date))),
        tuple(sorted(results, key=lambda one: (one.landing_date, one.table_name, one.expectation))),
        tuple(sorted(runs, key=lambda one: (one.query, one.interval_date, one.at, one.engine))),
        errors,
    )


def told(error: Exception) -> str:
    """An error for a page: a message to users as it is, any other with its kind.

    >>> told(ValueError("no number"))
    'ValueError: no number'
    """
    from pipeline.errors import TrendsError

    return str(error) if isinstance(error, TrendsError) else f"{type(error).__name__}: {error}"


def _interval(row: Values) -> Interval:
    given = {name: value for name, value in row.items() if value is not None}
    files = tuple(File(**file) for file in row["files"] or ())
    return Interval(**given | {"files": files, "reasons": dict(row["reasons"] or ())})


def _publication(row: Values) -> Publication:
    return Publication(**row | {name: tuple(row[name] or ()) for name in ("files", "warnings")})


def _result(row: Values) -> Result:
    return Result(**row | {"examples": tuple(row["examples"] or ())})


def _waiver(row: Values) -> tuple[tuple[date, str], str]:
    return (row["landing_date"], row["expectation"]), row["reason"]


def by_key(items: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """The items by what they have in common, in their order."""
    found: dict[Any, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found
