"""Trials: engines on one window at a time, each under a budget; whatever happens to one is a result."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.aggregate.differences import Difference, Scale, differences
from pipeline.aggregate.partials import Parts, collected
from pipeline.aggregate.tasks import task_limits
from pipeline.aggregate.windows import TRENDS, Stretch, alone, first_events, origin, prefixes
from pipeline.approximate import Approximate
from pipeline.engines.choice import check_can_run
from pipeline.engines.contract import Cost, Engine, Limits
from pipeline.engines.stream import make_stream
from pipeline.errors import CannotRunError, DidNotFinishError
from pipeline.events import Events
from pipeline.memory import Peak
from pipeline.publish.engine_runs import CANNOT_RUN, DID_NOT_FINISH, FAILED, FINISHED
from pipeline.questions import Question

ALWAYS = 2**62  # later than any window


@dataclass(frozen=True)
class Budget:
    """What an engine may take for one window."""

    seconds: float
    trends: int  # that it may build
    memory: int | None = None  # bytes of its aggregates; None: a task's share of the machine

    def __post_init__(self) -> None:
        if self.seconds <= 0 or self.trends <= 0 or (self.memory is not None and self.memory <= 0):
            raise ValueError(f"{self}: nothing can be done with that")

    def limits(self) -> Limits:
        """From now on."""
        memory = task_limits().memory if self.memory is None else self.memory
        return Limits(seconds=self.seconds, trends=self.trends, memory=memory)


@dataclass(frozen=True)
class Attempt:
    """One engine on one window, or on the first events of it."""

    engine: str
    stretch: Stretch
    step: int  # which of the sizes, as `prefixes` has them
    events: int
    status: str
    reason: str | None = None
    rows: int = 0
    trends: int | Approximate = 0  # in all rows
    wall_seconds: float = 0.0  # without compiling
    cpu_seconds: float = 0.0
    peak_stored: int = 0
    peak_memory: int = 0
    compared: bool = False  # with another engine
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class Checked:
    """A window of the night: what was tried, and an engine's rows of the whole window to compare the night's with."""

    stretch: Stretch
    attempts: tuple[Attempt, ...]
    engine: str | None  # that has the rows; None: none finished
    rows: Parts
    scale: Scale


Tried = tuple[Attempt, Parts | None]  # the rows, where it finished


class Trial:
    """The events of one window, with their times counted from its start."""

    def __init__(self, question: Question, stretch: Stretch, events: Events, budget: Budget) -> None:
        self.question, self.stretch, self.budget = question, stretch, budget
        self.query = alone(question.query)
        self.origin = origin(question.reach, stretch)
        self.events = replace(events, time=events.time - self.origin)
        self.spent = 0.0  # seconds, by all engines

    def run(self, engine: Engine, step: int, size: int) -> Tried:
        """An engine on the window's first events; no mishap goes beyond it."""
        attempt = Attempt(engine.name, self.stretch, step, size, FINISHED)
        cost, peak, cpu, limits = Cost(), Peak(), time.process_time(), self.budget.limits()
        rows: Parts | None = None
        try:
            check_can_run(self.query, engine)
            stream = make_stream(self.query, first_events(self.events, size))
            rows = collected(self.query, stream, engine.run(self.query, stream, limits, cost), -ALWAYS, ALWAYS)
        except CannotRunError as error:
            return replace(attempt, status=CANNOT_RUN, reason=str(error)), None
        except DidNotFinishError as error:
            attempt = replace(attempt, status=DID_NOT_FINISH, reason=str(error))
        except MemoryError as error:
            attempt = replace(attempt, status=DID_NOT_FINISH, reason=f"out of memory: {error}")
        except Exception as error:
            attempt = replace(attempt, status=FAILED, reason=f"{type(error).__name__}: {error}")
        spent = limits.spent
        self.spent += spent
        attempt = replace(
            attempt,
            wall_seconds=spent,
            # An engine has one thread: what is more was for compiling.
            cpu_seconds=min(time.process_time() - cpu, spent),
            peak_stored=cost.peak_stored,
            peak_memory=peak.added,
        )
        if rows is None:
            return attempt, None
        at = self.query.aggregates.index(TRENDS)
        attempt = replace(attempt, rows=len(rows), trends=sum(values[at] for values in rows.values()))  # type: ignore[misc]
        moved = {(start + self.origin, end + self.origin, group): row for (start, end, group), row in rows.items()}
        return attempt, moved

    def scale(self, size: int) -> Scale:
        """What rounded values over the first events are measured by."""
        return Scale.of(self.query, first_events(self.events, size))

    def compared(self, tried: Sequence[Tried]) -> list[Attempt]:
        """Each engine that finished on the same events against the first that did."""
        finished = [(attempt.engine, rows) for attempt, rows in tried if rows is not None]
        if len(finished) < 2:
            return [attempt for attempt, _ in tried]
        size = tried[0][0].events
        prefix = None if size == len(self.events) and self.stretch.whole else size
        scale = self.scale(size)
        found = []
        for attempt, rows in tried:
            if rows is not None:
                pair = (attempt.engine, rows), finished[0]
                unlike = differences(self.question, self.query, scale, *pair, prefix)
                attempt = replace(attempt, compared=True, differences=unlike)
            found.append(attempt)
        return found


