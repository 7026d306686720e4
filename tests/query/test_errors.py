"""What a mistake in a query looks like to its author: every case of `errors/*.txt`, word for word.

A case is a title, the query, `=> exit n`, and the message; a line of dashes separates cases. ⇥ stands for a tab, and in
a case whose title ends with (CRLF) the query's lines end so. After a message was improved, write the files anew with
`python -m tests.query.test_errors` and review the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.errors import TrendsError
from pipeline.query.check import check

ERRORS = Path(__file__).parent / "errors"
SEPARATOR = "\n" + "-" * 80 + "\n"


@dataclass(frozen=True)
class Case:
    """A query that is wrong, and what is said about it."""

    title: str
    query: str
    outcome: str  # `=> exit n` and the message

    def __str__(self) -> str:
        return f"{self.title}\n{self.query}\n{self.outcome}"

    @property
    def text(self) -> str:
        text = self.query.replace("⇥", "\t")
        return text.replace("\n", "\r\n") if self.title.endswith("(CRLF)") else text


def cases(file: Path) -> Iterator[Case]:
    for block in file.read_text("utf-8").strip("\n").split(SEPARATOR):
        title, _, rest = block.partition("\n")
        query, arrow, outcome = rest.partition("\n=>")
        assert title.startswith("# "), f"{file}: a case begins with its title, not with {title!r}"
        assert arrow, f"{file}: {title} has no =>"
        yield Case(title, query, f"=>{outcome}")


def outcome(case: Case) -> str:
    with pytest.raises(TrendsError) as raised:
        check(case.text, "my.query")
    return f"=> exit {raised.value.exit_code}\n{raised.value}".replace("\t", "⇥")


FILES = sorted(ERRORS.glob("*.txt"))
CASES = [pytest.param(case, id=f"{file.stem}: {case.title[2:]}") for file in FILES for case in cases(file)]


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_explained(case: Case) -> None:
    assert outcome(case) == case.outcome


def test_titles_are_unique() -> None:
    titles = [case.title for file in FILES for case in cases(file)]
    assert len(titles) == len(set(titles))


if __name__ == "__main__":
    for file in FILES:
        renewed = [Case(case.title, case.query, outcome(case)) for case in cases(file)]
        file.write_text(SEPARATOR.join(map(str, renewed)) + "\n", "utf-8")
