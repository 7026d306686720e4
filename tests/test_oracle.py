"""The oracle itself: DESIGN.md's numbers, cases worked by hand, and a second brute force over the pattern's words."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import cache, reduce
from itertools import combinations, pairwise, product

import pytest
from hypothesis import HealthCheck, given, settings

from tests.oracle import Event, answer, compiled, finished_trends, trends
from tests.oracle_query import (
    Aggregate,
    Atom,
    Attr,
    Binary,
    Const,
    Negated,
    Not,
    Opt,
    Or,
    Pattern,
    Plus,
    Query,
    Repeat,
    Seq,
    Term,
    Window,
)
from tests.strategies import SEMANTICS, Shape, cases, patterns, stream, stream_text, streams

ANY, NEXT, CONTIGUOUS = SEMANTICS
ALL = Window(100, 100)
A, B, C, D = (Atom((name,)) for name in "ABCD")


def count(pattern: Pattern, text: str, semantics: str = ANY, *where: Term) -> int:
    return len(list(trends(Query(pattern, ALL, semantics=semantics, where=where), stream(text))))


def rows(pattern: Pattern, text: str, window: Window) -> list[tuple[int, int, int]]:
    return [tuple(row.values()) for row in answer(Query(pattern, window), stream(text))]  # type: ignore[misc]


def less(left: Term, right: Term) -> Binary:
    return Binary("<", left, right)


# ---- DESIGN.md section 3 ----


@pytest.mark.parametrize(("semantics", "expected"), [(ANY, 43), (NEXT, 8), (CONTIGUOUS, 2)])
def test_the_running_example(semantics: str, expected: int) -> None:
    assert count(Plus(Seq((Plus(A), B))), "a1 b2 a3 a4 c5 b6 a7 b8", semantics) == expected


def test_the_running_example_without_one_edge() -> None:
    text = "a1{x=0} b2{x=0} a3{x=0} a4{x=0} c5 b6{x=1} a7{x=1} b8{x=0}"
    apart = Binary("!=", Binary("+", Attr("B", "x"), Attr("A", "x", next=True)), Const(2))
    assert count(Plus(Seq((Plus(A), B))), text, ANY, apart) == 33


def test_negation_in_the_middle() -> None:
    pattern = Seq((A, Plus(B), Not(C), D))
    assert count(pattern, "a1 b2 b3 b4 c5 b6 b7 b8 d9") == 56
    assert count(pattern, "a1 b2 c3 d4 b5 d6", NEXT) == 1


def test_sum_of_a_sequence() -> None:
    query = Query(Seq((A, C, D)), ALL, (Aggregate("SUM", "C", "x"), Aggregate("AVG", "C", "x")))
    (row,) = answer(query, stream("a1 c2{x=10} d3 c4{x=1} d5"))
    assert (row["SUM(C.x)"], row["AVG(C.x)"]) == (21, 7.0)


# ---- Worked by hand ----


@pytest.mark.parametrize(
    ("pattern", "text", "semantics", "expected"),
    [
        (Seq((A, B)), "a1 a2 b3", NEXT, 2),
        (Seq((A, B)), "a1 b1 b2 b2 b3", NEXT, 2),
        (Plus(A), "a1 a1 a2", ANY, 5),
        (Seq((A, B)), "a1 c2 b2", CONTIGUOUS, 1),
        (Seq((A, B)), "a1 c2 b3", CONTIGUOUS, 0),
        (Repeat(A, 2, 3), "a1 a2 a3", ANY, 4),
        (Repeat(Plus(A), 2, 2), "a1 a2 a3", ANY, 5),  # three pairs, and a1 a2 a3 split in two ways
        (Repeat(Plus(A), 2, None), "a1 a2 a3", ANY, 5),
        (Or((A, A)), "a1", ANY, 2),
        (Seq((Opt(A), Opt(B))), "a1 b2", ANY, 3),
        (Seq((A, Opt(B), C)), "a1 b2 c3", NEXT, 1),  # b2 extends a1 first
        (Seq((A, Not(C), B)), "a1 c1 c3 b3", ANY, 1),  # strictly between
        (Seq((A, Not(C), B)), "a1 c2 b3 b4", NEXT, 0),
        (Seq((Not(C), A)), "a1 c2 a3", ANY, 1),
        (Seq((A, Not(C))), "a1 c2 a3", ANY, 1),
        (Plus(Seq((A, Not(C)))), "a1 c2 a3", ANY, 1),
        (Seq((A, Or((Not(C), Not(D))), B)), "a1 c2 b3", ANY, 1),
        (Seq((A, Or((Not(C), Not(D))), B)), "a1 c2 d2 b3", ANY, 0),
        (Seq((A, Not(C), Not(D), B)), "a1 c2 b3", ANY, 0),
        (Seq((A, Opt(Not(C)), B)), "a1 c2 b3", ANY, 1),
        (Seq((A, Not(Seq((C, D))), B)), "a1 d2 c3 b4", ANY, 1),
        (Seq((A, Not(Seq((Not(D), C))), B)), "a1 d2 c3 b4", ANY, 1),  # d2 takes c3's force
        (Seq((A, Not(Seq((Not(D), C))), B)), "d0 a1 c3 b4", ANY, 0),  # d0 lies outside of the gap
    ],
    ids=str,
)
def test_counts(pattern: Pattern, text: str, semantics: str, expected: int) -> None:
    assert count(pattern, text, semantics) == expected


def test_windows() -> None:
    ab = Seq((A, B))
    assert rows(ab, "a2 b3", Window(4, 2)) == [(0, 4, 1), (2, 6, 1)]
    assert rows(ab, "a-1 b0", Window(3, 2)) == [(-2, 1, 1)]
    assert rows(ab, "a1 b3 a4 b5 b8", Window(5)) == [(-2, 3, 1), (0, 5, 3), (3, 8, 2)]
    assert rows(ab, "a1 b3 a4 b5 b8", Window(4)) == [(-1, 3, 1), (1, 5, 1)]
    assert rows(ab, "a1 c1 b2 a3 b3", Window(3, 2, "events")) == [(0, 3, 1)]  # a3 and b3 are tied
    assert rows(ab, "a1 c1 b2 a3 b3", Window(3, None, "events")) == [(-1, 2, 1)]


def test_negation_at_the_ends_of_a_window() -> None:
    leading, trailing = Seq((Not(C), A, B)), Seq((A, B, Not(C)))
    assert rows(leading, "c1 a2 b3", Window(3, 1)) == [(2, 5, 1)]
    assert rows(leading, "c1 a2 b3", Window(3)) == []
    assert rows(leading, "c1 a2 b3", Window(2)) == [(1, 3, 1)]
    assert rows(trailing, "a2 b3 c4", Window(3, 1)) == [(1, 4, 1)]
    assert rows(trailing, "a2 b3 c4", Window(3)) == []
    assert rows(trailing, "a2 b3 c4", Window(2)) == [(1, 3, 1)]
    assert rows(trailing, "a2 b3 c4", Window(2, None, "events")) == [(-1, 1, 1)]
    assert rows(trailing, "a2 b3 c4", Window(3, None, "events")) == []


def test_a_condition_constrains_the_edge_from_the_earlier_variable_to_the_later() -> None:
    loop, text = Plus(Seq((A, B))), "a1{x=0} b2{x=1} a3{x=2} b4{x=3}"
    assert count(loop, text, ANY, less(Attr("A", "x"), Attr("B", "x"))) == 4
    assert count(loop, text, ANY, less(Attr("B", "x"), Attr("A", "x"))) == 0
    assert count(loop, text, ANY, less(Attr("A", "x", next=True), Attr("B", "x"))) == 3


def test_conditions_without_an_edge_hold_for_every_pair() -> None:
    same = Binary("=", Attr("A", "x"), Attr("C", "x"))
    assert count(Seq((A, Plus(B), C)), "a1{x=1} b2 c3{x=2} c4{x=1}", ANY, same) == 1
    assert count(Seq((A, Opt(B), C)), "a1{x=1} b2 c3{x=2}", ANY, same) == 1  # a1 → c3 is an edge: a1 b2 c3 is free
    assert count(Seq((A, B)), "a1 b2", ANY, less(Attr("A", "x"), Attr("A", "x", next=True))) == 1


def test_next_match_looks_for_the_first_event_that_satisfies_the_conditions() -> None:
    rising = less(Attr("A", "x"), Attr("A", "x", next=True))
    assert count(Plus(A), "a1{x=2} a2{x=1} a3{x=3}", NEXT, rising) == 5
    assert count(Plus(A), "a1{x=2} a2{x=1} a3{x=3}", CONTIGUOUS, rising) == 4


def test_nulls_are_two_valued() -> None:
    positive = Binary(">", Attr("A", "x"), Const(0))
    assert count(A, "a1 a2{x=0} a3{x=1}", ANY, positive) == 1
    assert count(A, "a1 a2{x=0} a3{x=1}", ANY, Negated(positive)) == 2
    assert count(A, "a1 a2{x=0} a3{x=1}", ANY, Negated(less(Binary("/", Const(1), Attr("A", "x")), Const(9)))) == 2


def test_a_negation_linked_to_the_trend() -> None:
    pattern = Seq((Atom(("A",), "U"), B, Not(Atom(("C",), "N")), D))
    far = Binary("=", Attr("N", "x"), Attr("U", "x"))
    near = less(Attr("N", "x"), Attr("D", "x"))
    assert count(pattern, "a1{x=1} a1{x=2} b2 c3{x=1} d4 d5", ANY, far) == 2
    assert count(pattern, "a1{x=1} a1{x=2} b2 c3{x=1} d4 d5", NEXT, far) == 1
    assert count(pattern, "a1 b2 c3{x=1} d4{x=2} d5{x=0} d6{x=0}", NEXT, near) == 1
    leading = Seq((Not(Atom(("C",), "N")), Plus(Atom(("A",), "U"))))  # of the trend's events, the first is meant
    assert count(leading, "c1{x=1} a2{x=1} a3{x=2}", ANY, far) == 1


def test_groups_keys_and_having() -> None:
    text = "a1{g=1,h=p} b2{g=1,h=p} b3{g=1,h=q} a4{g=1,h=q} b5{g=1,h=q} a5{h=q} b6{h=q} "
    text += "a7{g=2,h=p} b8{g=2,h=p} b9{g=2,h=p}"
    query = Query(Seq((A, B)), ALL, keys=("h",), group_by=("g",))
    assert [(row["g"], row["COUNT(*)"]) for row in answer(query, stream(text))] == [(1, 2), (2, 2)]
    only_p = Query(Seq((A, B)), ALL, fixed=(("h", "p"),), having=(Binary(">", Aggregate("COUNT"), Const(2)),))
    assert [row["COUNT(*)"] for row in answer(only_p, stream(text))] == [5]
    assert answer(replace(only_p, having=(Binary(">", Aggregate("COUNT"), Const(5)),)), stream(text)) == []


def test_aggregates_without_a_value_are_null() -> None:
    of_x = (Aggregate(function, "A", "x") for function in ("COUNT", "SUM", "AVG", "MIN", "MAX"))
    returns = (*of_x, Aggregate("COUNT", "A"))
    (row,) = answer(Query(A, ALL, returns), stream("a1 a2"))
    assert list(row.values())[2:] == [0, None, None, None, None, 2]


# ---- A second brute force: the words of the pattern, without its automaton ----

Occurrence = tuple[tuple[int, ...], Atom]
Gap = frozenset[Pattern]
Word = tuple[tuple[Occurrence, ...], tuple[Gap, ...]]  # the gaps are before, between and after the occurrences
LONGEST = 6
EXAMPLES = int(os.environ.get("TRENDS_EXAMPLES", "300"))
EMPTY: Word = ((), (frozenset(),))


@cache
def words(pattern: Pattern, place: tuple[int, ...] = ()) -> set[Word]:
    """What the pattern means: its words of at most LONGEST occurrences; each copy that `{n,m}` makes is its own."""
    match pattern:
        case Atom():
            return {(((place, pattern),), (frozenset(), frozenset()))}
        case Not(part):
            return {((), (frozenset({part}),))}
        case Or(parts):
            return {word for i, part in enumerate(parts) for word in words(part, (*place, i))}
        case Seq(parts):
            return reduce(chained, [words(part, (*place, i)) for i, part in enumerate(parts)])
        case Repeat(part, least, most):
            copies = [words(part, (*place, i)) for i in range(most or max(least, 1))]
            if most is None:
                once = copies[-1]
                while len(more := copies[-1] | chained(copies[-1], once)) > len(copies[-1]):
                    copies[-1] = more
            lengths = range(least, len(copies) + 1)
            return {word for n in lengths for word in reduce(chained, copies[:n], {EMPTY})}


def chained(left: set[Word], right: set[Word]) -> set[Word]:
    both = (((*a, *b), (*gaps[:-1], gaps[-1] | more[0], *more[1:])) for (a, gaps), (b, more) in product(left, right))
    return {word for word in both if len(word[0]) <= LONGEST}


def word_matches(pattern: Pattern, events: list[Event], semantics: str) -> set[tuple[tuple[Occurrence, ...], str]]:
    """Every choice of events in strict order of time, against every word; a negation's match is found the same way."""
    language = words(pattern)
    edges = {(v, gap, w) for word, gaps in language for v, gap, w in zip(word, gaps[1:], word[1:], strict=False)}

    @cache
    def clear(gap: Gap, low: float, high: float) -> bool:
        return not any(word_matches(n, [e for e in events if low < e.time < high], ANY) for n in gap)

    def used_up(x: Event, occurrence: Occurrence, y: Event) -> bool:
        inside = [e for e in events if x.time < e.time < y.time]
        return any(
            e.type in w[1].types and clear(gap, x.time, e.time)
            for v, gap, w in edges
            if v == occurrence
            for e in inside
        )

    result = set()
    for length in range(1, LONGEST + 1):
        for places in combinations(range(len(events)), length):
            chosen = [events[i] for i in places]
            spans = list(pairwise([-math.inf, *(e.time for e in chosen), math.inf]))
            if any(low >= high for low, high in spans):
                continue
            if semantics == CONTIGUOUS and any(low < e.time < high for low, high in spans[1:-1] for e in events):
                continue
            for word, gaps in language:
                if (
                    len(word) == length
                    and all(e.type in atom.types for e, (_, atom) in zip(chosen, word, strict=True))
                    and all(clear(gap, *span) for gap, span in zip(gaps, spans, strict=True))
                    and not (semantics == NEXT and any(map(used_up, chosen, word, chosen[1:])))
                ):
                    result.add((word, str(places)))
    return result


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_the_patterns_words_give_the_same_number(semantics: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(patterns(Shape(), ("A", "B", "C")).filter(few_states), streams(("A", "B", "C"), most=LONGEST))
    def check(pattern: Pattern, events: list[Event]) -> None:
        expected = len(word_matches(pattern, events, semantics))
        found = list(trends(Query(pattern, Window(100), semantics=semantics), events))
        assert len(found) == expected, f"{pattern} on {stream_text(events)}"

    check()


def few_states(pattern: Pattern) -> bool:
    """Few enough for every edge to be in a word of LONGEST occurrences."""
    return 0 < len(compiled(pattern).states) <= 3


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_a_trend_counts_once_in_each_window_and_queries_print(case: tuple[Query, list[Event]]) -> None:
    query, events = case
    found = [(f.start, f.end, tuple((id(s), e.position) for s, e in f.path)) for f in finished_trends(query, events)]
    assert len(found) == len(set(found))
    assert stream_text(stream(stream_text(events))) == stream_text(events)
    assert str(query).startswith("RETURN ")
