"""Whether data and answers are as new as they should be: which days are missing, for the digest and the report."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pipeline.datasets.declaration import Dataset
from pipeline.intervals import COMPLETE
from pipeline.ready import needed_days

LOOKED_BACK = 60  # days in which something may be missing
FRESH, LATE, NOTHING = "up to date", "behind", "nothing yet"


@dataclass(frozen=True)
class Freshness:
    """The newest day that is there and the one that should be, and which of the days before are not."""

    state: str
    newest: date | None
    expected: date | None
    missing: tuple[date, ...] = ()

    @property
    def text(self) -> str:
        """In a few words."""
        if self.state != LATE or not self.missing:
            return self.state
        days = f"{len(self.missing)} days" if len(self.missing) > 1 else f"{self.missing[0]}"
        return f"{days} missing"


def of_dataset(dataset: Dataset, status: Mapping[date, str], now: datetime) -> Freshness:
    """By the days whose files should have come by now. `status`: of the landing days that `ops.intervals` knows."""
    expected = [
        day
        for day in _days_before(now.date() + timedelta(days=1))
        if dataset.expects(day) and dataset.expected_at(day) <= now
    ]
    return _freshness(_complete(status), expected, min(status, default=None))


def of_query(dataset: Dataset | None, status: Mapping[date, str], published: Collection[date]) -> Freshness:
    """By the days whose events are complete: a dataset that is late is not its queries' delay.

    Without a dataset, the query is no longer asked.
    """
    complete = _complete(status)
    recent = _days_before(max(complete) + timedelta(days=1)) if complete else []
    expected = [
        day for day in recent if dataset and day in complete and complete.issuperset(needed_days(dataset, (), day))
    ]
    return _freshness(set(published), expected, min(published, default=None))


def _complete(status: Mapping[date, str]) -> set[date]:
    return {day for day, found in status.items() if found == COMPLETE}


def _days_before(after: date) -> list[date]:
    """The newest first."""
    return [after - timedelta(days=back) for back in range(1, LOOKED_BACK + 1)]


def _freshness(there: set[date], expected: Sequence[date], first: date | None) -> Freshness:
    """Days before the first one that was ever taken in are not missed."""
    newest = max(there, default=None)
    should = expected[0] if expected else None
    if first is None:
        return Freshness(NOTHING, newest, should)
    missing = tuple(sorted(day for day in expected if day not in there and day >= first))
    return Freshness(LATE if missing else FRESH, newest, should, missing)
