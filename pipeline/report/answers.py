"""Gold rows for a page: the newest of them, by group, as columns that a chart reads."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipeline.arrow_tables import StoredFile, StoredTable
from pipeline.quality.mask import masked
from pipeline.query import tree
from pipeline.report.subjects import Subject
from pipeline.tables import INTERVAL_DATE, LOG10, item_name

if TYPE_CHECKING:
    import pandas

MOST_ROWS = 200_000  # of a query that are shown: whole intervals, the newest
CHUNK = 20_000  # rows that are loaded together; a larger group is one chunk
DIGITS = 80  # a longer number is shown by its ends
ENDS = (30, 12)
EXACT_IN_JS = 15  # digits of an integer that JavaScript holds
INTEGER = re.compile(r"-?\d+")
WINDOW = ("window_start", "window_end")


@dataclass(frozen=True)
class Item:
    """A column of RETURN; a count or sum is text of any length, with its logarithm beside it."""

    name: str
    has_log10: bool
    is_number: bool


@dataclass(frozen=True)
class Answers:
    """Rows of a gold table."""

    frame: pandas.DataFrame  # by group and window; sensitive values are masked
    raw: pandas.DataFrame  # the same rows, as they are: not for a page
    groups: tuple[str, ...]
    items: tuple[Item, ...]
    total: int  # rows of the table
    days: tuple[date, date] | None  # the first and last interval that is shown


def read_answers(subject: Subject, table: StoredTable, most: int = MOST_ROWS) -> Answers:
    """The newest intervals, as many as have so many rows together; of a larger interval, the groups with most rows."""
    groups, items = columns(subject, table)
    files, days = _newest(table.files, most)
    logs = [item.name + LOG10 for item in items if item.has_log10]
    names = [*WINDOW, *groups, *(item.name for item in items), *logs, "exact", "revision", "silver_version"]
    raw = table.read([INTERVAL_DATE.name, *names], files).to_pandas(date_as_object=True)
    raw = _largest_groups(raw, groups, most).sort_values([*groups, WINDOW[0]], ignore_index=True)
    frame = raw.copy()
    types = {field.name: str(field.type) for field in table.schema}
    for name in (*groups, *(item.name for item in items)):
        if not subject.shows(name, types[name]):
            frame[name] = _masks(name, frame[name])
    return Answers(frame, raw, groups, items, sum(file.rows for file in table.files), days)


def columns(subject: Subject, table: StoredTable) -> tuple[tuple[str, ...], tuple[Item, ...]]:
    """The names of the groups, and the items."""
    fields = list(table.schema)
    names = table.schema.names
    before = [field for field in fields[: names.index("exact")] if field.name not in (*WINDOW, INTERVAL_DATE.name)]
    if subject.question is not None:
        query = subject.question.query
        asked = [item_name(item) for item in query.tree.returns if isinstance(item.value, tree.Aggregate)]
        groups = query.group_by
        wanted = [field for field in before if field.name in asked]
    else:
        # What is never null names a row.
        groups = tuple(field.name for field in before if not field.nullable)
        logs = {name + LOG10 for name in names}
        wanted = [field for field in before if field.nullable and field.name not in logs]
    items = [
        Item(field.name, field.name + LOG10 in names, field.name + LOG10 in names or str(field.type) != "string")
        for field in wanted
    ]
    return tuple(groups), tuple(items)


def _newest(files: Sequence[StoredFile], most: int) -> tuple[list[StoredFile], tuple[date, date] | None]:
    by_day: dict[date, list[StoredFile]] = {}
    for file in files:
        by_day.setdefault(file.partition[INTERVAL_DATE.name], []).append(file)
    taken: list[date] = []
    rows = 0
    for day in sorted(by_day, reverse=True):
        rows += sum(file.rows for file in by_day[day])
        if taken and rows > most:
            break
        taken.append(day)
    return [file for day in taken for file in by_day[day]], (taken[-1], taken[0]) if taken else None


def _largest_groups(frame: pandas.DataFrame, groups: Sequence[str], most: int) -> pandas.DataFrame:
    if len(frame) <= most:
        return frame
    if groups:
        sizes = frame.groupby([*groups], dropna=False)[WINDOW[0]].transform("size")
        frame = frame.assign(_size=sizes).sort_values(["_size", *groups], ascending=False, kind="stable")
        frame = frame.drop(columns="_size")
        return frame.head(most)
    return frame.sort_values(WINDOW[0]).tail(most)


def _masks(name: str, values: Any) -> Any:
    known = {value: masked(name, value) for value in values.unique()}
    return values.map(known).astype(object)


# ----------------------------------------------------------------------------------------------------------- for pages


def page_data(
    answers: Answers, within: float | None, slide: float | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the page's script is given: what there is, and the chunks of rows, each with some groups.

    Times and lengths are in milliseconds.
    """
    found = list(_by_group(answers))
    chunks: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    filled = CHUNK
    for label, rows in found:
        if filled + len(rows) > CHUNK:
            chunks.append({})
            filled = 0
        filled += len(rows)
        chunks[-1][str(len(groups))] = _columns(answers, rows)
        groups.append({"label": label, "rows": len(rows), "chunk": len(chunks) - 1})
    frame = answers.frame
    if within is None and len(frame):
        lengths = (frame[WINDOW[1]] - frame[WINDOW[0]]).dt.total_seconds().unique()
        within = float(lengths[0]) * 1000
    items = []
    for item in answers.items:
        top = frame[item.name + LOG10].max() if item.has_log10 and len(frame) else math.nan
        items.append({"name": item.name, "number": item.is_number, "count": item.has_log10, "top": _finite(top)})
    return {"names": answers.groups, "groups": groups, "items": items, "within": within, "slide": slide}, chunks


