"""What tasks do: read a range of time and aggregate or split it, join the parts of keys, add up those of groups.

Between tasks everything is rows of a question's number, a bucket, and bytes: Spark moves few and large rows.
"""

from __future__ import annotations

import json
import os
import pickle
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from pipeline.aggregate.columns import SilverTable, key_hash, needed_columns
from pipeline.aggregate.cut import Cut, Range, Strategy, spread_by
from pipeline.aggregate.partials import Parts, collected, finished, gold_rows, in_parts, joined
from pipeline.aggregate.scan import read_range
from pipeline.aggregate.snapshot import DataFile
from pipeline.engines.choice import choose
from pipeline.engines.contract import Cost, Limits
from pipeline.engines.stream import make_stream
from pipeline.engines.summary import Summary, combine, finish, parted, summarise
from pipeline.events import Events
from pipeline.memory import Peak, available_memory
from pipeline.questions import Question

SCHEMA = "question int, kind string, bucket int, part int, bytes binary"
EVENTS, MAPS, PARTS, ROWS, COST = "events", "maps", "parts", "rows", "cost"
ROWS_A_BLOB = 1_000_000

Blob = tuple[int, str, int, int, bytes]
Task = Callable[[Iterable[Any]], Iterator[Any]]


@dataclass(frozen=True)
class Work:
    """One question of a job: its engine, the ends of the windows that are asked for, and how it is cut."""

    question: Question
    engine: str
    ends: Range
    cut: Cut


