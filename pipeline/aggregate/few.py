"""Few answers: an Arrow table in this process, for which no step after the job needs another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import dataset, fs

from pipeline.aggregate import tasks
from pipeline.aggregate.partials import gold_schema
from pipeline.questions import Question

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.aggregate.job import Answer

FEW = 200_000  # rows
FEW_BYTES = 64 * 2**20  # of a job's staged answers


def with_rows(spark: SparkSession, answer: Answer, found: Any) -> Answer:
    """An answer with these rows, which are its own, where they are few."""
    if found.num_rows > FEW:
        return answer
    # Of no rows, Spark Connect makes no frame.
    return replace(answer, few=found, rows=spark.createDataFrame(found) if found.num_rows else answer.rows)


def staged(system: fs.FileSystem, folder: str, number: int, question: Question) -> Any:
    """The rows of a question, which has this number, from a folder of staged answers; None where that holds many."""
    files = [file for file in system.get_file_info(fs.FileSelector(folder)) if file.base_name.endswith(".parquet")]
    if sum(file.size for file in files) > FEW_BYTES:
        return None
    stored = dataset.dataset([file.path for file in files], filesystem=system, format="parquet")
    wanted = (dataset.field("question") == number) & (dataset.field("kind") == tasks.ROWS)
    return joined(question, stored.to_table(columns=["bytes"], filter=wanted).column("bytes").to_pylist())


def joined(question: Question, blobs: Sequence[bytes]) -> Any:
    """The rows that tasks gave, as one table."""
    parts = [pa.ipc.open_stream(blob).read_all() for blob in blobs]
    return pa.concat_tables([gold_schema(question).empty_table(), *parts])
