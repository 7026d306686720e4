"""What a dataset is: one declaration, from which its tables, checks, schedule and pages follow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pipeline.sources.formats import Format

NAME = re.compile(r"[a-z][a-z0-9_]*")
TYPES = ("string", "double", "bigint", "int", "boolean")
# What every silver table has beside the columns of its dataset.
OWN_COLUMNS = frozenset(
    ("event_id", "time", "event_date", "derived", "ambiguous_time", "late", "file", "line", "landing_date")
)


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


@dataclass(frozen=True)
class Column:
    """An attribute of a dataset's events; the type is Spark SQL's."""

    name: str
    type: str
    about: str
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    values: tuple[str, ...] = ()
    sensitive: bool = False

    def __post_init__(self) -> None:
        _check(bool(NAME.fullmatch(self.name)), f"column {self.name!r}: a name is small letters, digits and _")
        _check(self.name not in OWN_COLUMNS, f"column {self.name!r}: every silver table has one of this name already")
        _check(self.type in TYPES, f"column {self.name}: {self.type!r} is none of {', '.join(TYPES)}")
        ranged = self.minimum is not None or self.maximum is not None
        _check(not ranged or self.type in ("double", "bigint", "int"), f"column {self.name}: only numbers have a range")
        if self.minimum is not None and self.maximum is not None:
            _check(
                self.minimum <= self.maximum, f"column {self.name}: the range {self.minimum}–{self.maximum} is empty"
            )
        _check(not self.values or self.type == "string", f"column {self.name}: only text has a list of values")


@dataclass(frozen=True)
class Calendar:
    """The days on which files are expected."""

    about: str
    weekdays: frozenset[int]  # 0 is Monday, as in datetime

    def __post_init__(self) -> None:
        _check(bool(self.weekdays), "calendar: at least one day of the week is needed")
        _check(self.weekdays <= set(range(7)), f"calendar: weekdays are 0–6, not {sorted(self.weekdays)}")

    def includes(self, day: date) -> bool:
        """Whether files are expected for this landing day."""
        return day.weekday() in self.weekdays


EVERY_DAY = Calendar("every day", frozenset(range(7)))
WEEKDAYS = Calendar("Monday to Friday", frozenset(range(5)))


@dataclass(frozen=True)
class Dataset:
    """Everything that is particular to a dataset.

    `types` are the columns that give an event its types. Events that agree in `keys` are one event that came several
    times; without keys no two events are the same. A landing day's files are complete `expected_by` hours after that
    day begins in `zone` (30 is six in the morning after). An event is late if its date is more than `lag` days before
    its landing day. Old versions of the tables can be read for `retention` days.
    """

    name: str
    about: str
    formats: tuple[Format, ...]
    columns: tuple[Column, ...]
    types: tuple[str, ...]
    zone: str
    calendar: Calendar
    first_day: date
    expected_by: int
    lag: int
    retention: int
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(bool(NAME.fullmatch(self.name)), f"dataset {self.name!r}: a name is small letters, digits and _")
        self._check(bool(self.formats), "at least one format is needed")
        format_names = [known.name for known in self.formats]
        self._check(len({*format_names}) == len(format_names), "two formats have the same name")
        names = [column.name for column in self.columns]
        self._check(len({*names}) == len(names), "two columns have the same name")
        self._check(bool(self.types), "at least one column must give the events' types")
        for name in self.types:
            self._check(name in names, f"the type column {name!r} is not among its columns")
            self._check(self.column(name).type == "string", f"the type column {name!r} is not text")
        for name in self.keys:
            self._check(name in names or name == "time", f"the key {name!r} is not among its columns")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError):
            self._check(False, f"{self.zone!r} is no time zone")
        self._check(self.expected_by >= 0, "expected_by counts hours from the start of the landing day")
        self._check(self.lag >= 0, "lag counts days")
        # Below a week, VACUUM may take files away from a reader or from a change feed that is still needed.
        self._check(self.retention >= 7, "old versions are kept for at least 7 days")

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns that say who somebody is: masked in every report."""
        return tuple(column.name for column in self.columns if column.sensitive)

    def column(self, name: str) -> Column:
        """The column of this name."""
        return next(column for column in self.columns if column.name == name)

    def expects(self, day: date) -> bool:
        """Whether files should land on this day; a day without is complete and empty."""
        return day >= self.first_day and self.calendar.includes(day)

    def expected_at(self, day: date) -> datetime:
        """When the files of a landing day should be there."""
        return datetime.combine(day, time(), ZoneInfo(self.zone)) + timedelta(hours=self.expected_by)

    def _check(self, holds: bool, message: str) -> None:
        _check(holds, f"dataset {self.name}: {message}")