def _by_group(answers: Answers) -> Iterator[tuple[list[Any], pandas.DataFrame]]:
    if not answers.groups or not len(answers.frame):
        yield from [([], answers.frame)] if len(answers.frame) else []
        return
    for key, rows in answers.frame.groupby([*answers.groups], dropna=False, sort=False):
        yield ["" if _is_null(value) else str(value) for value in key], rows


def _columns(answers: Answers, rows: pandas.DataFrame) -> dict[str, Any]:
    micros = rows[WINDOW[0]].astype("int64")
    # Whole milliseconds as integers; the first, then how far each is from the one before.
    times = (micros // 1000).tolist() if (micros % 1000 == 0).all() else (micros / 1000).tolist()
    steps = [*times[:1], *(after - before for before, after in pairwise(times))]
    data: dict[str, Any] = {"t": steps}
    for item in answers.items:
        texts = rows[item.name].tolist()
        if not item.has_log10:
            data[item.name] = {"v": [_plain(value) for value in texts]}
        elif all(text is not None and len(text) <= EXACT_IN_JS and INTEGER.fullmatch(text) for text in texts):
            data[item.name] = {"v": [int(text) for text in texts]}
        else:
            logs = rows[item.name + LOG10].tolist()
            data[item.name] = {"x": [shortened(text) for text in texts], "y": [_finite(log, 6) for log in logs]}
    rounded = rows["exact"].tolist()
    data["rounded"] = [at for at, exact in enumerate(rounded) if not exact]
    data["revised"] = {at: revision for at, revision in enumerate(rows["revision"].tolist()) if revision > 1}
    return data


def shortened(text: str | None) -> str | None:
    """A number's digits; of a very long one the first, the last, and how many there are.

    >>> shortened("1" * 100)
    '111111111111111111111111111111…111111111111 (100 digits)'
    """
    if text is None or len(text) <= DIGITS or not INTEGER.fullmatch(text):
        return text
    return f"{text[: ENDS[0]]}…{text[-ENDS[1] :]} ({len(text.lstrip('-')):,} digits)"


def _plain(value: Any) -> Any:
    if _is_null(value):
        return None
    return value if isinstance(value, str | int | bool) else _finite(value) if isinstance(value, float) else str(value)


def _finite(value: float, digits: int | None = None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return value if digits is None else round(value, digits)


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
