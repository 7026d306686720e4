"""Whether data and answers are as new as they should be by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pipeline.datasets.declaration import Dataset
from pipeline.intervals import COMPLETE, Interval
from pipeline.publish.publications import Publication

LOOKED_BACK = 60  # days in which intervals are missed
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


def of_dataset(dataset: Dataset, intervals: Sequence[Interval], now: datetime) -> Freshness:
    """By the days whose files should have come by now."""
    there = {one.landing_date for one in intervals if one.dataset == dataset.name and one.status == COMPLETE}
    today = now.date()
    expected = [
        day
        for day in (today - timedelta(days=back) for back in range(LOOKED_BACK))
        if dataset.expects(day) and dataset.expected_at(day) <= now
    ]
    return _freshness(there, expected)


def of_query(published: Sequence[Publication], intervals: Sequence[Interval], dataset: str) -> Freshness:
    """By the landing days that are complete."""
    complete = sorted(one.landing_date for one in intervals if one.dataset == dataset and one.status == COMPLETE)
    last = complete[-1] if complete else None
    recent = [day for day in complete if last and day > last - timedelta(days=LOOKED_BACK)]
    return _freshness({one.interval_date for one in published}, recent[::-1])


def _freshness(there: set[date], expected: Sequence[date]) -> Freshness:
    newest = max(there, default=None)
    if newest is None:
        return Freshness(NOTHING, None, expected[0] if expected else None)
    # Days before the first one that was ever taken in are not missed.
    missing = tuple(sorted(day for day in expected if day not in there and day > min(there)))
    return Freshness(LATE if missing else FRESH, newest, expected[0] if expected else None, missing)
