"""A dataset's declaration rejects nonsense, and the declared ones hold what their tables and checks need."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from pipeline.datasets import DATASETS
from pipeline.datasets.activity import ACTIVITY
from pipeline.datasets.declaration import Calendar, Column
from pipeline.datasets.stock import STOCK
from pipeline.datasets.taxi import TAXI


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Stock"}, "a name is small letters"),
        ({"formats": ()}, "at least one format"),
        ({"formats": STOCK.formats * 2}, "two formats have the same name"),
        ({"columns": STOCK.columns * 2}, "two columns have the same name"),
        ({"types": ()}, "at least one column must give"),
        ({"types": ("ticker",)}, "type column 'ticker' is not among its columns"),
        ({"types": ("price",)}, "type column 'price' is not text"),
        ({"keys": ("trade",)}, "key 'trade' is not among its columns"),
        ({"zone": "America/Gotham"}, "'America/Gotham' is no time zone"),
        ({"expected_by": -1}, "expected_by counts hours"),
        ({"lag": -1}, "lag counts days"),
        ({"retention": 6}, "at least 7 days"),
    ],
)
def test_nonsense_in_a_dataset(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(STOCK, **change)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"name": "Price"}, "a name is small letters"),
        ({"name": "event_id"}, "every silver table has one of this name already"),
        ({"type": "text"}, "'text' is none of string, double"),
        ({"minimum": 2, "maximum": 1}, "the range 2–1 is empty"),
        ({"type": "string", "minimum": 2}, "only numbers have a range"),
        ({"values": ("a",)}, "only text has a list of values"),
    ],
)
def test_nonsense_in_a_column(column: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Column(**{"name": "price", "type": "double", "about": "", **column})


@pytest.mark.parametrize("weekdays", [(), (7,), (-1,)])
def test_nonsense_in_a_calendar(weekdays: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="calendar: "):
        Calendar("never", frozenset(weekdays))


def test_days_on_which_files_are_expected() -> None:
    week = [date(2030, 1, 7 + day) for day in range(7)]
    assert [STOCK.expects(day) for day in week] == [True] * 5 + [False] * 2
    assert all(TAXI.expects(day) for day in week)
    assert not TAXI.expects(date(2012, 12, 31))


def test_when_files_are_expected() -> None:
    """Six in the morning after, in New York."""
    assert STOCK.expected_at(date(2030, 1, 7)).astimezone(UTC) == datetime(2030, 1, 8, 11, tzinfo=UTC)


def test_sensitive_columns() -> None:
    assert STOCK.sensitive == ()
    assert TAXI.sensitive == ("driver", "rider", "medallion")
    assert ACTIVITY.sensitive == ("patient",)


@pytest.mark.parametrize("name", DATASETS)
def test_formats_are_documented(name: str) -> None:
    dataset = DATASETS[name]
    assert dataset.name == name
    for known in dataset.formats:
        assert known.about
        assert all(field.about for field in known.fields)
    assert all(column.about for column in dataset.columns)
