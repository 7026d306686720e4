"""Automata as SVG: everything is drawn, nothing lies on anything else."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pipeline.query.check import check
from pipeline.query.draw import Picture, picture
from pipeline.report.drawing import as_svg
from pipeline.report.highlight import highlighted

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "queries").rglob("*.query"), *(ROOT / "tests/query/golden").glob("*.query")])
SVG = "{http://www.w3.org/2000/svg}"


def counts(drawn: Picture) -> tuple[int, int]:
    """How many states and arrows there are, negated patterns included; only a guarded end has an arrow."""
    inner = [counts(one) for one in drawn.negated]
    arrows = [*drawn.start, *drawn.steps, *(arrow for arrow in drawn.end if arrow.lines)]
    return len(drawn.nodes) + sum(n for n, _ in inner), len(arrows) + sum(n for _, n in inner)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_everything_is_drawn_once_and_apart(file: Path) -> None:
    query = check(file.read_text(), str(file))
    root = ElementTree.fromstring(as_svg(query))
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("class") == "state"]
    steps = [way for way in root.iter(f"{SVG}path") if way.get("class") == "step"]
    assert (len(boxes), len(steps)) == counts(picture(query.machine))
    # Those of one automaton; that of a negated pattern is in a frame of its own.
    for one in (root, *root.iter(f"{SVG}g")):
        places = [
            tuple(float(box.get(name, "")) for name in ("x", "y", "width", "height"))
            for box in one.findall(f"{SVG}rect")
            if box.get("class") == "state"
        ]
        for (x, y, width, height), (a, b, wide, high) in combinations(places, 2):
            assert x + width <= a or a + wide <= x or y + height <= b or b + high <= y
        if one is root:
            sides = [float(size) for size in root.get("viewBox", "").split()[2:]]
            assert all(x >= 0 and y >= 0 and x + w <= sides[0] and y + h <= sides[1] for x, y, w, h in places)


def test_texts_are_escaped() -> None:
    query = check("RETURN COUNT(*) PATTERN SEQ(A a, B b) WHERE a.x < b.y AND a.t = '<b>' WITHIN 1 min SLIDE 1 min")
    assert "".join(ElementTree.fromstring(as_svg(query)).itertext()).count("<") == 2
    assert "q-word" not in highlighted("skip-till-any-match")
    assert "<b>" not in highlighted("WHERE a = '<b>' -- <b>")
    assert "<b>" not in highlighted("no query & <b> 'unfinished")
