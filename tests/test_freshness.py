"""Which days are missing: those whose files are due, and those whose events are complete and not answered."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from pipeline.datasets import DATASETS
from pipeline.freshness import FRESH, LATE, NOTHING, of_dataset, of_query
from pipeline.intervals import COMPLETE, MISSING

STOCK, TAXI = DATASETS["stock"], DATASETS["taxi"]
MONDAY = date(2024, 1, 8)
FRIDAY = MONDAY + timedelta(days=4)


def days(first: date, count: int) -> list[date]:
    return [first + timedelta(days=number) for number in range(count)]


def test_a_day_is_missing_once_its_files_are_due() -> None:
    """Friday's files are due on Saturday at six in New York, which is eleven in UTC."""
    status = dict.fromkeys(days(MONDAY, 4), COMPLETE)
    before, after = (datetime(2024, 1, 13, hour, tzinfo=UTC) for hour in (10, 11))
    assert of_dataset(STOCK, status, before).state == FRESH
    assert of_dataset(STOCK, status, after).missing == (FRIDAY,)
    assert of_dataset(STOCK, status | {FRIDAY: MISSING}, after).missing == (FRIDAY,)
    # The weekend has no files, and days before the first are not missed.
    assert of_dataset(STOCK, status | {FRIDAY: COMPLETE}, after + timedelta(days=2)).state == FRESH


def test_a_first_day_that_failed_is_missing() -> None:
    found = of_dataset(STOCK, {MONDAY: MISSING}, datetime(2024, 1, 9, 12, tzinfo=UTC))
    assert (found.state, found.missing) == (LATE, (MONDAY,))
    assert of_dataset(STOCK, {}, datetime(2024, 1, 9, 12, tzinfo=UTC)).state == NOTHING


def test_a_query_is_behind_where_events_are_complete() -> None:
    status = dict.fromkeys(days(MONDAY, 5), COMPLETE)
    assert of_query(STOCK, status, days(MONDAY, 5)).state == FRESH
    assert of_query(STOCK, status, [MONDAY, FRIDAY]).missing == tuple(days(MONDAY, 4)[1:])
    assert of_query(STOCK, status | {FRIDAY: MISSING}, days(MONDAY, 4)).state == FRESH
    assert of_query(None, {}, [MONDAY]).state == FRESH


def test_answers_that_wait_for_late_files_are_not_behind() -> None:
    """A trip may land a month later: until then its day is not complete."""
    first = of_query(TAXI, dict.fromkeys(days(MONDAY, TAXI.lag), COMPLETE), [MONDAY - timedelta(days=1)])
    assert first.state == FRESH
    known = dict.fromkeys(days(MONDAY - timedelta(days=1), TAXI.lag + 2), COMPLETE)  # up to 8 February
    assert of_query(TAXI, known, [MONDAY - timedelta(days=1)]).missing == (MONDAY,)
