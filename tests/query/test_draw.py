"""Pictures of automata: golden files, Graphviz itself, and names that try to break the syntax."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.query.check import check
from pipeline.query.checked import Query
from pipeline.query.draw import MOST_ARROWS, MOST_STATES, as_dot, as_mermaid, printable

GOLDEN = Path(__file__).parent / "golden"
QUERIES = sorted(GOLDEN.glob("*.query"))
NOTATIONS = {".dot": as_dot, ".mmd": as_mermaid}
GRAPHVIZ = shutil.which("dot")
needs_graphviz = pytest.mark.skipif(GRAPHVIZ is None, reason="Graphviz's dot is not on PATH (apt-get install graphviz)")


def golden(path: Path, text: str) -> None:
    """Compare with a golden file; UPDATE_GOLDEN=1 writes it instead, for a reviewer to read."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")


def count(pattern: str, where: str = "") -> Query:
    return check(f"RETURN COUNT(*) PATTERN {pattern} {f'WHERE {where}' if where else ''} WITHIN 1 min SLIDE 1 s")


@pytest.mark.parametrize("suffix", NOTATIONS)
@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_golden(file: Path, suffix: str) -> None:
    golden(file.with_suffix(suffix), NOTATIONS[suffix](check(file.read_text(encoding="utf-8"), file.name)))


# ---- What a picture says ----


@pytest.mark.parametrize(
    ("pattern", "arrow"),
    [
        ("SEQ(A, !C, D)", 's0 -> s1 [label="no C between"]'),
        ("SEQ(A, OR(!B, !C), D)", 's0 -> s1 [label="no B, or no C between"]'),
        ("SEQ(A, !B, !C, D)", 's0 -> s1 [label="no B and no C between"]'),
        ("SEQ(!N, A, B)", 'start -> s0 [label="no N before"]'),
        ("SEQ(A, B, !N)", 's1 -> finish [label="no N after"]'),
        ("SEQ(A, B)", "start -> s0"),
    ],
)
def test_guards_stand_on_their_arrows(pattern: str, arrow: str) -> None:
    assert f"  {arrow}" in as_dot(count(pattern)).split("\n")


def test_what_may_be_skipped_is_not_guarded() -> None:
    assert "s0 -> s1\n" in as_dot(count("SEQ(A, (!C)?, D)"))


def test_conditions_of_negated_events_are_shown() -> None:
    assert 'label="no C between\\nwhere C.x > 5\\nwhere C.y = A.y"' in as_dot(
        count("SEQ(A, !C, D)", "C.x > 5 AND C.y = A.y")
    )


def test_conditions_between_events_that_are_no_neighbours_are_a_note() -> None:
    query = count("SEQ(A, B, C)", "A.x < C.x")
    assert 'label="where A.x < C.x"' in as_dot(query)
    assert 'note["where A.x #lt; C.x"]' in as_mermaid(query)


def test_a_negated_pattern_of_several_states_is_drawn() -> None:
    query = count("SEQ(A, !SEQ(B, !SEQ(C, D), E), F)")
    assert re.findall(r"subgraph (\w+)", as_dot(query)) == ["cluster_n0", "cluster_n0_n0"]
    assert re.findall(r"subgraph (\w+)", as_mermaid(query)) == ["n0", "n0_n0"]
    assert "subgraph" not in as_dot(count("SEQ(A, !B+, F)"))


@pytest.mark.parametrize("pattern", ["A{500}", f"OR({', '.join(f'T{n}' for n in range(50))})+"])
def test_large_automata_are_cut(pattern: str) -> None:
    for text in (as_dot(count(pattern)), as_mermaid(count(pattern))):
        states = len(re.findall(r"^ +s\d+ ?[\[(]", text, re.MULTILINE))
        assert states <= MOST_STATES
        assert len(re.findall("->", text)) <= MOST_ARROWS + 4 * MOST_STATES < 2 * MOST_ARROWS
        assert re.search(rf"and {len(count(pattern).automaton.states) - states} more", text)


