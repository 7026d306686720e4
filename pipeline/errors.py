"""What can go wrong, and how it is said to a person: every error knows its exit code and ends with what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class TrendsError(Exception):
    """Base of every error that is a message to the user, never a traceback."""

    exit_code = 2


class InputError(TrendsError):
    """An event file, or a value in it, that cannot be used."""


class SetupError(TrendsError):
    """Something around the program that is missing or wrong: a setting, Java, the Delta jars, Spark, the lake."""


class CannotRunError(TrendsError):
    """A query that is right but that the chosen engine, or any engine so far, cannot run."""

    exit_code = 3


class DidNotFinishError(TrendsError):
    """A run that reached `--timeout`, `--max-trends` or the machine's memory."""

    exit_code = 4


@dataclass(frozen=True)
class Span:
    """A half-open range of characters of the query's text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The range from the start of this span to the end of `other`."""
        return Span(self.start, other.end)


class QueryError(TrendsError):
    """A mistake in a query, shown with its file, line, column and the underlined source.

    >>> print(QueryError("expected WITHIN", "RETURN COUNT(*)\\nPATERN A", Span(16, 22), "q.query", "write PATTERN"))
    q.query:2:1: expected WITHIN
      2 | PATERN A
        | ^^^^^^
    hint: write PATTERN
    """

    def __init__(self, message: str, text: str, span: Span, file: str, hint: str | None = None) -> None:
        self.message, self.span, self.hint = message, span, hint
        super().__init__("\n".join([*locate(message, text, span, file), *([f"hint: {hint}"] if hint else [])]))


def locate(message: str, text: str, span: Span, file: str) -> list[str]:
    """The message with its place, the source line and the underline."""
    start = min(span.start, len(text.rstrip()))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)].rstrip("\r")
    number, column = text.count("\n", 0, start) + 1, start - line_start
    width = max(1, min(span.end - start, len(line) - column))
    # A tab stays a tab above the underline, so that both lines move alike in a terminal.
    indent = "".join("\t" if character == "\t" else " " for character in line[:column])
    margin = " " * len(str(number))
    return [
        f"{file}:{number}:{column + 1}: {message}",
        f"  {number} | {line}",
        f"  {margin} | {indent}{'^' * width}",
    ]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one most probably means.

    >>> nearest("prise", ["price", "volume"])
    'price'
    """
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None
