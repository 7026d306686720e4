"""What every engine takes and gives, so that engines can be exchanged and compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, Protocol, runtime_checkable

from pipeline.approximate import Approximate
from pipeline.engines.stream import Stream
from pipeline.errors import DidNotFinishError
from pipeline.memory import available_memory
from pipeline.query.checked import Query

# An exact value, or one beyond the budgets of bits and memory. A float or a text is an event's own value (MIN, MAX).
Value = int | float | Fraction | Approximate | str | None

DEFAULT_MAX_BITS = 65_536


class Row(NamedTuple):
    """The aggregates of one group in one window, in the order of the query's aggregates; rows sort as results do."""

    window_start: int
    window_end: int
    group: int
    values: tuple[Value, ...]


@dataclass
class Cost:
    """What a run took: as the papers count it."""

    events: int = 0
    peak_stored: int = 0  # events, pointers and aggregates kept at once
    trends: int = 0  # trends that were built
    links: int = 0  # steps along links between stacks
    cache_hits: int = 0  # steps from a cached partial trend instead


@dataclass
class Limits:
    """When a run gives up, its time counted from here (None is never), and when it goes on with rounded numbers."""

    seconds: float | None = None
    trends: int | None = None
    bits: int = DEFAULT_MAX_BITS  # integers up to here are exact
    memory: int = field(default_factory=lambda: available_memory() // 2)  # bytes that aggregates may take
    progress: Callable[[str], None] = lambda _: None
    _started: float = field(default_factory=time.monotonic)

    def check_time(self, so_far: Callable[[], str]) -> None:
        """Give up if the time is over, saying what was done until now."""
        if self.seconds is not None and time.monotonic() > self._started + self.seconds:
            raise DidNotFinishError(f"did not finish in {self.seconds:g} seconds: {so_far()} (--timeout)")

    def extend(self, seconds: float) -> None:
        """Give more time."""
        self._started += seconds

    @property
    def spent(self) -> float:
        """The seconds that count."""
        return time.monotonic() - self._started


@dataclass(frozen=True)
class Refusal:
    """Why an engine cannot run a query: the clause, and the reason."""

    clause: str
    reason: str


MAX_OVERLAP = 10_000_000


def overlap_refusal(query: Query) -> Refusal | None:
    """Why an engine that looks at every window an event is in cannot run a query."""
    within, slide = query.tree.within, query.tree.slide
    if slide is not None and within.size / slide.size > MAX_OVERLAP:
        return Refusal("WITHIN", f"an event would be in more than {MAX_OVERLAP:,} windows")
    return None


# The events of one trend in time order: (state of the automaton, row of the input).
Trend = tuple[tuple[int, int], ...]


class Engine(Protocol):
    """A way to aggregate trends."""

    name: str
    source: str  # the paper it follows
    idea: str
    can: str  # which queries, in words

    def refuses(self, query: Query) -> Refusal | None:
        """Why this engine cannot run the query; None where it can."""

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The rows of every group and window in which a trend finished; adds to `cost` as it goes."""


@runtime_checkable
class Planner(Engine, Protocol):
    """An engine that runs queries in several ways."""

    def how(self, query: Query) -> str:
        """The way that it takes for a query, and why, in words."""


@runtime_checkable
class TrendBuilder(Engine, Protocol):
    """An engine that can give the trends themselves."""

    def trends(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> Iterator[Trend]:
        """Every trend that counts in some window, once, streamed."""
