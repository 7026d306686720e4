"""COGRA: aggregates at the coarsest grain that the query allows; no trend is built.

Poppe, Lei, Rundensteiner, Maier: Event Trend Aggregation Under Rich Event Matching Semantics (SIGMOD 2019).

The static analyzer (the paper's table 5) chooses the grain by semantics and conditions between neighbours:

- type-grained: under skip-till-any-match a state keeps one aggregate for all its events.
- mixed-grained: the same, but events are kept one by one where a condition on an edge out of their state needs them, or
  a negation whose matches depend on conditions between its own events. Other negations multiply a state's aggregates
  by what was seen of them.
- pattern-grained: under skip-till-next-match and contiguous only the events that a later one may still extend matter:
  a state's trends are forgotten once they are extended, or interrupted.

Windows are aggregated one by one, so that the cost grows with their overlap.

The paper's algorithms 1 to 3 take events one by one; here events of equal time are never adjacent. Its algorithm 3
keeps one last event, but under skip-till-next-match an event may extend several (`SEQ(A, B)` on `a1 a2 b3` has two
trends), so that all events that wait to be extended are kept. Its negation forgets the last event altogether; here a
negated match between two events keeps just these two apart.
"""

from __future__ import annotations

from pipeline.engines.affine import WindowAggregation, affine_refusal
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.neighbours import NeighbourAggregation
from pipeline.engines.neighbours import refusal as neighbour_refusal
from pipeline.engines.online import Aggregation, online_refusal
from pipeline.engines.stream import Stream
from pipeline.query.automaton import FREE
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics


class Cogra:
    """The coarse-grained engine."""

    name = "cogra"
    source = "Poppe, Lei, Rundensteiner, Maier: COGRA (SIGMOD 2019)"
    idea = "one aggregate a state, an event where conditions need it"
    can = "all three semantics; conditions on single events and neighbours; negation"

    def refuses(self, query: Query) -> Refusal | None:
        """Why this engine cannot run a query."""
        return online_refusal(query)

    def how(self, query: Query) -> str:
        """The granularity of its aggregates, by the paper's table 5, and what it keeps events for."""
        joined = {
            edge for edge, ways in query.automaton.follow.items() if edge in query.machine.adjacent or ways != FREE
        }
        if query.semantics is not Semantics.ANY:
            return "pattern-grained: only the events that may still be extended matter"
        if affine_refusal(query) is None:
            return "type-grained: one aggregate a state"
        states = query.automaton.states
        kept = ", ".join(dict.fromkeys(states[v].label for v, _ in sorted(joined)))
        return f"mixed-grained: one aggregate a state, and one an event of {kept}, which conditions or negations join"

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        if affine_refusal(query) is None:
            return WindowAggregation(query, stream, limits, cost).rows()
        if query.tree.slide == query.tree.within and neighbour_refusal(query) is None:
            return NeighbourAggregation(query, stream, limits, cost).rows()
        return Aggregation(query, stream, limits, cost, coarse=True).rows()
