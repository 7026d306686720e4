"""The experiments: which engines run which queries over which streams, and what is expected of them."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

from benchmarks import ingest, jobs, memory, queries, streams
from benchmarks.harness import Case, Figure, Ratio, Target, measure
from benchmarks.queries import FALLING, OVERLAP, SLIDE
from pipeline.engines import indexed, pane
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.greta import Greta
from pipeline.engines.pane import Pane
from pipeline.engines.stream import Stream
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics

MILLION = 1_000_000


def type_grained(scale: float) -> list[Figure]:
    """One partition and one window: each event adds a number of so many bits."""
    size = round(10 * MILLION * scale)
    query = queries.letters("SEQ(A+, B)", size)
    cases = []
    for bits, target in {60: 50, 120: 40, 1000: 40, 10_000: 10}.items():
        events = streams.as_then_bs(size, bits)
        cases += [
            Case(f"{engine.name}, {bits} bits", engine, query, events, Target("≥", target))
            for engine in (Pane(), Cogra())
        ]
    query, events = queries.letters("A+", size), streams.as_then_bs(size, size)
    cases += [Case(f"{engine.name}, floats", engine, query, events, Target("≥", 50)) for engine in (Pane(), Cogra())]
    return measure(cases)


def sliding(scale: float) -> list[Figure]:
    """Windows that overlap 60 times; COGRA, which aggregates each by itself, over the beginning of the stream."""
    size = round(10 * MILLION * scale)
    within = OVERLAP * SLIDE
    query, events = queries.letters("SEQ(A, B, C)", within, SLIDE), streams.random_letters(size)
    cases = [
        Case("pane", Pane(), query, events),
        Case("cogra, first tenth", Cogra(), query, streams.random_letters(size // 10)),
        Case("pane, WITHIN = SLIDE", Pane(), queries.letters("SEQ(A, B, C)", within), events),
    ]
    ratios = [
        Ratio("pane", "cogra, first tenth", Target("≥", 6)),
        Ratio("pane, WITHIN = SLIDE", "pane", Target("≤", 2.5)),
    ]
    return measure(cases, ratios)


def any_match(scale: float) -> list[Figure]:
    """One comparison between neighbours in one window: an index against a scan."""
    size, large = round(20_000 * scale), round(MILLION * scale)
    query, events = queries.falling(Semantics.ANY, size), streams.prices(size)
    cases = [Case("pane", Pane(), query, events), Case("greta", Greta(), query, events)]
    # The target is 10 seconds.
    many = Case(
        "pane, 50 times as many", Pane(), queries.falling(Semantics.ANY, large), streams.prices(large), Target("≥", 0.1)
    )
    return measure([*cases, many], [Ratio("pane", "greta", Target("≥", 100))])


def neighbours(scale: float) -> list[Figure]:
    """One comparison between neighbours where each event is extended once."""
    events = streams.prices(round(10 * MILLION * scale))
    windows = {
        "next-match": queries.falling(Semantics.NEXT, SLIDE),
        "contiguous": queries.falling(Semantics.CONTIGUOUS, SLIDE),
        "contiguous, sliding": queries.falling(Semantics.CONTIGUOUS, OVERLAP * SLIDE, SLIDE),
    }
    return measure([Case(f"pane, {name}", Pane(), query, events, Target("≥", 20)) for name, query in windows.items()])


class SeparateWindows(Pane):
    """Pane, where no windows share a traversal."""

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The same rows."""
        with patch.object(indexed, "MAX_WIDTH", 1), patch.object(pane, "slides", lambda *_: False):
            return super().run(query, stream, limits, cost)


def sliding_any_match(scale: float) -> list[Figure]:
    """One comparison between neighbours in windows that overlap 60 times: one traversal for many of them."""
    query, events = queries.q3(), streams.sectors(round(200_000 * scale))
    cases = [Case("pane", Pane(), query, events), Case("pane, separate windows", SeparateWindows(), query, events)]
    return measure(cases, [Ratio("pane", "pane, separate windows", Target("≥", 5))])


def partitions(scale: float) -> list[Figure]:
    """100,000 partitions of 100 events, the time to make them counted in."""
    size = round(10 * MILLION * scale)
    events = streams.partitions(size, each=100)
    forms = {
        "no conditions": (Semantics.ANY, ""),
        "any-match": (Semantics.ANY, f"WHERE {FALLING}"),
        "next-match": (Semantics.NEXT, f"WHERE {FALLING}"),
        "contiguous": (Semantics.CONTIGUOUS, f"WHERE {FALLING}"),
    }
    cases = [
        Case(f"pane, {name}", Pane(), queries.by_company(*form, size), events, Target("≥", 5), with_fit=True)
        for name, form in forms.items()
    ]
    return measure(cases)


EXPERIMENTS: dict[str, Callable[[float], list[Figure]]] = {
    "type-grained": type_grained,
    "sliding": sliding,
    "any-match": any_match,
    "neighbours": neighbours,
    "sliding-any-match": sliding_any_match,
    "partitions": partitions,
    "memory": memory.memory,
    "ingest": ingest.ingest,
    "jobs": jobs.jobs,
}
