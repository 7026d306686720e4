"""Skip-till-next-match and contiguous with conditions between neighbours, against the oracle and against COGRA."""

from __future__ import annotations

from hypothesis import given

from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.neighbours import NeighbourAggregation, refusal
from pipeline.engines.stream import Stream
from pipeline.query.check import check
from pipeline.query.checked import Query as Checked
from tests.engines.test_against_oracle import many, report, same
from tests.oracle import Event, answer
from tests.oracle_query import Query
from tests.product import product_rows
from tests.strategies import SEMANTICS, Shape, cases

NEIGHBOURS = Shape(semantics=SEMANTICS[1:], negations=0, conditions=("local", "pair", "next", "next"))


class Neighbours:
    """The aggregation alone, as an engine."""

    name = source = idea = can = "neighbours"

    def refuses(self, query: Checked) -> Refusal | None:
        reason = refusal(query)
        return Refusal("PATTERN", reason) if reason else None

    def run(self, query: Checked, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        return NeighbourAggregation(query, stream, limits, cost).rows()


def agrees(query: Query, events: list[Event]) -> None:
    if refusal(check(str(query))) is None:
        expected, rows = answer(query, events), product_rows(str(query), events, Neighbours())
        assert same(rows, expected), report(query, events, "neighbours", rows, expected)


@many
@given(cases(NEIGHBOURS))
def test_rows_are_the_oracles(case: tuple[Query, list[Event]]) -> None:
    agrees(*case)
