"""Landing → bronze: the rows of new and changed files, read in parallel, replace what bronze has of these files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from pipeline import delta
from pipeline.config import Config
from pipeline.sources.formats import Format
from pipeline.sources.landing_rows import MEMBER, LandingFile, path_of, read_rows
from pipeline.tables import bronze, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.datasets.declaration import Dataset

BYTES_A_TASK = 32 * 2**20


def known_files(spark: SparkSession, config: Config, dataset: Dataset, day: date) -> dict[str, str]:
    """The landing files that bronze has of a day: their paths, and the hashes of their content."""
    rows = day_rows(spark, config, dataset, day).select("file", "file_hash").distinct().collect()
    return {path_of(row.file): row.file_hash for row in rows}


def read_files(spark: SparkSession, dataset: Dataset, files: Sequence[LandingFile]) -> DataFrame:
    """The rows of some files, which tasks share between them by size."""
    columns = ", ".join(f"{column.name} {column.type}" for column in bronze(dataset).columns)
    shares = _shares(files)
    return spark.range(0, len(shares), 1, len(shares)).mapInArrow(_reader(shares, dataset.formats), columns)


def day_rows(spark: SparkSession, config: Config, dataset: Dataset, day: date, version: int | None = None) -> DataFrame:
    """What bronze has of a landing day."""
    return delta.read(spark, config, bronze(dataset), version).where(delta.predicate({"landing_date": day}))


def with_kept(rows: DataFrame, here: DataFrame, paths: Iterable[str]) -> DataFrame:
    """The rows of the files with these paths, together with a day's other rows, which stay."""
    from pyspark.sql import functions as F

    return rows.unionByName(here.where(~F.substring_index("file", MEMBER, 1).isin(*paths)))


def commit(
    spark: SparkSession,
    config: Config,
    dataset: Dataset,
    day: date,
    rows: DataFrame,
    paths: Iterable[str],
    metadata: dict[str, str],
) -> int:
    """Put the rows of these files in the place of what bronze has under the same paths; the version."""
    listed = ", ".join(literal(path) for path in sorted(paths))
    # The members of an archive are replaced together.
    where = f"{delta.predicate({'landing_date': day})} AND substring_index(file, '{MEMBER}', 1) IN ({listed})"
    return delta.replace(spark, config, bronze(dataset), rows, where, metadata)


def _shares(files: Sequence[LandingFile]) -> list[list[LandingFile]]:
    """Files by task: large ones first, each to the task that has least."""
    count = min(len(files), max(4, sum(file.bytes for file in files) // BYTES_A_TASK))
    shares: list[list[LandingFile]] = [[] for _ in range(count)]
    for file in sorted(files, key=lambda file: -file.bytes):
        min(shares, key=lambda share: sum(other.bytes for other in share)).append(file)
    return shares


def _reader(shares: list[list[LandingFile]], formats: tuple[Format, ...]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def read(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for share in batch.column(0).to_pylist():
                for file in shares[share]:
                    yield from read_rows(file, formats)

    return read
