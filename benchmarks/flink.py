"""The same trends with Flink CEP: a small Java program over the jars of the package apache-flink-libraries.

Flink has no part in the product: `make bench` installs it, and what it needs beyond, a Java compiler, must be there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np

from benchmarks.points import Ask, Budget, Measured, make_events
from pipeline.aggregate.partials import log10
from pipeline.engines.negation_index import matching
from pipeline.query.check import check
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
    """Count the trends of one window of all events: each is a match, so that Flink builds all of them."""
    started = time.perf_counter()
    query = check(ask.query)
    events = make_events(ask)
    stream = fit_events(query, events, "events").stream
    states = query.automaton.states
    bound = sum(matching(query.machine, state.index, stream).astype(np.int32) << state.index for state in states)
    in_time = np.argsort(stream.time, kind="stable")
    pairs = np.column_stack([stream.part, bound])[in_time].astype("<i4")
    pattern = "".join("+" if (one.index, one.index) in query.automaton.follow else "1" for one in states)
    with tempfile.TemporaryDirectory(prefix="trendmill-flink-") as folder:
        data = Path(folder) / "events"
        data.write_bytes(pairs.tobytes())
        jars = _jars()
        subprocess.run(["javac", "-cp", jars, "-d", folder, DRIVER], check=True, capture_output=True)
        java = ["java", f"-Xmx{HEAP * budget.memory / 2**20:.0f}m", *OPENED, "-cp", f"{folder}:{jars}", DRIVER.stem]
        try:
            ran = subprocess.run(
                [*java, data, pattern, SEMANTICS[query.semantics], f"{budget.seconds}"], capture_output=True, text=True,
                timeout=budget.seconds + START,
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


def _jars() -> str:
    found = [str(file.locate()) for file in files(PACKAGE) or () if file.match("pyflink/lib/*.jar")]
    return ":".join(found)
