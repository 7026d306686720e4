"""GRETA: one aggregate an event, in a graph of adjacent events; no trend is built.

Poppe, Lei, Rundensteiner, Maier: GRETA: Graph-based Real-time Event Trend Aggregation (VLDB 2017), as COGRA
(SIGMOD 2019) describes and compares it: skip-till-any-match, quadratic in the events of a window.

- Every matched event is a vertex with the aggregates of all trends that end at it: the sum of its predecessors', plus
  one new trend if it may begin one.
- Windows are aggregated one by one, so that the cost grows with their overlap.

Where the paper takes events one by one, events of equal time are never adjacent here. Negation is looked up by index
instead of marking vertices as incompatible.
"""

from __future__ import annotations

from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.online import Aggregation, online_refusal
from pipeline.engines.stream import Stream
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics


class Greta:
    """The event-grained engine."""

    name = "greta"
    source = "Poppe, Lei, Rundensteiner, Maier: GRETA (VLDB 2017)"
    idea = "one aggregate an event, in a graph of adjacent events"
    can = "skip-till-any-match; conditions on single events and neighbours; negation"

    def refuses(self, query: Query) -> Refusal | None:
        """Why this engine cannot run a query."""
        if query.semantics is not Semantics.ANY:
            return Refusal("SEMANTICS", f"it knows skip-till-any-match only, not {query.semantics.value}")
        return online_refusal(query)

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        return Aggregation(query, stream, limits, cost, coarse=False).rows()
