"""Checked queries: which kind each condition is, which states and edges it constrains, and what is warned about."""

from __future__ import annotations

import pytest

from pipeline.events import Kind
from pipeline.query import checked
from pipeline.query.check import check
from pipeline.query.checked import Machine


def query(pattern: str, where: str = "", returns: str = "COUNT(*)", rest: str = "") -> checked.Query:
    condition = f"WHERE {where}" if where else ""
    return check(f"RETURN {returns} PATTERN {pattern} {condition} {rest} WITHIN 10 minutes SLIDE 1 minute")


def kinds(pattern: str, where: str) -> list[tuple[str, str]]:
    return [(predicate.kind.value, predicate.place) for predicate in query(pattern, where).predicates]


def local(machine: Machine) -> dict[int, list[str]]:
    return {state: [str(condition) for condition in conditions] for state, conditions in machine.local.items()}


def adjacent(machine: Machine) -> dict[tuple[int, int], list[str]]:
    """On each edge, its conditions with the events that the edge leaves and enters."""
    return {
        edge: [f"{pair.condition} ({pair.earlier} → {pair.later})" for pair in pairs]
        for edge, pairs in machine.adjacent.items()
    }


# ------------------------------------------------------------------------------------------------- which kind it is


@pytest.mark.parametrize(
    ("pattern", "where", "expected"),
    [
        ("SEQ(A+, B)", "A.x > 5", [("local", "each A")]),
        ("SEQ(A+, B)", "A.x > 5 OR A.y = 'a'", [("local", "each A")]),
        ("SEQ(A+, B)", "A.x < A.y", [("local", "each A")]),
        ("SEQ(A+, B)", "[x] AND [y = 'a']", [("equivalence", "partitions the stream")] * 2),
        ("SEQ(A+, B)", "A.x < B.x", [("adjacent", "A → B")]),
        ("SEQ(A+, B)", "B.x > A.x", [("adjacent", "A → B")]),
        ("SEQ(A+, B)", "A.x > NEXT(A).x", [("adjacent", "A → A")]),
        ("(SEQ(A+, B))+", "B.x < NEXT(A).x", [("adjacent", "B → A")]),
        ("SEQ(A, B, C)", "A.x < C.x", [("other", "every A, C of a trend")]),
        ("SEQ(A, B, C)", "A.x + B.x < C.x", [("other", "every A, B, C of a trend")]),
        ("SEQ(A, B, C)", "A.x < NEXT(C).x", [("other", "every A, NEXT(C) of a trend")]),
        ("OR(A, B)", "A.x < B.x", [("other", "every A, B of a trend")]),
        ("SEQ(A, !B, C)", "B.x > 5", [("local", "each B, negated")]),
        ("SEQ(A, !SEQ(B, D), C)", "B.x < D.x", [("adjacent", "B → D, negated")]),
        ("SEQ(A, !SEQ(B, D, E), C)", "B.x < E.x", [("other", "every B, E of a trend, negated")]),
        ("SEQ(A, !B, C)", "A.x = B.x", [("link", "negated B with A")]),
        ("SEQ(A, !B, C)", "A.x + C.x < B.x", [("link", "negated B with A, C")]),
        ("SEQ(A, !B, C)", "A.x < C.x", [("adjacent", "A → C")]),
    ],
)
def test_kind(pattern: str, where: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(pattern, where) == expected


def test_where_splits_at_its_top_level_ands() -> None:
    found = kinds("SEQ(A, B, C)", "([k] AND A.x = B.x = C.x) AND (A.x > 1 OR A.y > 1 AND A.z > 1)")
    assert [kind for kind, _ in found] == ["equivalence", "adjacent", "adjacent", "local"]


# ------------------------------------------------------------------------------------------------------ which states


@pytest.mark.parametrize(
    ("pattern", "where", "states"),
    [
        ("SEQ(A, B)", "A.x > 5", {0}),
        ("SEQ(A, B, A)", "A.x > 5", {0, 2}),  # a repeated type: all its occurrences
        ("SEQ(A x, B x, A y)", "x.v > 5", {0, 1}),
        ("SEQ(A{3}, B)", "A.x > 5", {0, 1, 2}),
        ("SEQ(A, ANY(A, B) c)", "c.x > 5", {1}),
    ],
)
def test_a_local_condition_is_on_every_occurrence(pattern: str, where: str, states: set[int]) -> None:
    machine = query(pattern, where).machine
    assert local(machine) == {state: [where] for state in states}
    assert (machine.adjacent, machine.other) == ({}, ())


@pytest.mark.parametrize(
    ("pattern", "where", "edges", "direction"),
    [
        ("SEQ(A, B)", "A.x < B.x", {(0, 1)}, "A → B"),
        # The pattern's order counts, not the condition's.
        ("SEQ(B, A)", "A.x < B.x", {(0, 1)}, "B → A"),
        ("(SEQ(A+, B))+", "A.x < B.x", {(0, 1)}, "A → B"),
        ("(SEQ(A+, B))+", "B.x > A.x", {(0, 1)}, "A → B"),
        # A way back only with NEXT, or where there is no other.
        ("(SEQ(A+, B))+", "B.x < NEXT(A).x", {(1, 0)}, "B → NEXT(A)"),
        ("(SEQ(A, X, B))+", "A.x < B.x", {(2, 0)}, "B → A"),
        ("(SEQ(A+, B))+", "A.x < NEXT(A).x", {(0, 0)}, "A → NEXT(A)"),
        ("(SEQ(A+, B))+", "A.x < NEXT(B).x", {(0, 1)}, "A → NEXT(B)"),
        ("SEQ(A+, B, A)", "A.x < NEXT(A).x", {(0, 0)}, "A → NEXT(A)"),
        ("(SEQ(A, A))+", "A.x < NEXT(A).x", {(0, 1), (1, 0)}, "A → NEXT(A)"),
        ("(OR(A, B))+", "A.x < B.x", {(0, 1)}, "A → B"),
        # A name for several occurrences means all of them.
        ("OR(SEQ(A x, B y), SEQ(C x, D y))", "x.v < y.v", {(0, 1), (2, 3)}, "x → y"),
        ("SEQ(A x, C, A x, B y)", "x.v < y.v", {(2, 3)}, "x → y"),
        # The copies of {n} are one place.
        ("SEQ(A{2}, B)", "A.x < B.x", {(1, 2)}, "A → B"),
        ("(SEQ(A, B)){2}", "A.x < B.x", {(0, 1), (2, 3)}, "A → B"),
        ("(SEQ(A, B)){2}", "B.x < NEXT(A).x", {(1, 2)}, "B → NEXT(A)"),
        ("A{3}", "A.x < NEXT(A).x", {(0, 1), (1, 2)}, "A → NEXT(A)"),
        ("A{2,}", "A.x < NEXT(A).x", {(0, 1), (1, 1)}, "A → NEXT(A)"),
        ("SEQ(A{1,2}, B?)", "A.x < B.x", {(0, 2), (1, 2)}, "A → B"),
        ("SEQ(A, !N, B)", "A.x < B.x", {(0, 1)}, "A → B"),
        ("SEQ(A, B)", "A.x < B.x OR A.y = 1", {(0, 1)}, "A → B"),
        ("SEQ(A, B)", "NOT (A.x < B.x)", {(0, 1)}, "A → B"),
        ("SEQ(A, B)", "A.x + 2 * A.y < B.x - 1", {(0, 1)}, "A → B"),
    ],
)
def test_an_adjacent_condition_is_on_these_edges(
    pattern: str, where: str, edges: set[tuple[int, int]], direction: str
) -> None:
    machine = query(pattern, where).machine
    assert adjacent(machine) == {edge: [f"{where} ({direction})"] for edge in edges}
    assert (machine.local, machine.other) == ({}, ())


def test_a_name_between_two_others_is_compared_with_both() -> None:
    machine = query("SEQ(A x, B y, A x)", "x.v < y.v").machine
    assert adjacent(machine) == {(0, 1): ["x.v < y.v (x → y)"], (1, 2): ["x.v < y.v (y → x)"]}


@pytest.mark.parametrize(
    ("pattern", "where", "references", "states", "ordered"),
    [
        ("SEQ(A, B, C)", "C.x > A.x", ["C", "A"], [{2}, {0}], False),
        ("SEQ(A, B, C+)", "A.x + B.x < C.x", ["A", "B", "C"], [{0}, {1}, {2}], False),
        ("SEQ(A, B, C{2})", "NEXT(C).x > A.x", ["A", "NEXT(C)"], [{0}, {2, 3}], True),
    ],
)
def test_an_other_condition_is_on_every_combination(
    pattern: str, where: str, references: list[str], states: list[set[int]], ordered: bool
) -> None:
    machine = query(pattern, where).machine
    (other,) = machine.other
    assert [str(reference) for reference in other.references] == references
    assert (list(other.states), other.ordered) == (states, ordered)
    assert (machine.local, machine.adjacent) == ({}, {})


# ---------------------------------------------------------------------------------------------------------- negation


def test_a_negated_patterns_conditions_are_its_own() -> None:
    machine = query("SEQ(A, !SEQ(B, D+), C)", "B.x > 5 AND B.x < D.x AND D.x < NEXT(D).x AND D.y = A.y").machine
    (guard,) = machine.guards
    assert (machine.local, machine.adjacent, machine.other) == ({}, {}, ())
    assert local(guard.machine) == {0: ["B.x > 5"]}
    assert adjacent(guard.machine) == {(0, 1): ["B.x < D.x (B → D)"], (1, 1): ["D.x < NEXT(D).x (D → NEXT(D))"]}
    (link,) = guard.links
    assert (str(link.condition), [r.variable for r in link.inner], [r.variable for r in link.outer]) == (
        "D.y = A.y", ["D"], ["A"]
    )  # fmt: skip


def test_a_link_may_have_ands_inside() -> None:
    (guard,) = query("SEQ(A, !B, C)", "NOT (A.x = B.x OR B.y = C.y)").machine.guards
    assert [r.variable for r in guard.links[0].outer] == ["A", "C"]


def test_a_negation_within_a_negation_is_linked_with_what_is_right_around_it() -> None:
    machine = query("SEQ(A, !SEQ(B, !C, D), E)", "C.x = B.x").machine
    (inner,) = machine.guards[0].machine.guards
    assert machine.guards[0].links == ()
    assert [str(link.condition) for link in inner.links] == ["C.x = B.x"]


def test_a_name_that_is_negated_too_means_both() -> None:
    machine = query("SEQ(A, !A, B)", "A.x > 5 AND A.y < B.y").machine
    assert local(machine) == local(machine.guards[0].machine) == {0: ["A.x > 5"]}
    assert adjacent(machine) == {(0, 1): ["A.y < B.y (A → B)"]}
    assert [str(link.condition) for link in machine.guards[0].links] == ["A.y < B.y"]


def test_each_negation_has_its_own_links() -> None:
    machine = query("SEQ(A, !B, C, !D)", "A.x = B.x AND C.x = D.x").machine
    assert [[str(link.condition) for link in guard.links] for guard in machine.guards] == [["A.x = B.x"], ["C.x = D.x"]]


# ---------------------------------------------------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    ("pattern", "where", "between"),
    [
        ("SEQ(A, X?, B)", "A.x < B.x", "X"),
        ("SEQ(A, X*, Type y?, B)", "A.x < B.x", "Type y, X"),
        ("SEQ(A, X?, B)", "A.x < NEXT(B).x", "X"),
        ("(SEQ(A+, B))+", "A.x < NEXT(A).x", "B"),
        ("SEQ(A, OR(B, SEQ(X, B)))", "A.x < B.x", "X"),
        ("SEQ(A, !SEQ(B, X?, C), D)", "B.x < C.x", "X"),
        # Only what leads on to B: Y does not.
        ("OR(SEQ(A, X?, B), SEQ(A, Y))", "A.x < B.x", "X"),
    ],
)
def test_other_events_may_lie_between(pattern: str, where: str, between: str) -> None:
    (warning,) = query(pattern, where).warnings
    assert warning.message.endswith(f"neighbours in the trend; other events ({between}) may lie between")


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("SEQ(A, B)", "A.x < B.x"),
        ("SEQ(A+, B+)", "A.x < B.x"),
        ("SEQ(X?, A, B, X?)", "A.x < B.x"),
        ("SEQ(A, !X, B)", "A.x < B.x"),
        ("SEQ(A{2}, B{2})", "A.x < B.x"),
        ("A+", "A.x < NEXT(A).x"),
        ("SEQ(A, X, B)", "A.x < B.x"),  # never neighbours: every pair is compared
        ("SEQ(A, X?, B)", "A.x < 1 AND B.x < 1"),
        ("SEQ(A, X, B)", "A.x < NEXT(B).x"),
    ],
)
def test_nothing_to_warn_about(pattern: str, where: str) -> None:
    assert query(pattern, where).warnings == ()


