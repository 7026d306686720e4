"""The parser: it reads back what trees print, knows all spellings, and answers any text with a tree or a message."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.errors import QueryError, TrendsError
from pipeline.query import tree
from pipeline.query.check import check
from pipeline.query.parser import MAX_DEPTH, MAX_NESTING, parse
from pipeline.query.tokens import RESERVED

QUERIES = sorted((Path(__file__).parents[2] / "queries").rglob("*.query"))

# ------------------------------------------------------------------------------------------------------ random trees

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="`\n")
NAMES = st.one_of(
    st.sampled_from(
        ["A", "S", "price", "event", "by", "count", "minutes", "_1", "größe", "SHELF-READING", "3com", "--"]
    ),
    st.sampled_from(sorted(RESERVED)).flatmap(lambda word: st.sampled_from([word, word.lower(), word.title()])),
    st.text(LETTERS, min_size=1, max_size=5),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=5)
NUMBERS = st.integers(0, 10**20) | st.floats(0, allow_infinity=False)


def several(parts: st.SearchStrategy, least: int = 1) -> st.SearchStrategy[tuple]:
    return st.lists(parts, min_size=least, max_size=3).map(tuple)


def repeated(pattern: st.SearchStrategy[tree.Pattern]) -> st.SearchStrategy[tree.Repeat]:
    endless = st.tuples(st.integers(0, 4), st.none())
    bounded = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda b: (b[0], max(b[0] + b[1], 1)))
    return st.builds(lambda p, b: tree.Repeat(p, *b), pattern, endless | bounded)


OCCURRENCES = st.one_of(
    NAMES.map(lambda name: tree.Occurrence((name,), name, named=False)),
    st.builds(lambda name, variable: tree.Occurrence((name,), variable, named=True), NAMES, NAMES),
    several(NAMES, 2).map(lambda names: tree.Occurrence(names, None, named=False)),
    st.builds(lambda names, variable: tree.Occurrence(names, variable, named=True), several(NAMES, 2), NAMES),
)
PATTERNS = st.recursive(
    OCCURRENCES,
    lambda inner: st.one_of(
        several(inner).map(tree.Seq),
        several(inner).map(tree.Or),
        several(inner).map(tree.And),
        repeated(inner),
        inner.map(tree.Not),
        inner.map(tree.Exists),
    ),
    max_leaves=8,
)

CONSTANTS = (NUMBERS | TEXTS).map(tree.Constant)
AGGREGATES = st.one_of(
    st.just(tree.Aggregate("COUNT", None, None)),
    NAMES.map(lambda variable: tree.Aggregate("COUNT", variable, None)),
    st.builds(tree.Aggregate, st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX"]), NAMES, NAMES),
)
EXPRESSIONS = st.recursive(
    st.one_of(st.builds(tree.Attribute, NAMES, NAMES, st.booleans()), CONSTANTS, AGGREGATES, NAMES.map(tree.Name)),
    lambda inner: st.builds(tree.Arithmetic, st.sampled_from("+-*/"), inner, inner) | inner.map(tree.Minus),
    max_leaves=6,
)
SIGNED = TEXTS.map(tree.Constant) | NUMBERS.flatmap(lambda n: st.sampled_from([tree.Constant(n), tree.Constant(-n)]))
CONDITIONS = st.recursive(
    st.one_of(
        st.builds(tree.Comparison, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), EXPRESSIONS, EXPRESSIONS),
        several(st.tuples(NAMES, st.none() | SIGNED)).map(tree.Equivalence),
    ),
    lambda inner: st.one_of(
        several(inner, 2).map(tree.AllOf), several(inner, 2).map(tree.AnyOf), inner.map(tree.Complement)
    ),
    max_leaves=5,
)
EXTENTS = st.one_of(
    st.builds(
        tree.Extent, st.decimals("0.000000001", "100000", places=9).map(Fraction), st.sampled_from(sorted(tree.UNITS))
    ),
    st.builds(tree.Extent, st.integers(1, 10**12).map(Fraction), st.just("events")),
)
TREES = st.builds(
    tree.Query,
    returns=several(st.builds(tree.Item, AGGREGATES | NAMES.map(tree.Name), st.none() | NAMES)),
    pattern=PATTERNS,
    source=st.none() | NAMES,
    semantics=st.sampled_from(tree.Semantics),
    where=st.none() | CONDITIONS,
    group_by=st.builds(tree.GroupBy, st.just(()) | several(NAMES.map(tree.Name))),
    having=st.none() | CONDITIONS,
    within=EXTENTS,
    slide=st.none() | EXTENTS,
)


@settings(max_examples=600, deadline=None)
@given(TREES)
def test_a_tree_reads_back_from_its_text(query: tree.Query) -> None:
    again = parse(str(query))
    assert again == query
    assert str(again) == str(query)  # 5 and 5.0 are equal, but not the same text


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_shipped_query_reads_back_from_its_text(file: Path) -> None:
    query = parse(file.read_text("utf-8"))
    assert parse(str(query)) == query
    assert str(parse(str(query))) == str(query)


def test_there_are_shipped_queries() -> None:
    assert len(QUERIES) > 50


# --------------------------------------------------------------------------------------------------------- spellings

BASE = "RETURN x, COUNT(*) PATTERN SEQ(A+, B) WHERE A.x != 1 AND B.y <= 2 GROUP-BY x WITHIN 10 minutes SLIDE 1 minute"


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("PATTERN", "EVENT"),
        BASE.replace("GROUP-BY", "GROUP BY"),
        BASE.replace("GROUP-BY", "group\n  by"),
        BASE.replace("GROUP-BY", "Group-By"),
        BASE.replace("!=", "≠").replace("<=", "≤").replace(" AND ", " ∧ "),
        BASE.replace("minutes", "min").replace("1 minute", "60 s").replace("60 s", "1 MINUTE"),
        BASE.lower().replace("(a+, b)", "(A+, B)").replace("a.x", "A.x").replace("b.y", "B.y"),
        BASE.replace(" ", "\r\n\t"),
        BASE.replace(" WHERE", " SEMANTICS skip-till-any-match WHERE"),
        "-- first\n" + BASE.replace(" PATTERN", " /* two\nlines -- */ PATTERN") + "--last",
        BASE.replace("SEQ(A+, B)", "((SEQ((A)+, (B))))"),
        BASE.replace("A+", "A{1,}"),
        BASE.replace("A.x", "`A`.`x`"),
        BASE.replace("A.x != 1 AND B.y <= 2", "(((A.x) != (1)) AND ((B.y <= 2)))"),
    ],
)
def test_synonyms(text: str) -> None:
    assert parse(text) == parse(BASE)


def where(text: str) -> tree.Condition | None:
    return parse(f"RETURN COUNT(*) PATTERN A WHERE {text} WITHIN 1 min").where


def pattern(text: str) -> tree.Pattern:
    return parse(f"RETURN COUNT(*) PATTERN {text} WITHIN 1 min").pattern


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A.x − 1 ≥ 2 × A.y ÷ 3", "A.x - 1 >= 2 * A.y / 3"),
        ("A.x = 1 ∨ A.y = 2", "A.x = 1 OR A.y = 2"),
        ("A.a + A.b * A.c = 1", "A.a + (A.b * A.c) = 1"),
        ("A.a - A.b - A.c = 1", "(A.a - A.b) - A.c = 1"),
        ("A.a / A.b * A.c = 1", "(A.a / A.b) * A.c = 1"),
        ("-A.a * A.b = 1", "(-A.a) * A.b = 1"),
        ("A.a = 1 OR A.b = 1 AND A.c = 1", "A.a = 1 OR (A.b = 1 AND A.c = 1)"),
        ("NOT A.a = 1 AND A.b = 1", "(NOT A.a = 1) AND A.b = 1"),
        ("A.a = A.b = A.c", "A.a = A.b AND A.b = A.c"),
        ("1 < A.a <= 2", "1 < A.a AND A.a <= 2"),
        ("A.from = 1", "A.`from` = 1"),
        ("A.x = 'it''s'", "A.x = 'it''s' /* one quote */"),
    ],
)
def test_conditions_that_are_the_same(one: str, other: str) -> None:
    assert where(one) == where(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A.a - (A.b - A.c) = 1", "A.a - A.b - A.c = 1"),
        ("-(A.a * A.b) = 1", "-A.a * A.b = 1"),
        ("(A.a = 1 OR A.b = 1) AND A.c = 1", "A.a = 1 OR A.b = 1 AND A.c = 1"),
        ("NOT (A.a = 1 AND A.b = 1)", "NOT A.a = 1 AND A.b = 1"),
    ],
)
def test_conditions_that_differ(one: str, other: str) -> None:
    assert where(one) != where(other)


def test_a_text_keeps_its_quotes_and_spaces() -> None:
    condition = where("A.x = ' it''s -- `no` /* comment */ '")
    assert isinstance(condition, tree.Comparison)
    assert condition.right == tree.Constant(" it's -- `no` /* comment */ ")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Stock S+", "(Stock S)+"),
        ("!A+", "!(A+)"),
        ("∃ A", "EXISTS A"),
        ("A{2,2}", "A{2}"),
        ("A{0,1}", "A?"),
        ("A{0,}", "A*"),
        ("ANY(A)", "A"),
        ("`A` b", "A b"),
    ],
)
def test_patterns_that_are_the_same(one: str, other: str) -> None:
    assert pattern(one) == pattern(other)


@pytest.mark.parametrize(("one", "other"), [("(!A)+", "!A+"), ("ANY(A, B)", "OR(A, B)"), ("A A", "A"), ("A++", "A+")])
def test_patterns_that_differ(one: str, other: str) -> None:
    assert pattern(one) != pattern(other)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250 ms", Fraction(1, 4)),
        ("0.1 seconds", Fraction(1, 10)),
        ("1.5e1 sec", 15),
        ("2 min", 120),
        ("1 h", 3600),
        ("1 d", 86400),
        ("2 weeks", 1209600),
    ],
)
def test_lengths_of_time_are_exact(text: str, seconds: Fraction) -> None:
    extent = parse(f"RETURN COUNT(*) PATTERN A WITHIN {text}").within
    assert (extent.size, extent.in_events) == (seconds, False)


def test_an_extent_prints_all_its_digits() -> None:
    query = parse("RETURN COUNT(*) PATTERN A WITHIN 123456789.123456789 seconds")
    assert str(query).endswith("WITHIN    123456789.123456789 seconds")


# ------------------------------------------------------------------------------------------------------------ limits


@pytest.mark.parametrize(
    "text",
    [
        "RETURN COUNT(*) PATTERN A WHERE " + "(" * (MAX_NESTING - 1) + "A.x > 5" + ")" * (MAX_NESTING - 1),
        "RETURN COUNT(*) PATTERN A WHERE A.x > 0" + " + A.x" * (MAX_DEPTH - 3),
        "RETURN COUNT(*) PATTERN A WHERE A.x > 0" + " AND A.x > 0" * 2000,
        "RETURN COUNT(*) PATTERN " + "SEQ(" * (MAX_NESTING - 1) + "A" + ")" * (MAX_NESTING - 1),
        "RETURN COUNT(*) PATTERN A" + "+" * (MAX_DEPTH - 1),
    ],
)
def test_what_is_just_allowed_works_to_the_end(text: str) -> None:
    query = check(text + " WITHIN 1 min").tree
    assert parse(str(query)) == query


@pytest.mark.parametrize(
    "text",
    [
        "RETURN COUNT(*) PATTERN A WHERE " + "(" * 5000 + "A.x > 5" + ")" * 5000,
        "RETURN COUNT(*) PATTERN A WHERE " + "NOT " * 5000 + "A.x > 5",
        "RETURN COUNT(*) PATTERN A WHERE " + "- " * 5000 + "A.x > 5",
        "RETURN COUNT(*) PATTERN A WHERE A.x > 0" + " + A.x" * 5000,
        "RETURN COUNT(*) PATTERN A WHERE A.x > " + "9" * 5000,
        "RETURN COUNT(*) PATTERN A WHERE A.x > " + "9" * 350,
        "RETURN COUNT(*) PATTERN " + "!SEQ(A, " * 5000 + "A" + ")" * 5000,
        "RETURN COUNT(*) PATTERN A" + "+" * 5000,
        "RETURN COUNT(*) PATTERN A{" + "9" * 5000 + "}",
        "RETURN COUNT(*) PATTERN A WITHIN 1e-999999999 seconds",
    ],
)
def test_what_is_far_too_much_is_a_message(text: str) -> None:
    with pytest.raises(QueryError):
        check(text + " WITHIN 1 min")


# ---------------------------------------------------------------------------------------------------------- any text

VOCABULARY = """
RETURN PATTERN FROM SEMANTICS WHERE GROUP BY GROUP-BY HAVING WITHIN SLIDE AND OR NOT NEXT SEQ ANY EXISTS AS COUNT SUM
A B x 1 0 2.5 10 minutes events contiguous 'text' `name` ' ` ( ( ) ) [ ] { } , . + - * / ? ! = != < <= > ; @ /* --
"""
WORDS = st.sampled_from([*VOCABULARY.split(), "\n"])


@settings(max_examples=400, deadline=None)
@given(st.lists(WORDS, max_size=20), st.sampled_from(QUERIES), st.integers(0, 60), st.integers(0, 3))
@example([], QUERIES[0], 0, 0)
def test_any_text_has_a_tree_or_a_message(words: list[str], file: Path, at: int, dropped: int) -> None:
    """Words put into a shipped query in the place of some of its own."""
    pieces = file.read_text("utf-8").split(" ")
    text = " ".join([*pieces[:at], *words, *pieces[at + dropped :]])
    try:
        query = check(text).tree
    except TrendsError as error:
        place = str(error).splitlines()[0]
        assert place.startswith("query:")
    else:
        assert parse(str(query)) == query
