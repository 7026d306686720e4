"""Answers over all events of silver: by the job, and by an engine in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.aggregate.columns import SilverTable, needed_columns
from pipeline.aggregate.cut import Range
from pipeline.aggregate.job import aggregated
from pipeline.aggregate.partials import collected, finished, gold_rows, in_parts
from pipeline.aggregate.scan import read_range
from pipeline.aggregate.snapshot import snapshot
from pipeline.config import Config
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Cost, Limits
from pipeline.engines.sase import Sase
from pipeline.engines.stream import make_stream
from pipeline.questions import Question
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALWAYS = (0, 4 * 10**15)


def in_one_run(config: Config, asked: Question) -> list[tuple[Any, ...]]:
    """The rows of an engine, another than the job takes by itself, over all events at once."""
    found = snapshot(config, silver(asked.dataset))
    events = SilverTable(read_range(found.files, *ALWAYS, needed_columns(asked))).events(asked)
    query = in_parts(asked.query)
    stream = make_stream(query, events)
    engine = next(one for one in (Cogra(), Sase()) if one.refuses(query) is None)
    rows = engine.run(query, stream, Limits(), Cost())
    return _as_rows(gold_rows(asked, finished(asked.query, collected(query, stream, rows, *ALWAYS))))


def by_job(spark: SparkSession, config: Config, asked: Sequence[tuple[Question, Range]], **options: Any) -> list[Any]:
    """The rows of each question."""
    with aggregated(spark, config, asked, **options) as answers:
        return [_as_rows(answer.rows.toArrow()) for answer in answers]


def _as_rows(table: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]