@dataclass(frozen=True)
class Plan:
    """A job: its questions, the files that hold their events, and the ranges of time that tasks take."""

    works: tuple[Work, ...]
    files: tuple[DataFile, ...]
    ranges: tuple[Range, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of silver that the questions need."""
        return tuple(dict.fromkeys(name for work in self.works for name in needed_columns(work.question)))


def reading(plan: Plan) -> Task:
    """The task of a range of time, which is told its number."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from batched(_read(plan, number))

    return task


def splitting(plan: Plan) -> Task:
    """The task of some rows of silver in any order, as Spark reads them: they are split by key."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        if tables:
            table = SilverTable(pa.concat_tables(tables))
            for number, work in enumerate(plan.works):
                with _Measured(number) as measured:
                    measured.events = len(table.time)
                    yield from batched(_split(number, work, table, slice(None)))
                yield from batched([measured.blob])

    return task


def joining(plan: Plan) -> Task:
    """The task of a bucket: keys are put together and aggregated; what is done already goes on as it is."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        found: dict[tuple[int, str], list[tuple[int, bytes]]] = defaultdict(list)
        for question, kind, bucket, part, content in _blobs(batches):
            if kind in (EVENTS, MAPS):
                found[question, kind].append((part, content))
            else:
                yield from batched([(question, kind, bucket, part, content)])
        for (number, kind), contents in found.items():
            work = plan.works[number]
            with _Measured(number) as measured:
                if kind == MAPS:
                    parts = _multiplied(work, [c for _, c in sorted(contents, key=lambda c: c[0])], measured)
                else:
                    ends = work.cut.slices[contents[0][0]]  # a bucket is of one slice of time
                    parts = _together(work, [content for _, content in contents], ends, measured)
                yield from batched(_handed_on(plan, number, parts))
            yield from batched([measured.blob])

    return task


def adding(plan: Plan) -> Task:
    """The task of some windows and groups: their parts are added up, and written as gold has them."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        found: dict[int, list[Parts]] = defaultdict(list)
        for question, kind, bucket, part, content in _blobs(batches):
            if kind == PARTS:
                found[question].append(pickle.loads(content))
            else:
                yield from batched([(question, kind, bucket, part, content)])
        for number, several in found.items():
            asked = plan.works[number].question
            yield from batched(_written(number, asked, joined(in_parts(asked.query), several)))

    return task


def unpacking(number: int) -> Task:
    """The task that takes a question's rows out of a job's."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        for question, kind, _, _, content in _blobs(batches):
            if question == number and kind == ROWS:
                yield from pa.ipc.open_stream(content)

    return task


# --------------------------------------------------------------------------------------------------------------- steps


def _read(plan: Plan, number: int) -> Iterator[Blob]:
    whole = [_needed(work, plan.ranges, number) for work in plan.works]
    low, high = min(start for start, _ in whole), max(stop for _, stop in whole)
    peak = Peak()
    found = read_range(plan.files, low, high, plan.names) if low < high else None
    if found is None or not found.num_rows:
        return
    table = SilverTable(found)
    del found
    for index, (work, (start, stop)) in enumerate(zip(plan.works, whole, strict=True)):
        rows, last = slice(*np.searchsorted(table.time, [start, stop]).tolist()), index == len(whole) - 1
        with _Measured(index, peak) as measured:
            # What is read before the own range was counted by another task.
            own = max(start, plan.ranges[number][0]) if number else start
            measured.events = int(np.diff(np.searchsorted(table.time, [own, stop]))[0])
            if work.cut.strategy is Strategy.KEYS:
                yield from _split(index, work, table, rows)
            elif work.cut.strategy is Strategy.PANES:
                yield from _mapped(index, work, table.events(work.question, rows, last=last), number, measured)
            else:
                ends = _ends(work, plan.ranges, number)
                parts = _aggregated(work, table.events(work.question, rows, last=last), ends, measured)
                # Every group of a window is whole here: no other task has events of it.
                yield from _written(index, work.question, parts)
        yield measured.blob


def _ends(work: Work, ranges: Sequence[Range], number: int) -> Range:
    """The ends of the windows that a task aggregates; the first and the last task have what lies outside, too."""
    low = ranges[number][0] if number else work.ends[0]
    high = ranges[number][1] if number < len(ranges) - 1 else work.ends[1]
    return max(low, work.ends[0]), min(high, work.ends[1])


def _needed(work: Work, ranges: Sequence[Range], number: int) -> Range:
    """The times of the events that a task needs for a question."""
    if work.cut.strategy is Strategy.SLICES:
        low, high = _ends(work, ranges, number)
        return work.question.reach.events(low, high) if low < high else (0, 0)
    low, high = work.question.reach.events(*work.ends)
    return max(low, ranges[number][0]), min(high, ranges[number][1])


def _aggregated(work: Work, events: Events, ends: Range, measured: _Measured) -> Parts:
    query = in_parts(work.question.query)
    stream = make_stream(query, events)
    del events  # whose memory the engine can use
    rows = choose(query, work.engine).run(query, stream, task_limits(), measured.cost)
    return collected(query, stream, rows, *ends)


def _mapped(index: int, work: Work, events: Events, number: int, measured: _Measured) -> Iterator[Blob]:
    if not len(events):
        return
    query = in_parts(work.question.query)
    summary = summarise(query, events, task_limits())
    hashes = key_hash((summary.panes.attributes[key] for key in query.keys), len(summary.panes))
    bucket = (hashes % np.uint64(work.cut.buckets)).astype(np.int64)
    for to in np.unique(bucket).tolist():
        yield index, MAPS, to, number, pickle.dumps(parted(query, summary, np.flatnonzero(bucket == to)))


def _multiplied(work: Work, contents: Sequence[bytes], measured: _Measured) -> Parts:
    """The rows of maps, which come in the order of time."""
    query, limits = in_parts(work.question.query), task_limits()
    summaries: list[Summary] = [pickle.loads(content) for content in contents]
    while len(summaries) > 1:  # in pairs, so that each map is touched a few times only
        pairs = [summaries[at : at + 2] for at in range(0, len(summaries), 2)]
        summaries = [combine(query, pair[0], pair[1], limits) if len(pair) == 2 else pair[0] for pair in pairs]
    cost = Cost()
    stream, rows = finish(query, summaries[0], limits, cost)
    measured.cost.peak_stored = cost.peak_stored
    return collected(query, stream, rows, *work.ends)


def _split(index: int, work: Work, table: SilverTable, rows: slice) -> Iterator[Blob]:
    """The columns of some rows, by slice of time and hash of the key."""
    question, buckets = work.question, work.cut.buckets
    kept = SilverTable(table.relevant_rows(question, rows))
    hashes = key_hash((kept.column(key) for key in spread_by(question)), len(kept.time))
    bucket = (hashes % np.uint64(buckets)).astype(np.int64)
    order = np.argsort(bucket, kind="stable")
    edges = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
    sorted_rows, times = kept.table.take(pa.array(order)), kept.time[order]
    for to in range(buckets):
        here = sorted_rows.slice(edges[to], edges[to + 1] - edges[to])
        for part, ends in enumerate(work.cut.slices):
            low, high = question.reach.events(*ends)
            inside = here
            if len(work.cut.slices) > 1:
                time_here = times[edges[to] : edges[to + 1]]
                inside = here.filter(pa.array((time_here >= low) & (time_here < high)))
            for first in range(0, inside.num_rows, ROWS_A_BLOB):
                blob = inside.slice(first, ROWS_A_BLOB)
                yield index, EVENTS, part * buckets + to, part, _as_bytes(blob, compressed=True)


def _together(work: Work, contents: Sequence[bytes], ends: Range, measured: _Measured) -> Parts:
    tables = [pa.ipc.open_stream(content).read_all() for content in contents]
    table = SilverTable(pa.concat_tables(tables).unify_dictionaries())
    return _aggregated(work, table.events(work.question), ends, measured)


def _handed_on(plan: Plan, number: int, parts: Parts) -> Iterator[Blob]:
    """Rows: finished where a group lies in one bucket, otherwise parts of them, to the task that adds them up."""
    question = plan.works[number].question
    if {*spread_by(question)} == {*question.query.group_by}:
        yield from _written(number, question, parts)
        return
    spread: dict[int, Parts] = defaultdict(dict)
    for key, values in parts.items():
        spread[crc32(repr(key).encode()) % len(plan.ranges)][key] = values
    for to, some in spread.items():
        yield number, PARTS, to, 0, pickle.dumps(some)


def _written(number: int, question: Question, parts: Parts) -> Iterator[Blob]:
    table = gold_rows(question, finished(question.query, parts))
    if table.num_rows:
        yield number, ROWS, 0, 0, _as_bytes(table)


# ------------------------------------------------------------------------------------------------------------- helpers


class _Measured:
    """What a step of a task took, to be handed on beside its rows."""

    def __init__(self, number: int, peak: Peak | None = None) -> None:
        """`peak`: of the memory since before the step, which holds what it works on."""
        self.number, self.peak, self.events, self.cost = number, peak or Peak(), 0, Cost()

    def __enter__(self) -> _Measured:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._wall, self._cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu

    @property
    def blob(self) -> Blob:
        """The step's cost as a row."""
        facts = {
            "events": self.events,
            "peak_stored": self.cost.peak_stored,
            "trends": self.cost.trends,
            "cpu_seconds": self._cpu,
            "peak_memory": self.peak.added,
        }
        return self.number, COST, 0, 0, json.dumps(facts).encode()


def task_limits() -> Limits:
    """What one of the tasks of a machine may take, where each core has one."""
    return Limits(memory=available_memory() // (2 * (os.cpu_count() or 1)))


def batched(blobs: Iterable[Blob]) -> Iterator[Any]:
    """Rows as Arrow has them, one at a time: each may be large."""
    for question, kind, bucket, part, content in blobs:
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([question], pa.int32()),
                pa.array([kind]),
                pa.array([bucket], pa.int32()),
                pa.array([part], pa.int32()),
                pa.array([content], pa.binary()),
            ],
            names=["question", "kind", "bucket", "part", "bytes"],
        )


def _blobs(batches: Iterable[Any]) -> Iterator[Blob]:
    for batch in batches:
        columns = [batch.column(number).to_pylist() for number in range(4)]
        for at, (question, kind, bucket, part) in enumerate(zip(*columns, strict=True)):
            yield question, kind, bucket, part, batch.column(4)[at].as_py()


def _as_bytes(table: Any, *, compressed: bool = False) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compressed else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content
