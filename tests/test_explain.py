"""The plan of a query: golden texts, windows in words, engines and why, JSON that any reader takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from pipeline.engines import choice
from pipeline.engines.contract import Cost, Limits, Refusal, Row
from pipeline.engines.stream import Stream
from pipeline.explain import as_json, as_text, explain
from pipeline.explain.text import WIDTH
from pipeline.query.check import check
from pipeline.query.checked import Query
from tests.query.test_draw import QUERIES, golden


@dataclass(frozen=True)
class Stub:
    """An engine that says whether it can, so that golden texts do not change with the engines there are."""

    name: str
    refusal: Refusal | None = None
    source = can = ""
    idea = "an idea"

    def refuses(self, query: Query) -> Refusal | None:
        return self.refusal

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        raise NotImplementedError


UNABLE = Stub("fast", Refusal("PATTERN", "it knows no Kleene closure"))
ENGINES = (UNABLE, Stub("middling"), Stub("slow"))


def query(
    pattern: str = "A", where: str = "", rest: str = "WITHIN 1 min SLIDE 10 s", returns: str = "COUNT(*)"
) -> Query:
    return check(f"RETURN {returns} PATTERN {pattern} {f'WHERE {where}' if where else ''} {rest}")


def plan(*arguments: str, **named: str) -> dict[str, Any]:
    return as_json(explain(query(*arguments, **named)))


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_golden(file: Any) -> None:
    checked = check(file.read_text(encoding="utf-8"), file.name)
    golden(file.with_suffix(".txt"), as_text(explain(checked, ENGINES)))


# ---- Pattern ----


@pytest.mark.parametrize(
    ("pattern", "where", "line"),
    [
        ("SEQ(Start S, Load L+)", "", "Start S → Load L"),
        ("SEQ(Start S, Load L+)", "L.cpu < NEXT(L).cpu", "Load L → Load L  when L.cpu < NEXT(L).cpu"),
        ("SEQ(B, !C, D)", "", "B → D  if no C lies between"),
        ("SEQ(B, OR(!C, !E), D)", "", "B → D  if no C, or no E, lies between"),
        ("SEQ(B, !C, D)", "B.x < D.x", "B → D  when B.x < D.x, if no C lies between"),
        ("A{3}", "", "A #1 → A #2"),
        ("SEQ(!N, A)", "", "A  if no N lies before it in the window"),
        ("SEQ(A, !N)", "", "A  if no N lies after it in the window"),
    ],
)
def test_steps_read_as_lines(pattern: str, where: str, line: str) -> None:
    found = plan(pattern, where)["pattern"]
    assert line in [step["text"] for part in ("first", "follow", "last") for step in found[part]]


def test_a_moving_window_judges_outer_negations_by_the_trend() -> None:
    pattern = plan("SEQ(!N, A, !M)", rest="WITHIN 1 min")["pattern"]
    assert pattern["first"][0]["text"] == "A  if no N lies before it and after the trend's end − 1 minute"
    assert pattern["last"][0]["text"] == "A  if no M lies after it and before the trend's start + 1 minute"


def test_negations_say_what_they_guard() -> None:
    negations = plan("SEQ(!N, A, OR(!B, !C), D, !SEQ(E, !F, G))", "B.x > 1 AND C.x = A.x")["pattern"]["negations"]
    assert [(n["pattern"]["text"], n["guards"], n["conditions"]) for n in negations] == [
        ("N", ["the gap before A"], []),
        ("B", ["A → D (one of 2 ways)"], ["B.x > 1"]),
        ("C", ["A → D (one of 2 ways)"], ["C.x = A.x"]),
        ("SEQ(E, !F, G)", ["the gap after D"], []),
    ]
    assert negations[3]["pattern"]["negations"][0]["guards"] == ["E → G"]


def test_predicates_have_kind_and_place() -> None:
    where = "[k] AND A.x > 1 AND A.x < B.x AND A.x < C.x AND N.x = A.x"
    assert [tuple(p.values()) for p in plan("SEQ(A, !N, B, C)", where)["predicates"]] == [
        ("equivalence", "[k]", "partitions the stream"),
        ("local", "A.x > 1", "each A"),
        ("adjacent", "A.x < B.x", "A → B"),
        ("other", "A.x < C.x", "every A, C of a trend"),
        ("link", "N.x = A.x", "negated N with A"),
    ]


# ---- Other clauses ----


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (
            "10 minutes SLIDE 10 seconds",
            "10 minutes, sliding by 10 seconds, aligned to the epoch in UTC: an event is in 60 windows",
        ),
        (
            "1 min SLIDE 25 s",
            "1 minute, sliding by 25 seconds, aligned to the epoch in UTC: an event is in 2 or 3 windows",
        ),
        ("1 h SLIDE 1 h", "1 hour, one after the other, aligned to the epoch in UTC: an event is in one window"),
        ("1 h SLIDE 60 min", "1 hour, one after the other, aligned to the epoch in UTC: an event is in one window"),
        ("10 minutes", "moves with every event: at time t it holds (t − 10 minutes, t]"),
        (
            "9 events SLIDE 3 events",
            "9 events, sliding by 3 events, from the first event on: an event is in 3 windows, "
            "the first events in fewer",
        ),
        (
            "9 events SLIDE 9 events",
            "9 events, one after the other, from the first event on: an event is in one window",
        ),
        ("9 events", "moves with every event: at position p it holds the positions (p − 9, p]"),
    ],
)
def test_windows_in_words(window: str, words: str) -> None:
    assert plan(rest=f"WITHIN {window}")["window"]["text"] == words


@pytest.mark.parametrize(
    ("where", "group_by", "words"),
    [
        ("", "", "the whole stream is one partition"),
        ("[a, b = 5]", "", "by a, b = 5; results are combined over all partitions"),
        ("[a]", "GROUP-BY a", "by a; one result a partition and window"),
        ("[a, `b c`]", "GROUP-BY `b c`", "by a, `b c`; results are combined over all partitions with the same `b c`"),
    ],
)
def test_partitions_in_words(where: str, group_by: str, words: str) -> None:
    assert plan("A", where, f"{group_by} WITHIN 1 min")["partition"]["text"] == words


def test_aggregates_attributes_and_warnings() -> None:
    checked = query("SEQ(A, X?, B)", "A.x < B.y", "HAVING MAX(B.y) > 'm' WITHIN 1 min", "COUNT(*), SUM(X.z) AS total")
    found = as_json(explain(checked))
    assert found["aggregates"] == [
        {"text": "COUNT(*)", "columns": ["COUNT(*)"]},
        {"text": "SUM(X.z)", "columns": ["total"]},
        {"text": "MAX(B.y)", "columns": []},
    ]
    assert {a["name"]: a["kind"] for a in found["attributes"]} == {"x": "number or text", "y": "text", "z": "number"}
    assert [w["place"] for w in found["warnings"]] == [{"line": 1, "column": checked.text.index("A.x <") + 1}]


def test_places_count_lines_and_columns_from_one() -> None:
    found = as_json(explain(check("RETURN COUNT(*)\nPATTERN SEQ(A,\n  B)\nWITHIN 1 min")))
    assert [state["place"] for state in found["pattern"]["states"]] == [
        {"line": 2, "column": 13},
        {"line": 3, "column": 3},
    ]


# ---- Engines ----


@pytest.mark.parametrize(
    ("engines", "auto", "why"),
    [
        (ENGINES, "middling", "auto takes middling: the cheapest that can (they are listed from the cheapest on)"),
        (ENGINES[:2], "middling", "auto takes middling: no other engine can run this query"),
        (ENGINES[2:], "slow", "auto takes slow: it is the only engine"),
        (ENGINES[:1], None, "auto takes none: no engine can run this query"),
    ],
)
def test_auto_and_why(engines: tuple[Stub, ...], auto: str | None, why: str) -> None:
    found = explain(query(), engines)
    assert (found.auto, found.why) == (auto, why)


def test_a_refusal_gives_clause_and_reason() -> None:
    found = explain(query(), ENGINES)
    assert found.engines[0].clause == "PATTERN"
    assert "  fast      cannot  PATTERN: it knows no Kleene closure\n" in as_text(found)


def test_the_engines_are_those_that_run() -> None:
    checked = query("SEQ(A+, !C, B)")
    found = explain(checked)
    assert [verdict.name for verdict in found.engines] == [engine.name for engine in choice.ENGINES]
    assert found.auto == choice.choose(checked).name


# ---- Text and JSON ----


@pytest.mark.parametrize("pattern", ["A{500}", f"OR({', '.join(f'T{n}' for n in range(50))})+"])
def test_long_lists_are_cut(pattern: str) -> None:
    text = as_text(explain(query(pattern)))
    assert len(text.split("\n")) < 70
    assert "more" in text


def test_text_fits_a_terminal_and_keeps_quoted_text_whole() -> None:
    where = " AND ".join(f"A.x != 'some  text, AND  more {n}'" for n in range(30))
    text = as_text(explain(query("A", where), ENGINES))
    assert max(map(len, text.split("\n"))) <= WIDTH
    clause = text[text.index("WHERE") : text.index("  WITHIN")]
    assert (
        check(f"RETURN COUNT(*) PATTERN A {clause} WITHIN 1 min").tree.where
        == check(f"RETURN COUNT(*) PATTERN A WHERE {where} WITHIN 1 min").tree.where
    )


def test_text_has_no_control_characters() -> None:
    text = as_text(explain(query("`\x1b[2J\r`", "`\x1b[2J\r`.`\u202e` = '\0'")))
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_json_is_plain(file: Any) -> None:
    found = as_json(explain(check(file.read_text(encoding="utf-8"), file.name)))
    assert json.loads(json.dumps(found)) == found


def test_output_does_not_depend_on_hashes() -> None:
    program = (
        "import json, sys; from pipeline.explain import *; from pipeline.query.check import check; "
        "from pipeline.query.draw import *; q = check(open(sys.argv[1]).read()); p = explain(q); "
        "print(json.dumps(as_json(p)), as_text(p), as_dot(q), as_mermaid(q))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, str(file)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for file in QUERIES[:1]
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