@pytest.mark.parametrize(
    ("pattern", "where", "message"),
    [
        ("SEQ(A, B)", "B.x < NEXT(A).x", "this condition never applies: no A comes after B"),
        ("SEQ(A, B)", "A.x < NEXT(A).x", "this condition never applies: no A comes after A"),
        ("OR(A, B)", "A.x < NEXT(B).x", "this condition never applies: no B comes after A"),
    ],
)
def test_a_condition_that_never_applies(pattern: str, where: str, message: str) -> None:
    checked_query = query(pattern, f"A.y > 1 AND {where}")
    (warning,) = checked_query.warnings
    assert warning.message == message
    assert checked_query.text[warning.span.start : warning.span.end] == where


# ------------------------------------------------------------------------------------------------ the other clauses


def test_keys_are_equivalences_and_groups_each_once() -> None:
    found = query("A+", "[a, b = 'v'] AND [b, c = -1]", "a, d, COUNT(*)", "GROUP-BY a, d")
    assert (found.keys, found.group_by) == (("a", "b", "c", "d"), ("a", "d"))
    assert {name: value.value for name, value in found.key_values.items()} == {"b": "v", "c": -1}


def test_an_equality_written_out_does_not_partition() -> None:
    assert query("SEQ(A, B)", "A.id = B.id").keys == ()


