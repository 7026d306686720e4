"""One point of a comparison: a program answers a query over a stream, in a process of its own, under a budget."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from statistics import median
from typing import Any
from unittest.mock import patch

from benchmarks.streams import STREAMS
from pipeline.aggregate.partials import log10
from pipeline.approximate import Approximate
from pipeline.engines import compiled
from pipeline.engines.contract import Cost, Engine, Limits, Row
from pipeline.errors import CannotRunError, DidNotFinishError
from pipeline.events import Events
from pipeline.memory import Peak
from pipeline.query.check import check
from pipeline.run import fit_events

# New processes begin where all is imported and nothing else was done.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["benchmarks.points", "benchmarks.variants", "numba"])
PATIENCE = 300  # seconds that a process may take for all that is not measured, such as to compile
SHORT, LONG = 0.5, 2.0  # seconds: what takes less is repeated, often or once
REPEATS = 5
FEW = 20  # events that load the code


@dataclass(frozen=True)
class Ask:
    """A query over a stream: one of `benchmarks.streams`, and how it is to be."""

    query: str
    stream: str
    shape: Mapping[str, float]


@dataclass(frozen=True)
class Budget:
    """What a point may take."""

    seconds: float
    memory: int  # bytes


@dataclass(frozen=True)
class Measured:
    """What a program took: either it finished, or `lost` says why not."""

    events: int
    lost: str | None = None
    seconds: float = 0.0
    fit_seconds: float = 0.0  # to partition and sort the events, or to start, before that
    memory: int | None = None  # bytes at most, beyond the events
    stored: int | None = None  # aggregates, events and pointers at once, as the papers count
    links: int | None = None  # steps along links
    rows: int = 0
    total: str | None = None  # of the first aggregate over all rows, hexadecimal, where it is exact
    log10: float | None = None  # of that total
    digest: str | None = None  # of all rows, where they are exact

    def agrees(self, other: Measured) -> bool:
        """Whether two programs that finished gave the same answer, as far as both say."""
        if self.digest and other.digest:
            return self.digest == other.digest
        if self.total and other.total:
            return self.total == other.total
        return self.log10 == other.log10 or math.isclose(self.log10 or 0, other.log10 or 0, rel_tol=1e-9)


Program = Callable[[Ask, Budget], Measured]


def programs() -> dict[str, Program]:
    """All that can be measured, by name."""
    from benchmarks import flink, spark_sql
    from benchmarks.variants import VARIANTS

    own: dict[str, Program] = {name: _of(engine) for name, engine in VARIANTS.items()}
    return own | {flink.NAME: flink.run, spark_sql.JOINS: spark_sql.joins}


def _of(engine: Engine) -> Program:
    return lambda ask, budget: run_engine(engine, ask, budget)


def run_engine(engine: Engine, ask: Ask, budget: Budget) -> Measured:
    """Run an engine in this process; what is short several times."""
    query = check(ask.query)
    events = make_events(ask)
    started = time.perf_counter()
    stream = fit_events(query, events, "events").stream
    fitted = time.perf_counter() - started
    taken: list[float] = []
    # Short loops end in plain Python, for a command that is to answer at once: growth would be of two kinds of code.
    with patch.object(compiled, "PLAIN_STEPS", 1):
        try:
            few = fit_events(query, make_events(ask, FEW), "events").stream
            engine.run(query, few, Limits(seconds=budget.seconds), Cost())
            # The first run gets its memory from the system, and so does not count where there are others.
            while not taken or (sum(taken) < SHORT and len(taken) <= REPEATS) or (len(taken) == 1 and taken[0] < LONG):
                gc.collect()
                cost, peak, limits = Cost(), Peak(), Limits(seconds=budget.seconds)
                rows = engine.run(query, stream, limits, cost)
                taken.append(limits.spent)
                memory = peak.added
        except (DidNotFinishError, CannotRunError, MemoryError) as error:
            return Measured(len(events), lost=str(error).splitlines()[0] if str(error) else "out of memory")
    seconds = median(taken[1:] or taken)
    return Measured(len(events), None, seconds, fitted, memory, cost.peak_stored, cost.links, len(rows), **answer(rows))


def make_events(ask: Ask, size: int | None = None) -> Events:
    """The stream, or its like of another size."""
    shape = dict(ask.shape) | ({} if size is None else {"size": size})
    return STREAMS[ask.stream](**shape)


def answer(rows: list[Row]) -> dict[str, Any]:
    """What two programs must agree on."""
    total = sum(value for row in rows if isinstance(value := row.values[0], int | Approximate))
    if any(isinstance(value, Approximate) for row in rows for value in row.values):
        return {"log10": log10(total)}
    # Hexadecimal, since so many decimal digits take long.
    shown = [[*row[:3], *(hex(v) if isinstance(v, int) else repr(v) for v in row.values)] for row in sorted(rows)]
    return {"total": f"{total:x}", "log10": log10(total), "digest": sha256(repr(shown).encode()).hexdigest()}


def measure(program: str, ask: Ask, budget: Budget) -> Measured:
    """Run a point in a process of its own, which is stopped if it takes far more than it may."""
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_send, args=(sender, program, ask, budget))
    process.start()
    sender.close()
    size, most = int(ask.shape["size"]), budget.seconds + PATIENCE
    try:
        if not receiver.poll(most):
            return Measured(size, lost=f"stopped after {most:g} seconds")
        found = receiver.recv()
    except EOFError:
        process.join()
        if (process.exitcode or 0) >= 0:
            raise RuntimeError(f"{program} on {ask} ended with {process.exitcode}") from None
        return Measured(size, lost=f"killed by signal {-(process.exitcode or 0)}, likely for its memory")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)  # with what it has started
        process.join()
    if isinstance(found, str):
        raise RuntimeError(f"{program} on {ask}:\n{found}")
    assert isinstance(found, Measured)
    return found


def _send(sender: Any, program: str, ask: Ask, budget: Budget) -> None:
    """In the process of a point: send what was measured, or what went wrong."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (budget.memory, budget.memory))
    try:
        sender.send(programs()[program](ask, budget))
    except Exception:
        sender.send(traceback.format_exc())
