"""Negations worked out by hand, one line each: pattern, condition, stream, number of trends."""

from __future__ import annotations

import pytest

from tests.product import product_rows
from tests.strategies import stream

CASES = [
    # Several events may begin or end the negated sequence.
    ("SEQ(A, !SEQ(OR(B, C), D), E)", "", "a1 b2 d3 e4", 0),
    ("SEQ(A, !SEQ(OR(B, C), D), E)", "", "a1 c2 d3 e4", 0),
    ("SEQ(A, !SEQ(OR(B, C), D), E)", "", "a1 d2 b3 e4", 1),
    ("SEQ(A, !SEQ(B, OR(C, D)), E)", "", "a1 b2 c3 e4 b5 e6", 0),
    ("SEQ(A, !SEQ(B, OR(C, D)), E)", "", "a1 c2 b3 e4 d5 e6", 1),
    # Its events lie strictly between, and strictly after each other.
    ("SEQ(A, !SEQ(B, C), E)", "", "a1 b1 c2 e3", 1),
    ("SEQ(A, !SEQ(B, C), E)", "", "a1 b2 c2 e3", 1),
    ("SEQ(A, !SEQ(B, C), E)", "", "a1 b2 c3 e3", 1),
    ("SEQ(A, !SEQ(B, C), E)", "", "a1 b2 c3 e4", 0),
    # Its own conditions: local, between neighbours, between others.
    ("SEQ(A, !SEQ(B, C), E)", "B.x < C.x", "a1 b2{x=2} c3{x=1} e4", 1),
    ("SEQ(A, !SEQ(B, C), E)", "B.x < C.x", "a1 b2{x=2} b3{x=0} c4{x=1} e5", 0),
    ("SEQ(A, !SEQ(B+, C), E)", "B.x < NEXT(B).x AND C.x = 1", "a1 b2{x=2} b3{x=0} c4{x=2} e5", 1),
    ("SEQ(A, !SEQ(B, D, C), E)", "B.x < C.x", "a1 b2{x=2} d3 c4{x=1} e5", 1),
    ("SEQ(A, !SEQ(B, D, C), E)", "B.x < C.x", "a1 b2{x=0} d3 c4{x=1} e5", 0),
    # A link to a repeated variable means the event at the gap's end; to one elsewhere, every event of it.
    ("SEQ(A+, !B, E)", "B.x < A.x", "a1{x=1} a2{x=5} b3{x=3} e4", 1),
    ("SEQ(A+, D, !B, E)", "B.x < A.x", "a1{x=1} a2{x=5} d3 b4{x=3} e5", 2),
    # A negation within a negation guards the negated pattern's own gap, up to the ends of the outer one.
    ("SEQ(A, !SEQ(B, !D, C), E)", "", "a1 b2 d3 c4 e5", 1),
    ("SEQ(A, !SEQ(!D, C), E)", "", "d1 a2 c3 e4", 0),
    ("SEQ(A, !SEQ(!D, C), E)", "", "a1 d2 c3 e4", 1),
    # Before the first event and after the last, within the window of 100 seconds.
    ("SEQ(!SEQ(B, C), A)", "", "b1 c2 a3 a150", 1),
    ("SEQ(!SEQ(B, C), A)", "", "b1 a2 c3 a4", 1),
    ("SEQ(A, !SEQ(B, C))", "", "a1 b2 c3 a4 b99 c101", 1),
    # One of several ways is enough.
    ("SEQ(A, OR(!B, !C), E)", "", "a1 b2 e3", 1),
    ("SEQ(A, OR(!B, !C), E)", "", "a1 b2 c3 e4", 0),
    ("SEQ(A, (!B)?, E)", "", "a1 b2 e3", 1),
]


@pytest.mark.parametrize(("pattern", "condition", "events", "count"), CASES)
def test_count(pattern: str, condition: str, events: str, count: int) -> None:
    where = f"WHERE {condition} " if condition else ""
    query = f"RETURN COUNT(*) PATTERN {pattern} {where}WITHIN 100 seconds SLIDE 100 seconds"
    assert sum(row["COUNT(*)"] for row in product_rows(query, stream(events), "sase")) == count
