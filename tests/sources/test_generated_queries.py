"""The shipped queries find something in generated data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.cli import main
from pipeline.datasets import DATASETS
from pipeline.sources.generator import generate
from tests.sources.bronze import DAY, bronze, events

QUERIES = Path(__file__).parents[2] / "queries"


@pytest.mark.parametrize(
    ("name", "rows", "queries"),
    [
        ("stock", 60_000, ["dell-ipix-amat", "dell-ipix-amat-without-qqq", "e-cube/q16-computer-finance-education"]),
        ("taxi", 2_000, ["trips-by-district"]),
        ("activity", 8_000, ["slow-to-fast-heart-rate"]),
    ],
)
def test_results(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    rows: int,
    queries: list[str],
) -> None:
    dataset = DATASETS[name]
    manifest = generate(dataset, tmp_path, [DAY], rows)
    used = ("company", "sector", "type", "driver", "rider", "district", "speed", "patient", "rate", "price")
    columns = [column.name for column in dataset.columns if column.name in used]
    good = events(bronze(spark, tmp_path, manifest.files, dataset), dataset).where("reason is null")
    path = tmp_path / "events.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", *columns])
        writer.writerows(good.select((F.unix_micros("time") / 1e6).cast("decimal(20,6)"), *columns).collect())
    for query in queries:
        text = str(QUERIES / name / f"{query}.query")
        types = ",".join(dataset.types)
        assert main(["run", text, "--events", str(path), "--types", types, "--format", "jsonl"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert any(row["COUNT(*)"] for row in found), query
