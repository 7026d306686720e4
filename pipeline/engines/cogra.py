"""COGRA: aggregates at the coarsest grain that the query allows; no trend is built.

Poppe, Lei, Rundensteiner, Maier: Event Trend Aggregation Under Rich Event Matching Semantics (SIGMOD 2019).

- Under skip-till-any-match a state keeps one aggregate for all its events (type grain); events are kept one by one only
  where a condition or a negation on an edge out of their state needs them (mixed grain).
- Under skip-till-next-match and contiguous only the events that a later one may still extend are looked at.
- Windows are aggregated one by one, so that the cost grows with their overlap.

The paper's algorithms 1 to 3 take events one by one; here events of equal time are never adjacent. Its algorithm 3
keeps one last event, but under skip-till-next-match an event may extend several (`SEQ(A, B)` on `a1 a2 b3` has two
trends), so that all events that wait to be extended are kept. Its negation forgets the last event altogether; here a
negated match between two events keeps just these two apart.
"""

from __future__ import annotations

from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.online import Aggregation, online_refusal
from pipeline.engines.stream import Stream
from pipeline.query.checked import Query


class Cogra:
    """The coarse-grained engine."""

    name = "cogra"
    source = "Poppe, Lei, Rundensteiner, Maier: COGRA (SIGMOD 2019)"
    idea = "one aggregate a state, an event where conditions need it"
    can = "all three semantics; conditions on single events and neighbours; negation"

    def refuses(self, query: Query) -> Refusal | None:
        """Why this engine cannot run a query."""
        return online_refusal(query)

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        return Aggregation(query, stream, limits, cost, coarse=True).rows()
