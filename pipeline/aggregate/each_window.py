"""Spark over single windows: their events are counted, some windows chosen, and each of them given to a function."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, or_
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pipeline import delta
from pipeline.aggregate.columns import TIME, SilverTable, needed_columns
from pipeline.aggregate.cut import FEW_EVENTS, Range, task_ranges
from pipeline.aggregate.job import described, parallelism
from pipeline.aggregate.partials import ARROW
from pipeline.aggregate.reach import Reach, as_time
from pipeline.aggregate.scan import read_range
from pipeline.aggregate.snapshot import Snapshot, look
from pipeline.aggregate.windows import Counts, Stretch, candidates, chosen
from pipeline.config import Config
from pipeline.events import Events
from pipeline.questions import Question
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "bytes binary"

# What is made of one window's events; it goes to tasks, and what it gives comes back.
Work = Callable[[Stretch, Events], Any]


@dataclass(frozen=True)
class Source:
    """A version of a question's events, for the windows with some ends."""

    spark: SparkSession
    config: Config
    question: Question
    ends: Range
    found: Snapshot
    unread: bool  # only Spark can reach the files
    here: bool  # they are few, and are worked on in this process

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        config: Config,
        question: Question,
        ends: Range,
        version: int | None = None,
        by_spark: bool | None = None,
        *,
        may_be_here: bool = False,
    ) -> Source:
        """The newest version by default; `by_spark` as for a job. `may_be_here`: few events need no job."""
        found, unread = look(spark, config, silver(question.dataset), version, by_spark)
        rows = sum(file.rows for file in found.within(*question.reach.events(*ends)))
        here = may_be_here and not unread and rows <= FEW_EVENTS
        return cls(spark, config, question, ends, found, unread, here)

    def windows(self, number: int) -> list[Stretch]:
        """Some of the windows, most and fewest events among them."""
        reach, ends = self.question.reach, self.ends
        whole = reach.events(*ends)
        files = self.found.within(*whole)
        if not files:
            return []
        if self.unread:
            frame = self._rows([whole], (TIME,)).mapInArrow(_counting(reach, whole), SCHEMA)
        else:
            ranges = task_ranges(files, whole, self.tasks)

            def count(task: int) -> Counts:
                found = read_range(files, *ranges[task], (TIME,))
                return Counts.of(reach, whole, np.zeros(0, np.int64) if found is None else SilverTable(found).time)

            if self.here:
                counts = [*map(count, range(len(ranges)))]
                return chosen(candidates(reach, ends), reduce(add, counts), number)
            frame = self._numbered(len(ranges), len(ranges), count)
        counts = self._collected(frame, f"{self.question.name}: events counted")
        return chosen(candidates(reach, ends), reduce(add, counts), number) if counts else []

    def each(self, stretches: Sequence[Stretch], work: Work, about: str) -> list[Any]:
        """What a function makes of the events of each of some windows."""
        if not stretches:
            return []
        names, question, files = needed_columns(self.question), self.question, self.found.files
        if self.unread:
            rows = self._rows([stretch.events for stretch in stretches], names)
            frame = rows.coalesce(1).mapInArrow(_gathering(question, tuple(stretches), work), SCHEMA)
        else:

            def one(number: int) -> Any:
                stretch = stretches[number]
                found = read_range(files, *stretch.events, names)
                table = SilverTable(_nothing(question, names) if found is None else found)
                return work(stretch, table.events(question))

            if self.here:
                return [*map(one, range(len(stretches)))]
            frame = self._numbered(len(stretches), min(len(stretches), self.tasks), one)
        return self._collected(frame, f"{question.name}: {about}")

    @property
    def tasks(self) -> int:
        """How many windows are worked on at once."""
        return 1 if self.unread or self.here else parallelism(self.spark, self.config)

    def _numbered(self, count: int, tasks: int, work: Callable[[int], Any]) -> DataFrame:
        def task(batches: Iterable[Any]) -> Iterator[Any]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield _blob(work(number))

        return self.spark.range(0, count, 1, tasks).mapInArrow(task, SCHEMA)

    def _rows(self, ranges: Sequence[Range], names: Sequence[str]) -> DataFrame:
        from pyspark.sql import functions as F

        wanted = [F.col(TIME).between(as_time(low), as_time(high - 1)) for low, high in ranges if low < high]
        frame = delta.read(self.spark, self.config, silver(self.question.dataset), self.found.version)
        return frame.where(reduce(or_, wanted, F.lit(False))).select(*names)

    def _collected(self, frame: DataFrame, about: str) -> list[Any]:
        with described(self.spark, self.config, about):
            return [pickle.loads(row[0]) for row in frame.collect()]


def _counting(reach: Reach, whole: Range) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def task(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield _blob(Counts.of(reach, whole, SilverTable(pa.Table.from_batches([batch])).time))

    return task


def _gathering(
    question: Question, stretches: Sequence[Stretch], work: Work
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The one task that gets the rows of all windows, as Spark reads them."""

    def task(batches: Iterable[Any]) -> Iterator[Any]:
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        table = pa.concat_tables(tables) if tables else _nothing(question, needed_columns(question))
        order = np.argsort(SilverTable(table).time, kind="stable")
        ordered = SilverTable(table.take(pa.array(order)))
        for stretch in stretches:
            rows = slice(*np.searchsorted(ordered.time, stretch.events).tolist())
            yield _blob(work(stretch, ordered.events(question, rows)))

    return task


def _nothing(question: Question, names: Sequence[str]) -> Any:
    """No rows of silver."""
    types = {column.name: ARROW[column.type] for column in silver(question.dataset).columns}
    return pa.schema([pa.field(name, types[name]) for name in names]).empty_table()


def _blob(found: Any) -> Any:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(found)], pa.binary())], names=["bytes"])
