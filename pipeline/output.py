"""Rows → text: a table for people, JSONL and CSV for programs."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from io import StringIO
from itertools import chain, islice
from typing import Any

from pipeline.results import decimal_text

FORMATS = ("table", "jsonl", "csv")
TABLE_DIGITS = 24  # a longer integer is rounded in a table, and only there
SAMPLE = 1000  # rows that a table's column widths are taken from

_ROUNDED = re.compile(r"-?\d\.\d{4}e-?\d+")  # as decimal_text writes a number

Rows = Iterable[Mapping[str, Any]]


def formatted(rows: Rows, form: str, columns: list[str]) -> Iterator[str]:
    """The lines of a result in one of FORMATS."""
    return {"table": _table, "jsonl": _jsonl, "csv": _csv}[form](rows, columns)


def aligned(header: list[str], cells: Iterable[list[str]], right: set[int]) -> Iterator[str]:
    """Cells as a table; the columns in `right` are aligned to the right."""
    cells = iter(cells)
    sample = list(islice(cells, SAMPLE))
    widths = [max(map(len, column)) for column in zip(header, *sample, strict=True)]

    def line(row: list[str]) -> str:
        padded = (c.rjust(w) if at in right else c.ljust(w) for at, (c, w) in enumerate(zip(row, widths, strict=True)))
        return "  ".join(padded).rstrip()

    yield line(header)
    yield "  ".join("-" * width for width in widths)
    yield from map(line, chain(sample, cells))


def _table(rows: Rows, columns: list[str]) -> Iterator[str]:
    rows = iter(rows)
    sample = list(islice(rows, SAMPLE))
    numbers = {at for at, name in enumerate(columns) if all(_is_number(row.get(name)) for row in sample)}
    cells = ([_cell(row.get(name)) for name in columns] for row in chain(sample, rows))
    yield from aligned(columns, cells, numbers)
    if not sample:
        yield "(no rows)"


def _jsonl(rows: Rows, _: list[str]) -> Iterator[str]:
    return map(json.JSONEncoder(ensure_ascii=False).encode, rows)


def _csv(rows: Rows, columns: list[str]) -> Iterator[str]:
    yield _csv_line(columns)
    for row in rows:
        yield _csv_line([_plain(row.get(name)) for name in columns])


def _csv_line(cells: list[Any]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _plain(value: Any) -> Any:
    """A value in one cell; the events of a trend by their times."""
    return " ".join(str(event["time"]) for event in value) if isinstance(value, list) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and abs(value) >= 10**TABLE_DIGITS:
        return decimal_text(Fraction(value))
    return f"{value:.10g}" if isinstance(value, float) else str(_plain(value))


def _is_number(value: Any) -> bool:
    return (
        value is None or isinstance(value, int | float) or (isinstance(value, str) and bool(_ROUNDED.fullmatch(value)))
    )
