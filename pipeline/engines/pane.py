"""Pane: our own engine. It takes the cheapest form of aggregation that a query's conditions allow.

- No conditions between neighbours: all events of one time are one linear map of a few aggregates, under all three
  semantics and with negation. A window that overlaps others is the product of its panes' maps, so that the cost an
  event does not grow with WITHIN / SLIDE, and a part of a partition can be summarised by itself (see summary.py).
- Conditions between neighbours under skip-till-any-match: sums over an index (a tree over the compared attribute, a
  table for an equality, divide and conquer for two comparisons) instead of a scan of all earlier events.
- Under skip-till-next-match and contiguous each event is looked at once, when it is extended.
- What no index answers is scanned, as COGRA does.
"""

from __future__ import annotations

from typing import Protocol

from pipeline.engines.affine import WindowAggregation, affine_refusal
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.index_forms import can_index, index_texts
from pipeline.engines.indexed import IndexedAggregation
from pipeline.engines.neighbours import NeighbourAggregation
from pipeline.engines.neighbours import refusal as neighbour_refusal
from pipeline.engines.online import Aggregation, online_refusal
from pipeline.engines.panes import PaneAggregation, panes_pay
from pipeline.engines.sliding import SlidingAggregation, slides
from pipeline.engines.stream import Stream
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics


class _Rows(Protocol):
    def rows(self) -> list[Row]: ...


class Pane:
    """The engine that takes every short cut."""

    name = "pane"
    source = "this project"
    idea = "linear maps composed by panes; an index where conditions join neighbours"
    can = "all three semantics; conditions on single events and neighbours; negation"

    def refuses(self, query: Query) -> Refusal | None:
        """Why this engine cannot run a query."""
        return online_refusal(query)

    def how(self, query: Query) -> str:
        """Which form of aggregation it takes, and why none that is cheaper."""
        if affine_refusal(query) is None:
            return "a linear map an event; where windows overlap, products of their panes"
        reason = _no_index(query)
        if reason is None:
            if query.semantics is Semantics.ANY:
                return f"an index an edge: {'; '.join(index_texts(query))}"
            return "each event once, when it is extended"
        return f"a scan of the earlier events, since {reason}"

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        return self._aggregation(query, stream, limits, cost).rows()

    def _aggregation(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> _Rows:
        if affine_refusal(query) is None:
            return (PaneAggregation if panes_pay(query, stream) else WindowAggregation)(query, stream, limits, cost)
        if _no_index(query) is not None:
            return Aggregation(query, stream, limits, cost, coarse=True)
        if query.semantics is Semantics.ANY:
            return (SlidingAggregation if slides(query, stream) else IndexedAggregation)(query, stream, limits, cost)
        return NeighbourAggregation(query, stream, limits, cost)


def _no_index(query: Query) -> str | None:
    return can_index(query) if query.semantics is Semantics.ANY else neighbour_refusal(query)
