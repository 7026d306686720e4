"""Landing files as bronze rows on Spark, for the tests of formats."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession

from pipeline.datasets.declaration import Dataset
from pipeline.sources.formats import Format
from pipeline.sources.landing_rows import SCHEMA, landing_file, read_rows

DAY = date(2030, 1, 7)


def table(landing: Path, file: str, formats: Sequence[Format], day: date = DAY) -> pa.Table:
    """The rows of a landing file."""
    return pa.Table.from_batches(read_rows(landing_file(str(landing), file, day), formats), SCHEMA)


def bronze(spark: SparkSession, landing: Path, files: Sequence[str], dataset: Dataset, day: date = DAY) -> DataFrame:
    """The rows of landing files, from Parquet as in the lake."""
    folder = landing / "bronze.parquet"
    folder.mkdir()
    for number, file in enumerate(files):
        pq.write_table(table(landing, file, dataset.formats, day), folder / f"{number}.parquet")
    return spark.read.parquet(str(folder))


def events(rows: DataFrame, dataset: Dataset) -> DataFrame:
    """The events of bronze rows of any of a dataset's formats and headers."""
    found = None
    for kind in rows.select("format", "header").distinct().collect():
        known = next(known for known in dataset.formats if known.name == kind["format"])
        some = known.events(rows.where((rows.format == kind["format"]) & rows.header.eqNullSafe(kind["header"])))
        found = some if found is None else found.unionByName(some)
    assert found is not None
    return found


def from_text(
    spark: SparkSession, landing: Path, name: str, text: str | bytes, dataset: Dataset, day: date = DAY
) -> list[Row]:
    """The events of a file with this text."""
    path = landing / dataset.name / str(day) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    rows = bronze(spark, landing, [str(path.relative_to(landing))], dataset, day)
    return events(rows, dataset).orderBy("line", "part").collect()
