"""Data quality for a page: checks by table and day, what did not pass, and what was quarantined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pipeline.arrow_tables import open_table
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.delta import MissingTableError
from pipeline.intervals import Interval
from pipeline.quality.pages import PAGE
from pipeline.quality.report import Report, Result
from pipeline.report.facts import Facts, by_key, told
from pipeline.tables import quarantine

DAYS = 60  # that a strip shows
FAILURES = 500  # that are listed, the newest
ROWS = 100  # of quarantine, of a dataset
LAYERS = ("bronze", "silver", "quarantine", "gold")


@dataclass(frozen=True)
class Cell:
    """A table on a day: its worst result, in words too, and the page that shows it."""

    state: str
    text: str
    page: str | None


@dataclass(frozen=True)
class Strip:
    """A table over the days."""

    table: str
    cells: Sequence[Cell | None]  # None: not checked that day
    passed: int
    total: int


@dataclass(frozen=True)
class Quarantined:
    """What a dataset put aside: counts a reason and day, and some rows."""

    dataset: str
    days: Sequence[date]
    reasons: Mapping[str, Sequence[int]]  # by reason, a count a day
    rows: Sequence[Mapping[str, Any]]
    error: str | None = None

    @property
    def total(self) -> int:
        """All that the days put aside."""
        return sum(sum(counts) for counts in self.reasons.values())


def strips(facts: Facts, pages: Mapping[tuple[str, date], str]) -> tuple[list[date], list[Strip]]:
    """The newest days on which anything was checked, and a strip a table."""
    days = sorted({result.landing_date for result in facts.results})[-DAYS:]
    found = []
    for table, results in by_key(facts.results, lambda result: result.table_name).items():
        by_day = by_key(results, lambda result: result.landing_date)
        cells = [_cell(table, day, by_day[day], pages) if day in by_day else None for day in days]
        recent = [result for day in days for result in by_day.get(day, ())]
        if recent:
            found.append(Strip(table, cells, sum(result.success for result in recent), len(recent)))
    return days, sorted(found, key=lambda strip: (_layer(strip.table), strip.table))


def failures(facts: Facts) -> list[Result]:
    """What did not pass, the newest first."""
    return [result for result in reversed(facts.results) if not result.success][:FAILURES]


def data_docs(site: Path) -> dict[tuple[str, date], str]:
    """The newest page of each table and day below the site."""
    found: dict[tuple[str, date], str] = {}
    for page in sorted((site / "quality").glob("*/*/*/*.html"), key=lambda page: page.name):
        if PAGE.fullmatch(page.name):
            _, day, table = page.relative_to(site / "quality").parts[:3]
            found[table, date.fromisoformat(day)] = page.relative_to(site).as_posix()
    return found


def quarantined(config: Config, facts: Facts) -> list[Quarantined]:
    """What each dataset put aside on the newest days."""
    by_dataset = by_key(facts.intervals, lambda interval: interval.dataset)
    return [_quarantined(config, name, by_dataset[name]) for name in DATASETS if name in by_dataset]


def _quarantined(config: Config, name: str, intervals: Sequence[Interval]) -> Quarantined:
    recent = intervals[-DAYS:]
    totals: Counter[str] = Counter()
    for interval in recent:
        totals.update(interval.reasons)
    reasons = {reason: [one.reasons.get(reason, 0) for one in recent] for reason, _ in totals.most_common()}
    rows: list[Mapping[str, Any]] = []
    error = None
    try:
        rows = _rows(config, name)
    except MissingTableError:
        pass
    except Exception as wrong:
        error = told(wrong)
    return Quarantined(name, [one.landing_date for one in recent], reasons, rows, error)


def _rows(config: Config, name: str) -> list[Mapping[str, Any]]:
    """The newest rows by their places; the lines themselves may hold what is sensitive, and stay in the table."""
    table = open_table(config, quarantine(DATASETS[name]).full_name)
    newest: list[Any] = []
    for day in sorted({file.partition["landing_date"] for file in table.files}, reverse=True):
        files = [file for file in table.files if file.partition["landing_date"] == day]
        read = table.read(["landing_date", "file", "line", "reason", "resolved"], files).to_pylist()
        newest += sorted(read, key=lambda row: (row["file"], row["line"]))
        if len(newest) >= ROWS:
            break
    return newest[:ROWS]


def _cell(table: str, day: date, results: Sequence[Result], pages: Mapping[tuple[str, date], str]) -> Cell:
    report = Report(tuple(results))
    worst = report.of(report.state)
    number = f"{len(results)} checks passed" if report.state == "passed" else f"{len(worst)} of {len(results)} checks"
    words = "" if report.state == "passed" else f" {report.state}"
    return Cell(report.state, f"{table}, {day}: {number}{words}", pages.get((table, day)))


def _layer(table: str) -> int:
    layer = table.partition(".")[0]
    return LAYERS.index(layer) if layer in LAYERS else len(LAYERS)
