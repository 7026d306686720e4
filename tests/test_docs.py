"""What the documentation says is true: examples in docstrings, queries in the READMEs, the shipped queries."""

from __future__ import annotations

import argparse
import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.cli import _parser, main
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
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(ROOT.glob("[!.]*/README.md")),
]


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


def code(text: str) -> list[str]:
    """What a page shows as code: spans, and the lines of blocks."""
    blocks = re.findall(r"^```(?:console)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    return [*spans, *(line.removeprefix("$ ") for block in blocks for line in block.splitlines())]


def commands(program: str) -> list[Any]:
    """The calls of a program on all pages, in words, each with its page."""
    return [
        pytest.param(words, id=f"{page.relative_to(ROOT)}: {' '.join(words)}")
        for page in PAGES
        for call in code(page.read_text("utf-8"))
        for part in re.split(r"&&|;", call)
        if (words := part.strip().partition("  ")[0].split()) and words[0] == program and len(words) > 1
    ]


@pytest.mark.parametrize("words", commands("trends"))
def test_a_command_on_a_page_is_there_with_its_options(words: list[str]) -> None:
    (subparsers,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert words[1] in subparsers.choices
    options = {option for action in subparsers.choices[words[1]]._actions for option in action.option_strings}
    for parser in nested(subparsers.choices[words[1]]):
        options |= {option for action in parser._actions for option in action.option_strings}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options


def nested(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The parsers of a command's own commands."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [one for action in found for one in action.choices.values()]


@pytest.mark.parametrize("words", commands("make"))
def test_a_target_on_a_page_is_there(words: list[str]) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert next(word for word in words[1:] if "=" not in word) in targets


def test_the_first_example_prints_what_it_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(
        r"^```console\n\$ trends (run [^\n]*)\n(.*?)^```$", PAGES[0].read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found
    monkeypatch.chdir(ROOT)
    assert main(found[1].split()) == 0
    assert capsys.readouterr().out == found[2]
