"""A job's tasks run one after the other in this process, over Parquet files: all of a job but Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.aggregate import tasks
from pipeline.aggregate.cut import Cut, Range, Strategy, cut_times, spread
from pipeline.aggregate.snapshot import DataFile
from pipeline.aggregate.tasks import Plan, Task, Work
from pipeline.datasets.declaration import EVERY_DAY, Column, Dataset
from pipeline.query.check import check
from pipeline.questions import Question
from pipeline.sources.heart_rate import HEART_RATE
from tests.oracle import Event, Row

SECOND = 1_000_000
CASES = Dataset(
    name="cases",
    about="Random events",
    formats=(HEART_RATE,),
    columns=(
        Column("type", "string", "the type"),
        Column("kind", "string", "the type above it"),
        Column("x", "double", "a number"),
        Column("y", "double", "a number"),
        Column("g", "bigint", "a number"),
        Column("h", "string", "a text"),
    ),
    types=("type", "kind"),
    zone="UTC",
    calendar=EVERY_DAY,
    first_day=date(1970, 1, 1),
    expected_by=30,
    lag=0,
    retention=30,
)
SCHEMA = pa.schema(
    {
        "time": pa.timestamp("us", "UTC"),
        "type": pa.string(),
        "kind": pa.string(),
        "x": pa.float64(),
        "y": pa.float64(),
        "g": pa.int64(),
        "h": pa.string(),
    }
)


def question(text: str) -> Question:
    """A question over the random events."""
    return Question("case", CASES, check(text))


def table(events: Sequence[Event]) -> Any:
    """Events as silver has them."""
    names = ("x", "y", "g", "h")
    columns: dict[str, list[Any]] = {
        "time": [event.time * SECOND for event in events],
        "type": [event.type for event in events],
        "kind": [event.kinds[0] if event.kinds else None for event in events],
        **{name: [event.attrs.get(name) for event in events] for name in names},
    }
    columns |= {name: [None if v is None else float(v) for v in columns[name]] for name in ("x", "y")}
    return pa.table([pa.array(columns[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def files(folder: Path, parts: Iterable[Sequence[Event]]) -> tuple[DataFile, ...]:
    """A file a part, in any order of time."""
    made = []
    for number, part in enumerate(parts):
        if part:
            path = folder / f"{number}.parquet"
            pq.write_table(table(part), path, row_group_size=3)
            times = [event.time * SECOND for event in part]
            made.append(DataFile(str(path), len(part), min(times), max(times) + 1000))
    return tuple(made)


def plan(asked: Question, engine: str, held: Sequence[DataFile], strategy: Strategy, ends: Range, parts: int) -> Plan:
    """A plan in so many parts, with slices of time for keys too."""
    events = asked.reach.events(*ends)
    stretches = spread(held, events)
    way = Cut(strategy, "", cut_times(stretches, ends, 2) if strategy is Strategy.KEYS else (ends,), 3)
    return Plan((Work(asked, engine, ends, way),), tuple(held), cut_times(stretches, events, parts))


def answers(work: Plan, number: int = 0) -> list[dict[str, Any]]:
    """What the job gives for a question, by window and group."""
    found = list(tasks.reading(work)([pa.RecordBatch.from_pydict({"id": list(range(len(work.ranges)))})]))
    for task in (tasks.joining(work), tasks.adding(work)):
        found = _shuffled(found, task)
    rows = [row for batch in tasks.unpacking(number)(found) for row in batch.to_pylist()]
    group = work.works[number].question.query.group_by
    return sorted(rows, key=lambda row: [row[name] for name in ("window_start", "window_end", *group)])


def _shuffled(batches: Iterable[Any], task: Task) -> list[Any]:
    buckets = defaultdict(list)
    for batch in batches:
        buckets[batch.column(2)[0].as_py()].append(batch)
    return [made for bucket in sorted(buckets) for made in task(buckets[bucket])]


def as_oracle(asked: Question, rows: Iterable[dict[str, Any]]) -> list[Row]:
    """Rows of gold as the oracle gives them."""
    from pipeline.tables import item_name

    shown = []
    for row in rows:
        result = {name: int(row[name].timestamp()) for name in ("window_start", "window_end")}
        result |= {name: row[name] for name in asked.query.group_by}
        for item in asked.query.tree.returns:
            value = row[item_name(item)]
            if item.label.startswith("COUNT("):
                value = int(value)
            elif item.label.startswith("SUM(") and value is not None:
                value = float(value)
            result[item.label] = value
        shown.append(result)
    return shown
