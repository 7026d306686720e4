"""Which windows an interval owns, which events these need, and which windows an event is in: in microseconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from pipeline.errors import CannotRunError
from pipeline.query import tree
from pipeline.query.automaton import FREE
from pipeline.query.checked import Query

MICROS = 1_000_000
DAY = 86_400 * MICROS
EPOCH = date(1970, 1, 1)
START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Reach:
    """The windows of a query in time.

    An interval [d, d + 1) owns the windows that end in (d, d + 1]; without SLIDE those in [d, d + 1), and with a
    negation after the last event those that are decided by then, WITHIN later. Ranges are half-open.
    """

    within: int
    slide: int | None
    looks_back: bool = False  # without SLIDE: a negation before the first event is judged in (last − WITHIN, first)
    looks_ahead: bool = False  # without SLIDE: one after the last event is judged in (last, first + WITHIN)

    @classmethod
    def of(cls, query: Query) -> Reach:
        """The reach of a query whose windows are lengths of time."""
        within, slide = query.tree.within, query.tree.slide
        if within.in_events:
            raise CannotRunError(
                f"{query.file}: WITHIN {within}: jobs over tables have windows of time alone\n"
                "hint: give WITHIN in minutes or hours, or use trends run on a file"
            )
        moves = slide is None
        return cls(
            _micros(query, within),
            _micros(query, slide) if slide else None,
            looks_back=moves and any(ways != FREE for ways in query.automaton.first.values()),
            looks_ahead=moves and any(ways != FREE for ways in query.automaton.last.values()),
        )

    def ends(self, day: date) -> tuple[int, int]:
        """The ends of the windows that the interval of a day owns."""
        start = (day - EPOCH).days * DAY
        start += 1 if self.slide is not None else -self._delay
        return start, start + DAY

    def owner(self, end: int) -> date:
        """The day whose interval owns the window with this end."""
        place = end - 1 if self.slide is not None else end + self._delay
        return EPOCH + timedelta(days=place // DAY)

    def events(self, low: int, high: int) -> tuple[int, int]:
        """The times of the events that windows with ends from low up to high need."""
        if self.slide is not None:
            return low - self.within, high - 1
        return low - self.within * (1 + self.looks_back) + 1, high + self._delay

    def affected(self, time: int) -> tuple[int, int]:
        """The ends of the windows that may change with an event at this time."""
        if self.slide is not None:
            return time + 1, time + self.within + 1
        return time - self._delay + 1 if self.looks_ahead else time, time + self.within * (1 + self.looks_back)

    def has_window(self, low: int, high: int) -> bool:
        """Whether a window ends from low up to high; without SLIDE there may be one at every time."""
        if self.slide is None:
            return low < high
        return (high - 1 - self.within) // self.slide * self.slide + self.within >= low

    @property
    def _delay(self) -> int:
        return self.within if self.looks_ahead else 0


def _micros(query: Query, extent: tree.Extent) -> int:
    size = Fraction(extent.size) * MICROS
    if size.denominator != 1:
        raise CannotRunError(
            f"{query.file}: {extent}: tables hold times to the microsecond\nhint: use a whole number of microseconds"
        )
    return int(size)


def as_time(micros: int) -> datetime:
    """A number of microseconds as a time in UTC."""
    return START + timedelta(microseconds=micros)


def as_micros(time: datetime) -> int:
    """A time as a number of microseconds; without a zone it is one in UTC.

    >>> as_micros(datetime(1970, 1, 2))
    86400000000
    """
    return (time.replace(tzinfo=time.tzinfo or UTC) - START) // timedelta(microseconds=1)
