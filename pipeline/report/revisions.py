"""Revisions: the answers that changed after they were published, from what to what, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from pipeline.aggregate.reach import as_micros
from pipeline.arrow_tables import StoredTable
from pipeline.publish.changes import FileChange
from pipeline.quality.mask import masked
from pipeline.questions import Question
from pipeline.report.answers import WINDOW, Item, columns, shortened
from pipeline.report.changes import NotKeptError, Silver, by_file, micros
from pipeline.report.facts import by_key
from pipeline.report.subjects import Subject
from pipeline.tables import INTERVAL_DATE

if TYPE_CHECKING:
    import pandas

MOST = 200  # rows that are shown, the newest changes first
QUERY_CHANGED = "the query changed"
NOT_KEPT = "events changed; which is no longer kept"
SAME_EVENTS = "answered again on the same events"
EVENTS_CHANGED = "events changed"


@dataclass(frozen=True)
class Side:
    """A row as it was published."""

    revision: int
    values: Mapping[str, str]
    query_version: str
    silver_version: int


@dataclass(frozen=True)
class Change:
    """A row that was superseded; `after` is None where it vanished."""

    start: datetime
    end: datetime
    interval_date: date
    group: tuple[str, ...]  # masked
    before: Side
    after: Side | None
    run_id: str
    at: datetime
    silver_version: int  # that the run read
    why: str = ""
    files: Sequence[FileChange] = ()

    @property
    def changed(self) -> list[tuple[str, str, str]]:
        """The items that differ: name, old and new value."""
        new = self.after.values if self.after else dict.fromkeys(self.before.values, "gone")
        return [(name, old, new[name]) for name, old in self.before.values.items() if old != new[name]]


@dataclass(frozen=True)
class Revisions:
    """What was revised: all of it in numbers, the newest changes one by one."""

    total: int
    changes: Sequence[Change]
    runs: Sequence[tuple[datetime, str, date, int]]  # when, by which run, of which interval, how many rows


def read_revisions(
    subject: Subject, gold: StoredTable, history: StoredTable, silver: Silver | None, most: int = MOST
) -> Revisions:
    """The newest changes; `silver` says which landing files are behind them."""
    groups, items = columns(subject, gold)
    past = history.read().to_pandas(date_as_object=True)
    newest = past.sort_values(["superseded_at", *WINDOW, *groups], ascending=False).head(most)
    days = set(newest[INTERVAL_DATE.name])
    # A row's successor is the next revision in history, or what gold has.
    files = [file for file in gold.files if file.partition[INTERVAL_DATE.name] in days]
    now = gold.read(files=files).to_pandas(date_as_object=True)
    keys = [*WINDOW, *groups]
    rows: dict[tuple[Any, ...], dict[int, Any]] = {}
    for frame in (past[past[INTERVAL_DATE.name].isin(days)], now):
        for row in frame.to_dict("records"):
            rows.setdefault(tuple(row[key] for key in keys), {})[row["revision"]] = row
    masks = _masks(subject, gold, groups, items)
    found = [
        _change(row, rows[tuple(row[key] for key in keys)], groups, items, masks) for row in newest.to_dict("records")
    ]
    raw = [tuple(row[name] for name in groups) for row in newest.to_dict("records")]
    told = list(_explained(subject.question, silver, found, raw))
    runs = past.groupby(["superseded_at", "superseded_by", INTERVAL_DATE.name]).size().sort_index(ascending=False)
    listed = [(at.to_pydatetime(), str(run), day, int(number)) for (at, run, day), number in runs.items()]
    return Revisions(len(past), told, listed[:20])


def _masks(subject: Subject, gold: StoredTable, groups: Sequence[str], items: Sequence[Item]) -> set[str]:
    types = {field.name: str(field.type) for field in gold.schema}
    return {name for name in (*groups, *(item.name for item in items)) if not subject.shows(name, types[name])}


def _change(
    row: Mapping[str, Any],
    by_revision: Mapping[int, Any],
    groups: Sequence[str],
    items: Sequence[Item],
    masks: set[str],
) -> Change:
    def text(name: str, value: Any) -> str:
        shown = masked(name, value) if name in masks else value
        return "" if shown is None or shown != shown else str(shortened(str(shown)))

    def side(one: Mapping[str, Any]) -> Side:
        values = {item.name: text(item.name, one.get(item.name)) for item in items}
        return Side(one["revision"], values, one["query_version"], one["silver_version"])

    after = by_revision.get(row["revision"] + 1)
    # What takes a row's place is published at the moment that supersedes it.
    if after is not None and after["published_at"] > row["superseded_at"]:
        after = None
    return Change(
        row[WINDOW[0]].to_pydatetime(),
        row[WINDOW[1]].to_pydatetime(),
        row[INTERVAL_DATE.name],
        tuple(text(name, row[name]) for name in groups),
        side(row),
        None if after is None else side(after),
        row["superseded_by"],
        row["superseded_at"].to_pydatetime(),
        row["superseded_silver"],
    )


def _explained(
    question: Question | None, silver: Silver | None, changes: Sequence[Change], groups: Sequence[tuple[Any, ...]]
) -> Iterator[Change]:
    """Each change with its reason, in their order; changes between the same versions share one read."""
    from dataclasses import replace

    events: dict[tuple[int, int], pandas.DataFrame | None] = {}
    if question is not None and silver is not None:
        steps = [change for change in changes if change.before.silver_version < change.silver_version]
        pairs = by_key(steps, lambda one: (one.before.silver_version, one.silver_version))
        for (after, upto), some in pairs.items():
            ranges = [_needed(question, change) for change in some]
            hull = min(low for low, _ in ranges), max(high for _, high in ranges)
            try:
                events[after, upto] = silver.changed(question, after, upto, hull)
            except NotKeptError:
                events[after, upto] = None
    for change, group in zip(changes, groups, strict=True):
        if change.after is not None and change.after.query_version != change.before.query_version:
            yield replace(change, why=QUERY_CHANGED)
            continue
        pair = change.before.silver_version, change.silver_version
        if pair[0] >= pair[1]:
            yield replace(change, why=SAME_EVENTS)
        elif question is None or pair not in events:
            yield replace(change, why=EVENTS_CHANGED)
        elif (found := events[pair]) is None:
            yield replace(change, why=NOT_KEPT)
        else:
            yield replace(change, why=EVENTS_CHANGED, files=_behind(question, change, group, found))


def _needed(question: Question, change: Change) -> tuple[int, int]:
    end = as_micros(change.end)
    return question.reach.events(end, end + 1)


def _behind(question: Question, change: Change, group: Sequence[Any], events: pandas.DataFrame) -> Sequence[FileChange]:
    low, high = _needed(question, change)
    times = micros(events)
    inside = (times >= low) & (times < high)
    for name, value in zip(question.query.group_by, group, strict=True):
        inside &= (events[name] == value).to_numpy()
    return by_file(events[inside])
