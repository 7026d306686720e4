"""The same trends with Flink CEP: a small Java program over the jars of the package apache-flink-libraries.

Flink has no part in the product: `make bench` installs it, and what it needs beyond, a Java compiler, must be there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np

from benchmarks.points import Ask, Budget, Measured, make_events
from pipeline.aggregate.partials import log10
from pipeline.engines import evaluate
from pipeline.engines.index_forms import index_forms
from pipeline.engines.negation_index import matching
from pipeline.engines.stream import Stream
from pipeline.events import Array, Numbers
from pipeline.query.check import check
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics
from pipeline.run import fit_events

NAME = "flink cep"
PACKAGE = "apache-flink-libraries"
DRIVER = Path(__file__).parent / "flink_driver" / "TrendCount.java"
START = 60  # seconds that Java may take to start Flink
HEAP = 0.75  # of the memory: Java takes some beyond its heap
SEMANTICS = {Semantics.ANY: "any", Semantics.NEXT: "next", Semantics.CONTIGUOUS: "contiguous"}
# What Flink's serialisers open.
OPENED = tuple(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("util", "lang"))


def missing() -> str | None:
    """Why Flink cannot run here; None where it can."""
    try:
        files(PACKAGE)
    except PackageNotFoundError:
        return f"{PACKAGE} is not installed: make bench installs it"
    return None if shutil.which("javac") else "no Java compiler (javac) is on PATH"


def run(ask: Ask, budget: Budget) -> Measured:
    """Count the trends of windows that do not overlap: each is a match, so that Flink builds all of them."""
    started = time.perf_counter()
    query = check(ask.query)
    events = make_events(ask)
    stream = fit_events(query, events, "events").stream
    states = query.automaton.states
    bound = sum(matching(query.machine, state.index, stream).astype(np.int32) << state.index for state in states)
    in_time = np.argsort(stream.time, kind="stable")
    written = np.zeros(len(events), [("key", "<i4"), ("bound", "<i4"), ("earlier", "<f8"), ("later", "<f8")])
    written["key"], written["bound"] = _keys(stream), bound
    if query.machine.adjacent:
        written["earlier"], written["later"] = _compared(query, stream)
    with tempfile.TemporaryDirectory(prefix="trendmill-flink-") as folder:
        data = Path(folder) / "events"
        data.write_bytes(written[in_time].tobytes())
        jars = _jars()
        subprocess.run(["javac", "-cp", jars, "-d", folder, DRIVER], check=True, capture_output=True)
        java = ["java", f"-Xmx{HEAP * budget.memory / 2**20:.0f}m", *OPENED, "-cp", f"{folder}:{jars}", DRIVER.stem]
        try:
            ran = subprocess.run(
                [*java, data, _pattern(query), SEMANTICS[query.semantics], f"{budget.seconds}"],
                capture_output=True, text=True, timeout=budget.seconds + START,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Measured(len(events), lost=f"did not finish in {budget.seconds:g} seconds")
    if "OutOfMemoryError" in ran.stderr + ran.stdout:
        return Measured(len(events), lost="out of memory")
    ran.check_returncode()
    found = json.loads(ran.stdout.splitlines()[-1])
    if found["seconds"] > budget.seconds:
        return Measured(len(events), lost=f"did not finish in {budget.seconds:g} seconds")
    matches, before = found["matches"], time.perf_counter() - started - found["seconds"]
    return Measured(
        len(events),
        seconds=found["seconds"],
        fit_seconds=before,
        memory=found["heap"],
        rows=1,
        total=f"{matches:x}",
        log10=log10(matches),
    )


def _keys(stream: Stream) -> Array:
    """A number for each partition of a window: to Flink, which has no such windows, they are keys."""
    window = stream.window
    assert window.slide == window.within
    frame = stream.place // window.within
    return np.unique(stream.part * (frame.max() + 1) + frame, return_inverse=True)[1]


def _pattern(query: Query) -> str:
    """The pattern as the driver reads it: a sequence, perhaps of Kleene closures, perhaps all of it one."""
    follow, last = query.automaton.follow, len(query.automaton.states) - 1
    closure = ">" if query.machine.adjacent else "+"
    elements = "".join(closure if (at, at) in follow else "1" for at in range(last + 1))
    return f"({elements})" if last and (last, 0) in follow else elements


def _compared(query: Query, stream: Stream) -> Iterator[Array]:
    """What neighbours compare: an expression of the earlier one, which must be more than one of the later."""
    [form] = index_forms(query).values()  # of the only edge
    assert form is not None
    [sides] = form.ordered
    assert sides.op == ">"
    for side in (sides.x, sides.y):
        found = evaluate.value(side, lambda attribute: stream.columns[attribute.attribute])
        assert isinstance(found, Numbers)
        yield found.values


def _jars() -> str:
    found = [str(file.locate()) for file in files(PACKAGE) or () if file.match("pyflink/lib/*.jar")]
    return ":".join(found)