def test_aggregates_of_return_and_having_each_once() -> None:
    found = query("A+", "", "COUNT(*) AS n, SUM(A.x)", "HAVING n > 1 AND COUNT(*) > 1 AND MAX(A.y) > SUM(A.x)")
    assert list(map(str, found.aggregates)) == ["COUNT(*)", "SUM(A.x)", "MAX(A.y)"]


@pytest.mark.parametrize(
    ("where", "returns", "having", "kind"),
    [
        ("A.x = 'a'", "COUNT(*)", "", Kind.TEXT),
        ("A.x > 5", "COUNT(*)", "", Kind.NUMBER),
        ("A.y > A.x + 1", "COUNT(*)", "", Kind.NUMBER),
        ("A.y > -A.x", "COUNT(*)", "", Kind.NUMBER),
        ("A.x = A.y", "COUNT(*)", "", Kind.ANY),
        ("[x]", "COUNT(*)", "", Kind.ANY),
        ("[x = 'a']", "COUNT(*)", "", Kind.TEXT),
        ("[x] AND A.x > 5", "COUNT(*)", "", Kind.NUMBER),
        ("A.y = 1", "SUM(A.x)", "", Kind.NUMBER),
        ("A.y = 1", "AVG(A.x)", "", Kind.NUMBER),
        ("A.y = 1", "MIN(A.x)", "", Kind.ORDERED),
        ("A.y = 1", "COUNT(A.x)", "", Kind.ANY),
        ("A.y = 1", "COUNT(*)", "HAVING MIN(A.x) > 'a'", Kind.TEXT),
        ("A.y = 1", "MAX(A.x) AS most", "HAVING most > 5", Kind.NUMBER),
        ("A.y = 1", "x, COUNT(*)", "GROUP-BY x HAVING x = 'a'", Kind.TEXT),
        ("A.y = 1", "x AS z, COUNT(*)", "GROUP-BY x HAVING z + 1 > 5", Kind.NUMBER),
    ],
)
def test_the_kind_that_an_attribute_must_be(where: str, returns: str, having: str, kind: Kind) -> None:
    assert query("A+", where, returns, having).uses["x"].kind is kind


def test_results_are_named_by_alias_or_canonical_text() -> None:
    items = query("Stock `a b`+", "", "count( * ), sum(`a b`.price), avg(`a b`.`from`) as mean").tree.returns
    assert [item.label for item in items] == ["COUNT(*)", "SUM(`a b`.price)", "mean"]
