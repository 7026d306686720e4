"""Few answers → gold, in this process: what takes Spark some seconds, in several jobs, takes some milliseconds here.

The rules are those of gold.py. Each commit is on the version that was read, and is refused where the interval has
changed since: then all of it is read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from pipeline.arrow_tables import open_table
from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.publish.made import Made, Outcome
from pipeline.questions import Question
from pipeline.tables import INTERVAL_DATE, PROVENANCE, gold_history

Row = Mapping[str, Any]
Key = tuple[Any, ...]


def commit(config: Config, question: Question, day: date, answers: pa.Table, made: Made) -> Outcome:
    """Put an interval's answers in the place of those that gold has; a conflict where another run came first."""
    table, where = question.table, {INTERVAL_DATE.name: day}
    gold = open_table(config, table.full_name)
    there = gold.read(files=gold.files_of(where))
    if _are_same(question, there, answers):
        return Outcome(gold.version, answers.num_rows, 0)
    old = {_key(question, row): row for row in there.to_pylist()}
    # After gold: whatever gold has lost by now, history has.
    history = open_table(config, gold_history(table).full_name)
    past = history.rows(where)
    asked = answers.to_pylist()
    new = {_key(question, row): row for row in asked}
    if len(new) < len(asked):
        most = max(Counter(_key(question, row) for row in asked).values())
        raise TrendsError(f"{table.full_name} {day}: {most} answers for one window and group")
    kept = {key for key, row in new.items() if key in old and _is_same(question, old[key], row)}
    changed = len((old.keys() | new.keys()) - kept)
    if not changed:
        return Outcome(gold.version, len(new), 0)
    at = datetime.now(UTC)
    if superseded := [row for key, row in old.items() if key not in kept]:
        by = {"superseded_by": made.run_id, "superseded_silver": made.silver_version, "superseded_at": at}
        # A row that a run added and then did not replace gets the name of this run.
        gone = {(_key(question, row), row["revision"]): row for row in [*past, *({**row, **by} for row in superseded)]}
        history.replace(gone.values(), where, {"run_id": made.run_id})
    revisions: dict[Key, int] = {}
    for row in (*past, *old.values()):
        key = _key(question, row)
        revisions[key] = max(revisions.get(key, 0), row["revision"])
    stamps = {
        INTERVAL_DATE.name: day,
        "engine": made.engine,
        "run_id": made.run_id,
        "query_version": question.version,
        "silver_version": made.silver_version,
        "published_at": at,
    }
    rows = [
        old[key] if key in kept else {**row, **stamps, "revision": revisions.get(key, 0) + 1}
        for key, row in new.items()
    ]
    return Outcome(gold.replace(rows, where, made.noted(question, day, changed)), len(rows), changed)


def answers_at(config: Config, question: Question, day: date, version: int) -> pa.Table:
    """The answers that a version of gold has for an interval."""
    gold = open_table(config, question.table.full_name, version)
    return gold.read(_values(question), gold.files_of({INTERVAL_DATE.name: day}))


def _values(question: Question) -> list[str]:
    """The columns that answers have."""
    stamps = {INTERVAL_DATE.name, *(column.name for column in PROVENANCE)} - {"exact"}
    return [column.name for column in question.table.columns if column.name not in stamps]


def _are_same(question: Question, there: pa.Table, answers: pa.Table) -> bool:
    """Whether gold has these very answers; where that is hard to see, its rows are looked at one by one."""
    versions = there.column("query_version").unique().to_pylist()
    if there.num_rows != answers.num_rows or versions not in ([], [question.version]):
        return False
    order, values = [(name, "ascending") for name in question.table.keys], _values(question)
    one, two = (table.select(values).sort_by(order) for table in (there, answers))
    return all(one.column(name).equals(two.column(name)) for name in values)


def _key(question: Question, row: Row) -> Key:
    return tuple(_comparable(row[name]) for name in question.table.keys)


def _is_same(question: Question, old: Row, new: Row) -> bool:
    return bool(old["query_version"] == question.version) and all(
        _comparable(old[name]) == _comparable(new[name]) for name in _values(question)
    )


def _comparable(value: Any) -> Any:
    """As in Spark, what is not a number equals itself."""
    return "NaN" if isinstance(value, float) and value != value else value
