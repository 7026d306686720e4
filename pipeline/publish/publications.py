"""`ops.publications`: what is published, one row a query and interval."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from pipeline import delta
from pipeline.arrow_tables import open_table
from pipeline.config import Config
from pipeline.intervals import is_between
from pipeline.tables import OPS_PUBLICATIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Publication:
    """One interval of a query, as its last run left it."""

    query: str
    interval_date: date
    dataset: str
    run_id: str
    query_version: str
    engine: str
    silver_version: int
    gold_version: int
    rows: int
    changed: int
    events: int
    files: Sequence[str] = ()
    warnings: Sequence[str] = ()
    published_at: datetime = field(default_factory=lambda: datetime.now(UTC))


def read(
    spark: SparkSession, config: Config, query: str, first: date | None = None, last: date | None = None
) -> list[Publication]:
    """The rows of a query, by day."""
    found = [_publication(row) for row in delta.rows(spark, config, OPS_PUBLICATIONS, query=query)]
    asked = [one for one in found if is_between(one.interval_date, first, last)]
    return sorted(asked, key=lambda one: one.interval_date)


def write(spark: SparkSession, config: Config, publication: Publication) -> None:
    """Put the row in the place of the interval's last one, unless that is of a newer version of silver.

    Of two queries, one's answers are not newer than the other's: the one stays that is later in gold.
    """
    row = dataclasses.asdict(publication) | {"files": [*publication.files], "warnings": [*publication.warnings]}
    where: delta.Unit = {"query": publication.query, "interval_date": publication.interval_date}
    if config.lake_folder is None:
        _write_by_spark(spark, config, publication, row, where)
        return

    def attempt() -> None:
        found = open_table(config, OPS_PUBLICATIONS.full_name)
        if not any(_is_newer(_publication(one), publication) for one in found.rows(where)):
            found.replace([row], where, {"run_id": publication.run_id})

    delta.retrying(OPS_PUBLICATIONS, attempt)


def _is_newer(one: Publication, publication: Publication) -> bool:
    if one.query_version == publication.query_version:
        return one.silver_version > publication.silver_version
    return one.gold_version > publication.gold_version


def _write_by_spark(
    spark: SparkSession,
    config: Config,
    publication: Publication,
    row: dict[str, Any],
    where: delta.Unit,
) -> None:
    from pyspark.sql import functions as F

    schema = ", ".join(f"{column.name} {column.type}" for column in OPS_PUBLICATIONS.columns)
    mine = spark.createDataFrame([tuple(row[column.name] for column in OPS_PUBLICATIONS.columns)], schema)
    # Read by the very commit that replaces it: a row that comes meanwhile is a conflict, and is read then.
    there = delta.read(spark, config, OPS_PUBLICATIONS).where(delta.predicate(where))
    newer = there.where(
        F.when(
            F.col("query_version") == publication.query_version,
            F.col("silver_version") > publication.silver_version,
        ).otherwise(F.col("gold_version") > publication.gold_version)
    )
    frame = newer.unionByName(mine.join(newer, F.lit(True), "left_anti"))
    delta.replace(spark, config, OPS_PUBLICATIONS, frame, where, {"run_id": publication.run_id})


def _publication(row: dict[str, Any]) -> Publication:
    return Publication(**row | {"files": tuple(row["files"]), "warnings": tuple(row["warnings"])})
