"""The table of companies and their sectors."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


UNKNOWN_SECTOR = "Unknown"


@cache
def sectors() -> dict[str, str]:
    """The sector of each company that the table has."""
    with Path(__file__).with_name("sectors.csv").open(encoding="utf-8", newline="") as file:
        return {row["company"]: row["sector"] for row in csv.DictReader(file)}


def with_sector(rows: DataFrame) -> DataFrame:
    """Rows with the `sector` of their `company`, null where the table has none."""
    table = rows.sparkSession.createDataFrame([*sectors().items()], "company string, sector string")
    return rows.join(F.broadcast(table), "company", "left")
