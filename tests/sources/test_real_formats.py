"""Real files, where they lie beside the project: every row becomes events or is set aside for a reason that it has."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.datasets import DATASETS
from tests.sources.bronze import bronze, events

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data beside the project")

# A file, its rows, its events, and the reasons that some rows have.
FILES = [
    ("stock/aig_20131007_trade.csv.gz", 25_351, 25_351, {}),
    ("stock/aig_20131008_trade.csv.gz", 43_342, 43_342, {}),
    ("stock/bac_20131007_trade.csv.gz", 88_172, 88_172, {}),
    ("stock/bac_20131008_trade.csv.gz", 125_872, 125_872, {}),
    ("stock/ibm_20131007_trade.csv.gz", 24_293, 24_293, {}),
    ("stock/ibm_20131008_trade.csv.gz", 33_381, 33_381, {}),
    ("stock/spy_20131007_trade.csv.gz", 250_601, 250_601, {}),
    # Both rows of a ride that begins at 404 degrees north.
    ("taxi/ride_events_2013-01-01.csv.gz", 100_000, 53_549 + 2 * 46_449, {"startLat: out of range": 2}),
    # Refunds.
    ("taxi/yellow_tripdata_sample_2019-01.csv.gz", 10_000, 3 * 9_993, {"fare_amount: out of range": 7}),
    ("activity/stress_predict_heart_rate.csv.gz", 112_516, 112_516, {}),
]


@pytest.mark.parametrize(("file", "rows", "expected", "reasons"), FILES)
def test_every_row(
    spark: SparkSession, tmp_path: Path, file: str, rows: int, expected: int, reasons: dict[str, int]
) -> None:
    landing = tmp_path / "landing"
    landing.mkdir()
    dataset = DATASETS[file.partition("/")[0]]
    (landing / Path(file).name).symlink_to(DATA / file)
    found = events(bronze(spark, landing, [Path(file).name], dataset, date(2013, 10, 7)), dataset).cache()
    assert found.select("line").distinct().count() == rows
    assert found.where("reason is null").count() == expected
    counted = found.where("reason is not null").groupBy("reason").count().collect()
    assert {row["reason"]: row["count"] for row in counted} == reasons
    if dataset.keys:
        assert found.where("reason is null").groupBy(*dataset.keys).count().where("count > 1").isEmpty()
    assert found.where("time is null and reason is null").isEmpty()
    found.unpersist()


def test_what_the_events_say(spark: SparkSession, tmp_path: Path) -> None:
    """Plain facts of the files, computed from them without this project."""
    taxi = DATASETS["taxi"]
    (tmp_path / "rides.csv.gz").symlink_to(DATA / "taxi/ride_events_2013-01-01.csv.gz")
    found = events(bronze(spark, tmp_path, ["rides.csv.gz"], taxi), taxi)
    row = found.where("reason is null").agg(
        F.countDistinct("driver").alias("drivers"),
        F.min("time").cast("string").alias("first"),
        F.max("time").cast("string").alias("last"),
        F.count_if(F.col("speed").isNull() & (F.col("type") == "Trip")).alias("no_speed"),
    )
    facts = row.first()
    assert facts is not None
    assert (facts["drivers"], facts["first"], facts["last"]) == (10_494, "2013-01-01 05:00:00", "2013-01-01 06:45:05")
    assert facts["no_speed"] < 3000
