"""The position automaton: first, last and follow worked out by hand, and its language compared with Python's `re`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from re import fullmatch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.query import tree
from pipeline.query.automaton import Automaton, Ways, build
from pipeline.query.parser import parse


def automaton(pattern: str) -> Automaton:
    return build(parse(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 1 min").pattern)


def guards(automaton: Automaton, table: Mapping[object, Ways]) -> dict[object, str]:
    """Each entry with the negations that guard it: `B & C` both, `B | C` one of them, nothing where it is free."""
    negated = [str(negation.pattern) for negation in automaton.negations]
    return {
        key: " | ".join(sorted(" & ".join(sorted(negated[n] for n in way)) for way in ways))
        for key, ways in table.items()
    }


def free(*keys: object) -> dict[object, str]:
    return dict.fromkeys(keys, "")


# pattern, types of the states, first, last, follow
BY_HAND = [
    ("A", "A", free(0), free(0), {}),
    ("A+", "A", free(0), free(0), free((0, 0))),
    ("SEQ(A, B, C)", "ABC", free(0), free(2), free((0, 1), (1, 2))),
    ("(SEQ(A+, B))+", "AB", free(0), free(1), free((0, 0), (0, 1), (1, 0))),
    ("SEQ(A, B?, C*)", "ABC", free(0), free(0, 1, 2), free((0, 1), (0, 2), (1, 2), (2, 2))),
    ("OR(A, SEQ(B, C))", "ABC", free(0, 1), free(0, 2), free((1, 2))),
    ("(OR(A, B))+", "AB", free(0, 1), free(0, 1), free((0, 0), (0, 1), (1, 0), (1, 1))),
    ("SEQ(A?, B?)", "AB", free(0, 1), free(0, 1), free((0, 1))),
    ("SEQ(A, A)", "AA", free(0), free(1), free((0, 1))),
    ("A{3}", "AAA", free(0), free(2), free((0, 1), (1, 2))),
    ("A{1,3}", "AAA", free(0), free(0, 1, 2), free((0, 1), (1, 2))),
    ("A{0,2}", "AA", free(0), free(0, 1), free((0, 1))),
    ("A{2,}", "AA", free(0), free(1), free((0, 1), (1, 1))),
    ("SEQ(A, (SEQ(B, C?)){2}, D)", "ABCBCD", free(0), free(5),
     free((0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 5))),
    ("(SEQ(A?, B?))+", "AB", free(0, 1), free(0, 1), free((0, 0), (0, 1), (1, 0), (1, 1))),
    # A negation guards the gap that it stands in.
    ("SEQ(A, !B, C)", "AC", free(0), free(1), {(0, 1): "B"}),
    ("SEQ(!B, A)", "A", {0: "B"}, free(0), {}),
    ("SEQ(A, !B)", "A", free(0), {0: "B"}, {}),
    ("SEQ(A, !B, !C, D)", "AD", free(0), free(1), {(0, 1): "B & C"}),
    ("SEQ(A, OR(!B, !C), D)", "AD", free(0), free(1), {(0, 1): "B | C"}),
    ("SEQ(A, (!B)?, C)", "AC", free(0), free(1), free((0, 1))),
    ("SEQ(A, (!B)+, C)", "AC", free(0), free(1), {(0, 1): "B"}),
    ("(SEQ(A, !B))+", "A", free(0), {0: "B"}, {(0, 0): "B"}),
    ("(SEQ(!B, A))+", "A", {0: "B"}, free(0), {(0, 0): "B"}),
    ("(SEQ(A, !B)){2}", "AA", free(0), {1: "B"}, {(0, 1): "B"}),
    ("SEQ(A+, !B, C)", "AC", free(0), free(1), {(0, 0): "", (0, 1): "B"}),
    ("SEQ(A, !B, C?, !D, E)", "ACE", free(0), free(2), {(0, 1): "B", (1, 2): "D", (0, 2): "B & D"}),
    ("SEQ(A, OR(!B, C), D)", "ACD", free(0), free(2), {(0, 1): "", (1, 2): "", (0, 2): "B"}),
    ("SEQ(A, OR(!B, SEQ(!B, !C)), D)", "AD", free(0), free(1), {(0, 1): "B | B & C"}),
    ("SEQ(A, !SEQ(B, C+), D)", "AD", free(0), free(1), {(0, 1): "SEQ(B, C+)"}),
    ("OR(SEQ(A, !B), C)", "AC", free(0, 1), {0: "B", 1: ""}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "types", "first", "last", "follow"), BY_HAND, ids=[case[0] for case in BY_HAND])
def test_by_hand(
    pattern: str, types: str, first: dict[object, str], last: dict[object, str], follow: dict[object, str]
) -> None:
    built = automaton(pattern)
    assert "".join(*(zip(*(state.types for state in built.states), strict=True))) == types
    assert guards(built, built.first) == first
    assert guards(built, built.last) == last
    assert guards(built, built.follow) == follow


def test_a_way_that_asks_for_more_than_another_is_dropped() -> None:
    # One !B twice is one negation, so that SEQ(!B, !C) asks for more than !B alone.
    built = automaton("SEQ(A, (OR(SEQ(!B, (!C)?), SEQ(!B, !C))){1}, D)")
    assert guards(built, built.follow) == {(0, 1): "B | B & C"}  # two places of B are two negations
    shared = automaton("SEQ(A, (SEQ(!B, (!C)?)){2}, D)")
    assert guards(shared, shared.follow) == {(0, 1): "B"}
    assert len(shared.negations) == 2


def test_a_negation_has_an_automaton_of_its_own() -> None:
    built = automaton("SEQ(A, !SEQ(B, !C, D+), E)")
    (negation,) = built.negations
    assert [state.types for state in negation.automaton.states] == [("B",), ("D",)]
    assert guards(negation.automaton, negation.automaton.follow) == {(0, 1): "C", (1, 1): ""}


def test_the_copies_of_a_repetition_share_their_place_and_their_negations() -> None:
    built = automaton("(SEQ(A x, !B)){3}")
    assert len(built.negations) == 1
    assert len({state.span for state in built.states}) == 1
    assert built.named("x") == {0, 1, 2}


def test_a_name_stands_for_all_its_occurrences() -> None:
    built = automaton("SEQ(A, B x, ANY(A, C) x, A y)")
    assert [sorted(built.named(name)) for name in ("A", "x", "y", "C")] == [[0], [1, 2], [3], []]


# ------------------------------------------------------------------------------------------------------ the language


def paths(automaton: Automaton, word: str) -> int:
    """The number of ways in which the automaton binds a word's letters to its states."""
    types = [state.types for state in automaton.states]
    here = {state: 1 for state in automaton.first if word[0] in types[state]}
    for letter in word[1:]:
        step: dict[int, int] = {}
        for source, target in automaton.follow:
            if letter in types[target] and source in here:
                step[target] = step.get(target, 0) + here[source]
        here = step
    return sum(count for state, count in here.items() if state in automaton.last)


