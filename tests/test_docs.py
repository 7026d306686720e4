"""What the documentation says is true: examples in docstrings, queries in the READMEs, the shipped queries."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import pipeline
from pipeline.datasets import DATASETS
from pipeline.datasets.page import page
from pipeline.query.check import check
from pipeline.query.tokens import RESERVED

ROOT = Path(__file__).parents[1]
# Compiled when called: their examples would take minutes, and `tests/engines` runs them anyway.
COMPILED = "pipeline.engines.kernels."

MODULES = [
    module.name
    for module in pkgutil.walk_packages(pipeline.__path__, "pipeline.")
    if not module.name.startswith(COMPILED)
]
QUERIES = sorted((ROOT / "queries").rglob("*.query"))


def fences(file: Path) -> list[tuple[int, str]]:
    """The query examples of a Markdown page, each with the line that it begins at."""
    text = file.read_text("utf-8")
    return [
        (text.count("\n", 0, fence.start(1)) + 1, fence[1])
        for fence in re.finditer(r"^```query\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


EXAMPLES = [
    pytest.param(text, id=f"{page}:{line}")
    for page in ("README.md", "queries/README.md")
    for line, text in fences(ROOT / page)
]


def test_the_page_about_datasets_is_that_of_the_declarations() -> None:
    assert (ROOT / "docs" / "datasets.md").read_text("utf-8") == page(DATASETS.values())


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples_in_docstrings() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    documented = {name for name in MODULES if any(test.examples for test in finder.find(importlib.import_module(name)))}
    assert {
        "pipeline.errors",
        "pipeline.query.parser",
        "pipeline.query.automaton",
        "pipeline.query.check",
    } <= documented


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_a_query_without_warnings(text: str) -> None:
    assert check(text).warnings == ()


def test_both_pages_have_examples() -> None:
    assert len(fences(ROOT / "README.md")) >= 1
    assert len(fences(ROOT / "queries/README.md")) >= 8


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: str(file.relative_to(ROOT / "queries")))
def test_a_shipped_query_has_no_warnings(file: Path) -> None:
    query = check(file.read_text("utf-8"), str(file))
    assert query.warnings == ()


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: str(file.relative_to(ROOT / "queries")))
def test_a_shipped_query_names_its_dataset_and_says_what_it_asks(file: Path) -> None:
    text = file.read_text("utf-8")
    assert text.startswith("--")
    assert check(text, str(file)).tree.source == file.relative_to(ROOT / "queries").parts[0]


def test_every_reserved_word_is_on_the_language_page() -> None:
    page = (ROOT / "queries/README.md").read_text("utf-8")
    listed = re.search(r"^- Reserved, .*?: `([A-Z\s]+)`", page, re.MULTILINE)
    assert listed
    assert set(listed[1].split()) == RESERVED - {"GROUP-BY"}  # which is GROUP - BY to anyone who reads
