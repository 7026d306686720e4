"""A landing day of stock from raw files to silver, step by step, against plain Spark that sorts the same rows."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Figure, Target, progress
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.days import prepare, process_day
from pipeline.sources.generator import generate
from pipeline.sources.generator.files import Shares
from pipeline.spark import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TITLE = "A landing day of 20 million stock events, from raw files to silver, against plain Spark"
ROOT = Path(__file__).parents[1]
DAY = date(2030, 1, 7)
STOCK = DATASETS["stock"]
SIZE = 20_000_000
SMALL = 20_000  # rows of a day before, which warms Spark and Great Expectations up
# What is said when a step begins, and the step.
STEPS = {"reads": "read", "checks bronze": "check bronze", "writes bronze": "write bronze", "refines": "refine",
         "checks silver": "check silver", "writes silver": "write silver", "has": "record"}  # fmt: skip


def ingest(scale: float) -> list[Figure]:
    """The seconds of each step; silver is what follows once the rows are in bronze."""
    size = round(SIZE * scale)
    # A process of its own, since there is one Spark session a process.
    command = [sys.executable, "-m", "benchmarks.ingest", str(size)]
    run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    plain, steps = json.loads(run.stdout.splitlines()[-1])
    silver = sum(steps[name] for name in ("refine", "check silver", "write silver", "record"))
    whole = sum(steps.values())
    return [
        Figure(f"plain Spark, {size:,} rows sorted by time", "s", [plain]),
        *(Figure(f"{name}, {seconds / whole:.0%}", "s", [seconds]) for name, seconds in steps.items()),
        Figure("landing to silver", "s", [whole]),
        Figure("landing to silver", "M rows/s", [size / whole / 1e6]),
        Figure("silver : plain Spark", "×", [silver / plain], Target("≤", 3)),
    ]


def main(size: int) -> None:
    """Print the seconds of plain Spark, and of each step."""
    with tempfile.TemporaryDirectory(prefix="trendmill-ingest-") as folder:
        config = Config(f"{folder}/lake", f"{folder}/landing", "local[2]", site=f"{folder}/site")
        progress(f"  generates {size:,} rows")
        generate(STOCK, Path(config.landing), [DAY], size, shares=Shares(0, 0, 0))
        with _session(config) as spark:
            prepare(spark, config, STOCK)
            if size > SMALL:
                _warm_up(spark, folder)
            progress("  plain Spark")
            plain = _timed_plain(spark, config, f"{folder}/plain")
            progress("  landing to silver")
            steps = _timed_steps(spark, config)
            progress("  plain Spark again")
            plain = min(plain, _timed_plain(spark, config, f"{folder}/plain-again"))
    print(json.dumps([plain, steps]))


def _timed_steps(spark: SparkSession, config: Config) -> dict[str, float]:
    begun: list[tuple[str, float]] = []

    def say(message: str) -> None:
        step = next(name for said, name in STEPS.items() if message.startswith(said))
        begun.append((step, time.perf_counter()))
        progress(f"    {step}")

    process_day(spark, config, STOCK, DAY, "bench", say=say)
    ends = [*(at for _, at in begun[1:]), time.perf_counter()]
    return {step: end - at for (step, at), end in zip(begun, ends, strict=True)}


def _timed_plain(spark: SparkSession, config: Config, target: str) -> float:
    """Read the trades with a schema, sort them by time, write them as Delta: no checks, no bad rows, no ids."""
    started = time.perf_counter()
    _plain(spark, config).write.format("delta").save(target)
    return time.perf_counter() - started


def _plain(spark: SparkSession, config: Config) -> DataFrame:
    from pyspark.sql import functions as F

    schema = "milliseconds bigint, price bigint, shares bigint, exchange string, condition string, suspicious int"
    trades = spark.read.schema(schema).csv(f"{config.landing}/stock/{DAY}/*_trade.csv.gz")
    midnight = F.to_utc_timestamp(F.lit(str(DAY)), STOCK.zone)
    return trades.select(
        F.timestamp_micros(F.unix_micros(midnight) + F.col("milliseconds") * 1000).alias("time"),
        F.element_at(F.split(F.element_at(F.split(F.input_file_name(), "/"), -1), "_"), 1).alias("company"),
        (F.col("price") / 10_000).alias("price"),
        F.col("shares").alias("volume"),
        "exchange",
        "condition",
        "suspicious",
    ).orderBy("time")


def _warm_up(spark: SparkSession, folder: str) -> None:
    small = Config(f"{folder}/small/lake", f"{folder}/small/landing", "local[2]", site=f"{folder}/small/site")
    generate(STOCK, Path(small.landing), [DAY], SMALL)
    prepare(spark, small, STOCK)
    process_day(spark, small, STOCK, DAY, "small")


@contextmanager
def _session(config: Config) -> Iterator[SparkSession]:
    spark = session(config)
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