def regex(pattern: tree.Pattern) -> str:
    match pattern:
        case tree.Occurrence(types):
            return f"[{''.join(types)}]"
        case tree.Seq(parts):
            return "".join(map(regex, parts))
        case tree.Or(parts):
            return f"(?:{'|'.join(map(regex, parts))})"
        case tree.Repeat(inner, low, high):
            return f"(?:{regex(inner)}){{{low},{'' if high is None else high}}}"
    raise AssertionError(f"{pattern} is not positive")


def several(parts: st.SearchStrategy[tree.Pattern]) -> st.SearchStrategy[tuple[tree.Pattern, ...]]:
    return st.lists(parts, min_size=1, max_size=3).map(tuple)


BOUNDS = [(1, None), (0, None), (0, 1), (2, 2), (1, 3), (2, None), (0, 2)]
ATOMS = [("a",), ("b",), ("c",), ("a", "b")]
POSITIVE = st.recursive(
    st.sampled_from(ATOMS).map(lambda types: tree.Occurrence(types, None, named=False)),
    lambda inner: st.one_of(
        several(inner).map(tree.Seq),
        several(inner).map(tree.Or),
        st.builds(lambda p, bounds: tree.Repeat(p, *bounds), inner, st.sampled_from(BOUNDS)),
    ),
    max_leaves=6,
)
SHORT = ["".join(letters) for length in range(1, 5) for letters in product("abc", repeat=length)]


@settings(max_examples=300, deadline=None)
@given(POSITIVE)
def test_the_automaton_accepts_what_the_pattern_describes(pattern: tree.Pattern) -> None:
    built, expression = build(pattern), regex(pattern)
    accepted = {word for word in SHORT if paths(built, word)}
    assert accepted == {word for word in SHORT if fullmatch(expression, word)}


@pytest.mark.parametrize(
    ("pattern", "counts"),
    [
        ("a{1,3}", [1, 1, 1, 0]),  # each length once
        ("a{2,}", [0, 1, 1, 1]),
        ("a+", [1, 1, 1, 1]),
        ("(a+)+", [1, 1, 1, 1]),  # whichever + made the edge, it is one edge
        ("(a{1,2})+", [1, 2, 3, 5]),  # the copies are occurrences of their own
        ("(a?){2}", [2, 1, 0, 0]),
        ("OR(a, a)", [2, 0, 0, 0]),
    ],
)
def test_how_often_a_word_is_matched(pattern: str, counts: list[int]) -> None:
    assert [paths(automaton(pattern), "a" * length) for length in range(1, 5)] == counts