# ---- Nothing in a query can break the syntax ----

NASTY = st.text(
    st.sampled_from("\"'\\`<>&#;|[](){}%:-+*_.$~^=!?/\r\t\0\x1b\x85\u2028\u202eé¶ßﬂ°→字 aN1n\n"), min_size=1
)
NAMES = (NASTY | st.text(min_size=1)).map(lambda text: re.sub("[`\n]", "x", text))


def nasty_query(name: str, text: str, attribute: str) -> Query:
    quoted = text.replace("'", "''")
    return check(
        f"RETURN COUNT(*) PATTERN SEQ(!`{name}`, A, !SEQ(`{name}` n, C), `{name}` v+, !(SEQ(B, !`{name}` w))) "
        f"WHERE A.x = '{quoted}' AND v.`{attribute}` < NEXT(v).`{attribute}` AND n.x = '{quoted}' AND n.y < v.y "
        "WITHIN 1 min"
    )


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def labels(text: str, undo: Callable[[str], str]) -> str:
    return squeezed(" ".join(undo(label) for label in re.findall(r'"((?:[^"\\]|\\.)*)"', text)))


def undo_dot(label: str) -> str:
    return html.unescape(re.sub(r"\\(.)", lambda found: " " if found[1] == "n" else found[1], label))


def undo_mermaid(label: str) -> str:
    assert re.fullmatch(r"([^\W_ﬂ]|[ ,.()=!]|#\w+;|<br/>)*", label)
    marked = re.sub(r"#(\d+);", r"&#\1;", label.replace("<br/>", " "))
    return html.unescape(re.sub(r"#([a-z]+);", r"&\1;", marked))


def skeleton(text: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


@given(NAMES, NAMES, NAMES)
@example('%%{init: {"theme": "dark"}}%%', "</br>#quot;\\", 'style:x#";')
@example("\\N\\G\\l", "&amp;&#65;", "\\")
@example("end", "1. list", "- list")
@example("\ud800", "\x00", "--> s1")
def test_names_and_texts_are_escaped(name: str, text: str, attribute: str) -> None:
    query, plain = nasty_query(name, text, attribute), nasty_query("T", "t", "a")
    for notation, undo in ((as_dot, undo_dot), (as_mermaid, undo_mermaid)):
        drawn = notation(query)
        assert all(character.isprintable() or character == "\n" for character in drawn)
        assert skeleton(drawn) == skeleton(notation(plain))
        for shown in (query.automaton.states[1].label, *map(str, query.tree.where.parts)):  # type: ignore[union-attr]
            assert squeezed(printable(shown)) in labels(drawn, undo)
    # Mermaid takes a semicolon away in lines such as `style a:#f00;`.
    assert not re.search(r"(style|classDef).*:\S*#.*;", as_mermaid(query))


# ---- Graphviz accepts it ----


def svg_text(dot: str) -> str:
    assert GRAPHVIZ
    run = subprocess.run([GRAPHVIZ, "-Tsvg"], input=dot.encode(), capture_output=True, check=True, timeout=60)
    assert run.stderr == b""
    texts = ElementTree.fromstring(run.stdout).iter("{http://www.w3.org/2000/svg}text")
    return squeezed(" ".join(text.text or "" for text in texts))


@needs_graphviz
@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_graphviz_draws_it(file: Path) -> None:
    query = check(file.read_text(encoding="utf-8"))
    text = svg_text(as_dot(query))
    assert all(squeezed(state.label) in text for state in query.automaton.states)


@needs_graphviz
@settings(max_examples=15, deadline=None)
@given(NASTY.map(lambda text: re.sub("[`\n]", "x", text)))
@example('"\\N\\G&amp;<b>')
def test_graphviz_shows_any_name_as_it_is(name: str) -> None:
    query = count(f"SEQ(A, `{name}` b)")
    assert squeezed(printable(query.automaton.states[1].label)) in svg_text(as_dot(query))
