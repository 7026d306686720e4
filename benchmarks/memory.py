"""The memory that an engine takes besides the events, each in a process of its own; Linux measures it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import queries, streams
from benchmarks.harness import Figure, Target, progress
from benchmarks.queries import FALLING, OVERLAP, SLIDE
from pipeline.engines.aseq import Aseq
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Cost, Engine, Limits
from pipeline.engines.pane import Pane
from pipeline.events import Events
from pipeline.memory import Peak
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics
from pipeline.run import fit_events

ROOT = Path(__file__).parents[1]
SIZE = 10_000_000
COMPILES = 50_000  # events that are enough for an engine to load its compiled code
WITHIN = OVERLAP * SLIDE
LETTERS = queries.letters("SEQ(A, B, C)", WITHIN)
COMPANIES = partial(streams.partitions, each=100)

CASES: dict[str, tuple[Engine, Query, Callable[[int], Events]]] = {
    "aseq": (Aseq(), LETTERS, streams.random_letters),
    "cogra, any-match": (Cogra(), LETTERS, streams.random_letters),
    "cogra, next-match": (Cogra(), queries.falling(Semantics.NEXT, SLIDE), streams.prices),
    "cogra, contiguous": (Cogra(), queries.falling(Semantics.CONTIGUOUS, SLIDE), streams.prices),
    "pane, no conditions": (Pane(), LETTERS, streams.random_letters),
    "pane, no conditions, sliding": (Pane(), queries.letters("SEQ(A, B, C)", WITHIN, SLIDE), streams.random_letters),
    "pane, any-match": (Pane(), queries.falling(Semantics.ANY, SLIDE), streams.prices),
    "pane, any-match, sliding": (Pane(), queries.q3(), streams.sectors),
    "pane, any-match, partitions": (
        Pane(),
        queries.by_company(Semantics.ANY, f"WHERE {FALLING}", SIZE),
        COMPANIES,
    ),
    "pane, next-match": (Pane(), queries.falling(Semantics.NEXT, SLIDE), streams.prices),
    "pane, contiguous": (Pane(), queries.falling(Semantics.CONTIGUOUS, SLIDE), streams.prices),
    "pane, contiguous, sliding": (Pane(), queries.falling(Semantics.CONTIGUOUS, WITHIN, SLIDE), streams.prices),
}


def memory(scale: float) -> list[Figure]:
    """How far the resident size rises above that with the columns and the compiled code loaded."""
    size = round(SIZE * scale)
    figures = []
    for name in CASES:
        progress(f"  {name}")
        command = [sys.executable, "-m", "benchmarks.memory", name, str(size)]
        run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
        figures.append(Figure(name, "MB", [float(run.stdout)], Target("≤", 200), {"events": size}))
    return figures


def main(name: str, size: int) -> None:
    """Run one case, and print by how many megabytes the resident size rose."""
    engine, query, make = CASES[name]
    for events in (min(size, COMPILES), size):
        stream = fit_events(query, make(events), "events").stream
        peak = Peak()
        engine.run(query, stream, Limits(), Cost())
    print(peak.added / 2**20)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
