"""The morning's digest: what was done since yesterday, what was not, and what should be looked at; from the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pipeline import arrow_tables, freshness, nights
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset
from pipeline.errors import TrendsError
from pipeline.intervals import COMPLETE
from pipeline.questions import table_name
from pipeline.tables import OPS_INTERVALS, OPS_PUBLICATIONS

SINCE = timedelta(days=1)
SPARE = timedelta(hours=4)  # after a landing day is due, until it must be in silver
SHOWN = 10


@dataclass(frozen=True)
class Digest:
    """What there is to tell, a line each."""

    at: datetime
    ingested: tuple[str, ...]
    published: tuple[str, ...]
    failed: tuple[str, ...]  # landing days that are not in silver, query files with a mistake
    stale: tuple[str, ...]  # what is past its deadline
    warnings: tuple[str, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: str(value) if name == "at" else list(value) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        parts = {
            "failed": self.failed,
            "behind": self.stale,
            "warnings": self.warnings,
            "ingested": self.ingested,
            "published": self.published,
        }
        head = ", ".join(f"{name}: {len(lines)}" for name, lines in parts.items())
        said = [f"Night of {self.at:%Y-%m-%d}: {head}"]
        for name, lines in parts.items():
            if lines:
                said += [f"{name}:", *(f"  {line}" for line in lines[:SHOWN])]
                said += [f"  … and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        return "\n".join(said)


def digest(config: Config, now: datetime | None = None) -> Digest:
    """The digest of the last 24 hours."""
    at = now or datetime.now(UTC)
    intervals = arrow_tables.rows(
        config,
        OPS_INTERVALS,
        ("dataset", "landing_date", "status", "events", "quarantined", "warnings", "completed_at"),
    )
    names = ("query", "interval_date", "dataset", "rows", "changed", "engine", "warnings", "published_at")
    publications = arrow_tables.rows(config, OPS_PUBLICATIONS, names)
    ingested = _since(intervals, "completed_at", "landing_date", at)
    published = _since(publications, "published_at", "interval_date", at)
    failed = [
        f"{row['dataset']} {row['landing_date']}: {row['status']}" for row in ingested if row["status"] != COMPLETE
    ]
    stale: list[str] = []
    for dataset in DATASETS.values():
        status = {row["landing_date"]: row["status"] for row in intervals if row["dataset"] == dataset.name}
        failed += _mistakes(config, dataset)
        stale += _behind(config, dataset, status, publications, at)
    return Digest(
        at,
        tuple(
            f"{row['dataset']} {row['landing_date']}: {row['events'] or 0:,} events, {row['quarantined'] or 0:,} "
            "rows in quarantine"
            for row in ingested
            if row["status"] == COMPLETE
        ),
        tuple(
            f"{row['query']} {row['interval_date']}: {row['rows']:,} rows, {row['changed']:,} changed, "
            f"by {row['engine']}"
            for row in published
        ),
        tuple(failed),
        tuple(stale),
        tuple(
            f"{row.get('query') or row['dataset']} {row.get('interval_date') or row.get('landing_date')}: {warning}"
            for row in (*ingested, *published)
            for warning in row["warnings"] or ()
        ),
    )


def _since(rows: Sequence[dict[str, Any]], time: str, day: str, at: datetime) -> list[dict[str, Any]]:
    new = [row for row in rows if at - SINCE < row[time] <= at]
    return sorted(new, key=lambda row: (row["dataset"], row.get("query") or "", row[day]))


def _mistakes(config: Config, dataset: Dataset) -> list[str]:
    """The query files that cannot be answered."""
    found = []
    for name in nights.query_names(config, dataset):
        try:
            nights.question(config, dataset, name)
        except TrendsError as error:
            found.append(str(error).splitlines()[0])
    return found


def _behind(
    config: Config,
    dataset: Dataset,
    status: dict[date, str],
    publications: Sequence[dict[str, Any]],
    at: datetime,
) -> list[str]:
    """Landing days whose deadline is past, and queries that are not published though their events are there."""
    late = freshness.of_dataset(dataset, status, at - SPARE).missing
    found = [f"{dataset.name}: not in silver: {_days(late, status)}"] if late else []
    for name in nights.query_names(config, dataset):
        query = table_name(name)
        published = {row["interval_date"] for row in publications if row["query"] == query}
        if missing := freshness.of_query(dataset, status, published).missing:
            found.append(f"{query}: not published: {_days(missing)}")
    return found


def _days(days: Sequence[date], status: Mapping[date, str] | None = None) -> str:
    """The newest of some days, and how many there are."""
    shown = [f"{day} ({status.get(day, 'not ingested')})" if status is not None else f"{day}" for day in days[-SHOWN:]]
    return ", ".join(shown) + (f" and {len(days) - SHOWN} days before" if len(days) > SHOWN else "")
