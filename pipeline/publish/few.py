"""Few answers → gold, in this process: what takes Spark some seconds, in several jobs, takes some milliseconds here.

The rules are those of gold.py. Each commit is on the version that was read, and is refused where the interval has
changed since: then all of it is read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from pipeline.arrow_tables import open_table
from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.publish.made import Made, Outcome
from pipeline.questions import Question
from pipeline.tables import INTERVAL_DATE, PROVENANCE, gold_history

Row = Mapping[str, Any]
Key = tuple[Any, ...]


def commit(config: Config, question: Question, day: date, answers: Iterable[Row], made: Made) -> Outcome:
    """Put an interval's answers in the place of those that gold has; a conflict where another run came first."""
    table, where = question.table, {INTERVAL_DATE.name: day}
    gold = open_table(config, table.full_name)
    old = {_key(question, row): row for row in gold.rows(where)}
    # After gold: whatever gold has lost by now, history has.
    history = open_table(config, gold_history(table).full_name)
    past = history.rows(where)
    asked = [*answers]
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


def answers_at(config: Config, question: Question, day: date, version: int) -> list[dict[str, Any]]:
    """The answers that a version of gold has for an interval."""
    return open_table(config, question.table.full_name, version).rows({INTERVAL_DATE.name: day}, _values(question))


def _values(question: Question) -> list[str]:
    """The columns that answers have."""
    stamps = {INTERVAL_DATE.name, *(column.name for column in PROVENANCE)} - {"exact"}
    return [column.name for column in question.table.columns if column.name not in stamps]


def _key(question: Question, row: Row) -> Key:
    return tuple(_comparable(row[name]) for name in question.table.keys)


def _is_same(question: Question, old: Row, new: Row) -> bool:
    return bool(old["query_version"] == question.version) and all(
        _comparable(old[name]) == _comparable(new[name]) for name in _values(question)
    )


def _comparable(value: Any) -> Any:
    """As in Spark, what is not a number equals itself."""
    return "NaN" if isinstance(value, float) and value != value else value