def stepping_up(trial: Trial, engines: Sequence[Engine]) -> list[Attempt]:
    """All engines on more and more of the window, as long as the first one finishes, and then on all of it.

    An engine that did not finish is not tried on more.
    """
    sizes, found = prefixes(trial.events.time), []
    lost: dict[str, str] = {}
    for step, size in sizes:
        if engines[0].name in lost and size < len(trial.events):
            continue
        tried: list[Tried] = []
        for engine in engines:
            if engine.name in lost:
                reason = lost[engine.name]
                tried.append((Attempt(engine.name, trial.stretch, step, size, DID_NOT_FINISH, reason), None))
                continue
            attempt, rows = trial.run(engine, step, size)
            if attempt.status == DID_NOT_FINISH:
                lost[engine.name] = f"not tried: it did not finish on {size:,} events"
            tried.append((attempt, rows))
        found += trial.compared(tried)
    return found


def check_night(
    trial: Trial, night: Engine, others: Sequence[Engine], baseline: Engine, seconds: float = math.inf
) -> Checked:
    """The rows of a whole window for the night's to be compared with, and the night's engine where trends can be built.

    Of the other engines the first that finishes gives the rows, as the baseline does if it can. Where the baseline
    does not finish, it, the night's engine and another are run on as many of the first events as it can. Once so many
    seconds are spent, only what there is no comparison without is still done.
    """
    sizes = prefixes(trial.events.time)
    attempts: list[Attempt] = []
    whole: list[Tried] = []
    for engine in others if trial.stretch.whole else ():
        if trial.spent < seconds and not any(rows is not None for _, rows in whole):
            whole.append(trial.run(engine, *sizes[-1]))
    if baseline.name != night.name:
        best = _furthest(trial, baseline, sizes, seconds)
        attempt, rows = best
        if attempt.events == len(trial.events) and trial.stretch.whole:
            whole.insert(0, best)
        elif rows is None:
            attempts.append(attempt)
        else:
            again = (trial.run(engine, attempt.step, attempt.events) for engine in (night, *others[:1]))
            attempts += trial.compared([best, *again])
    attempts += trial.compared(whole)
    finished = [(attempt.engine, rows) for attempt, rows in whole if rows is not None]
    name, found = finished[0] if finished else (None, {})
    asked = {key: row for key, row in found.items() if trial.stretch.holds(key[1])}
    return Checked(trial.stretch, tuple(attempts), name, asked, trial.scale(len(trial.events)))


def _furthest(trial: Trial, engine: Engine, sizes: Sequence[tuple[int, int]], seconds: float) -> Tried:
    """An engine on the most events that it finishes on; on the fewest where it does not finish on these."""
    best = trial.run(engine, *sizes[0])
    for step, size in sizes[1:]:
        if best[1] is None or trial.spent >= seconds:
            break
        tried = trial.run(engine, step, size)
        if tried[1] is None:
            break
        best = tried
    return best
