"""Trend queries over Delta tables as Spark jobs, against plain Spark that groups, or sorts, the same rows."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.harness import Figure, Target, progress
from pipeline import delta
from pipeline.aggregate import job
from pipeline.aggregate.cut import Strategy
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.questions import Question, ask, find
from pipeline.spark import session
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TITLE = "Queries over Delta tables as Spark jobs, against plain Spark on the same rows"
ROOT = Path(__file__).parents[1]
DAY = date(2030, 1, 7)
OPENS, OPEN = "2030-01-07 14:30:00", 6.5 * 3600  # when trades are, and for how many seconds
STOCK, OTHERS = 20_000_000, 5_000_000  # events
FILES = 20
ROUNDS = 2
LEAST_SCALE = 0.05  # that says anything
ONCE = ("q2, group and count", "q4, group and count")  # each event in thirty windows, or twenty: minutes
TUMBLING = (
    "RETURN sector, COUNT(*) PATTERN Stock S+ FROM stock WHERE [company, sector]{} GROUP-BY sector "
    "WITHIN 10 minutes SLIDE 10 minutes"
)
ONE_GROUP = "RETURN COUNT(*), SUM(S.volume) PATTERN Stock S+ FROM stock WITHIN 10 minutes SLIDE 10 seconds"
SLIDES = ("10 minutes", "1 minute", "10 seconds")  # of the same windows: more and more of them
# Made of an event's number: the same on every machine, in an order of its own a company.
RANDOM = "(abs(xxhash64({0}, id)) % 1000000 / 1e6)"


def jobs(scale: float) -> list[Figure]:
    """Seconds of the jobs and of plain Spark, interleaved, and their ratios."""
    # A process of its own, since there is one Spark session a process.
    command = [sys.executable, "-m", "benchmarks.jobs", str(scale)]
    run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    seconds: dict[str, list[float]]
    memory: dict[str, float]
    seconds, memory = json.loads(run.stdout.splitlines()[-1])
    best = {name: min(values) for name, values in seconds.items()}
    ratios = [
        ("no conditions : group and count", "no conditions", "group and count", Target("≤", 1.0)),
        ("q3 : partition and sort", "q3", "partition and sort", Target("≤", 0.4)),
        ("q2 : group and count", "q2", "q2, group and count", Target("≤", 1.0)),
        ("q4 : group and count", "q4", "q4, group and count", Target("≤", 1.0)),
        ("100 000 : 1 000 partitions", "100 000 partitions", "no conditions", Target("≤", 1.5)),
        ("one group, 1 : 2 cores", "one group, 1 core", "one group", Target("≥", 1.6)),
    ]
    return [
        *(Figure(name, "s", values) for name, values in seconds.items()),
        *(Figure(name, "×", [best[one] / best[two]], target) for name, one, two, target in ratios),
        *(Figure(f"memory of a task, SLIDE {slide}", "MB", [size]) for slide, size in memory.items()),
        Figure("memory, SLIDE 10 s : 10 min", "×", [memory[SLIDES[-1]] / (memory[SLIDES[0]] or 1)], Target("≤", 1.2)),
    ]


def main(scale: float) -> None:
    """Print the seconds of each case, and the megabytes of a task for each SLIDE."""
    with tempfile.TemporaryDirectory(prefix="trendmill-jobs-") as folder:
        config = Config(f"{folder}/lake", f"{folder}/landing", "local[2]")
        many = Config(f"{folder}/many", f"{folder}/landing", "local[2]")
        spark = session(config)
        progress("  makes the tables")
        make_stock(spark, config, round(STOCK * scale), 1_000)
        make_stock(spark, many, round(STOCK * scale), 100_000)
        _taxi(spark, config, round(OTHERS * scale))
        _activity(spark, config, round(OTHERS * scale))
        q2, q3, q4 = (find(f"{ROOT}/queries/{name}.query") for name in (
            "taxi/trips-by-district", "stock/down-trends-by-sector", "activity/slow-to-fast-heart-rate"))  # fmt: skip
        plain, group = ask(TUMBLING.format(""), "plain.query"), ask(ONE_GROUP, "group.query")
        cases: dict[str, Callable[[], object]] = {
            "group and count": lambda: _grouped(spark, config, plain, ("company", "sector"), "10 minutes"),
            "no conditions": lambda: run_job(spark, config, plain),
            "no conditions, by panes": lambda: run_job(spark, config, plain, strategy=Strategy.PANES),
            "partition and sort": lambda: sort_stock(spark, config),
            "q3": lambda: run_job(spark, config, q3),
            "q3, by keys": lambda: run_job(spark, config, q3, strategy=Strategy.KEYS),
            "q2, group and count": lambda: _grouped(
                spark, config, q2, ("driver", "rider", "district"), "30 minutes", "1 minute"
            ),
            "q2": lambda: run_job(spark, config, q2),
            "q4, group and count": lambda: _grouped(spark, config, q4, ("patient",), "10 minutes", "30 seconds"),
            "q4": lambda: run_job(spark, config, q4),
            "100 000 partitions": lambda: run_job(spark, many, plain),
            "one group": lambda: run_job(spark, config, group),
            "one group, 1 core": lambda: _one_core(lambda: run_job(spark, config, group)),
        }
        seconds: dict[str, list[float]] = {name: [] for name in cases}
        # Where events are so few that only the code is tried, there is nothing to warm up for.
        numbers = range(ROUNDS + 1) if scale >= LEAST_SCALE else range(1, 2)
        for number in numbers:
            for name, case in cases.items():
                if name in ONCE and number != numbers[-1]:
                    continue
                started = time.perf_counter()
                case()
                taken = time.perf_counter() - started
                progress(f"  {'warms up' if not number else f'round {number}'}: {name}: {taken:.1f} s")
                if number:
                    seconds[name].append(taken)
        memory = {}
        for slide in SLIDES:
            query = TUMBLING.format("").replace("SLIDE 10 minutes", f"SLIDE {slide}")
            memory[slide] = run_job(spark, config, ask(query, "memory.query")) / 2**20
        spark.stop()
    print(json.dumps([seconds, memory]))


def run_job(spark: SparkSession, config: Config, question: Question, **options: Any) -> int:
    """Run a query; the bytes that a task took at most."""
    with job.aggregated(spark, config, [(question, question.reach.ends(DAY))], **options) as (answer,):
        if answer.few is None:
            answer.rows.count()
        return answer.peak_memory


def _one_core(run: Callable[[], object]) -> None:
    """As on a machine of one core: one task does all, one after the other."""
    alone: AbstractContextManager[Any] = patch.object(job, "parallelism", lambda *_: 1)
    with alone, patch("pipeline.aggregate.cut.EVENTS_A_TASK", 10 * STOCK):
        run()


def _silver(spark: SparkSession, config: Config, question: Question) -> DataFrame:
    return delta.read(spark, config, silver(question.dataset))


def _grouped(spark: SparkSession, config: Config, question: Question, keys: tuple[str, ...], *window: str) -> None:
    from pyspark.sql import functions as F

    _noop(_silver(spark, config, question).groupBy(*keys, F.window("time", *window)).count())


def sort_stock(spark: SparkSession, config: Config) -> None:
    """What a plain job must do before it can look at neighbours."""
    rows = delta.read(spark, config, silver(DATASETS["stock"])).select("company", "sector", "time", "price")
    _noop(rows.repartition("company").sortWithinPartitions("company", "time"))


def _noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


# --------------------------------------------------------------------------------------------------------------- tables


def make_stock(spark: SparkSession, config: Config, size: int, companies: int, skew: float = 0) -> None:
    """Trades of a day, some of them of one company; each price is a slow wave with noise, in cents."""
    number = f"if({RANDOM.format(3)} < {skew}, 0, abs(xxhash64(id)) % {companies})"
    _write(
        spark,
        config,
        "stock",
        spark.range(size).selectExpr(
            "id",
            f"timestamp_micros(unix_micros(timestamp'{OPENS}') + cast(id * {OPEN * 1e6 / size} as bigint)) AS time",
            f"concat('C', lpad(cast({number} as string), 6, '0')) AS company",
            f"concat('S', {number} % 11) AS sector",
            f"round(50 + sin(id * {200 / size} + {number}) + {RANDOM.format(1)} / 5, 2) AS price",
            f"cast(1 + 1000 * {RANDOM.format(2)} AS bigint) AS volume",
        ),
    )


def _taxi(spark: SparkSession, config: Config, size: int) -> None:
    """Rides of three events, ten minutes long, over the day."""
    ride = "(id - id % 3) / 3"
    micros = f"cast({ride} * {OPEN * 1e6 * 3 / size} + id % 3 * 300e6 as bigint)"
    _write(
        spark,
        config,
        "taxi",
        spark.range(size).selectExpr(
            "id",
            f"timestamp_micros(unix_micros(timestamp'{OPENS}') + {micros}) AS time",
            "element_at(array('Pickup', 'Trip', 'Dropoff'), cast(id % 3 + 1 as int)) AS type",
            f"cast(cast({ride} AS bigint) AS string) AS ride",
            f"concat('driver', cast({ride} AS bigint) % 20000) AS driver",
            f"concat('rider', cast({ride} AS bigint)) AS rider",
            f"concat('zone', cast({ride} AS bigint) % 260) AS district",
            f"CASE WHEN id % 3 = 1 THEN 5 + 30 * {RANDOM.format(1)} END AS speed",
        ),
    )


def _activity(spark: SparkSession, config: Config, size: int) -> None:
    """Heart rates of a thousand people."""
    _write(
        spark,
        config,
        "activity",
        spark.range(size).selectExpr(
            "id",
            f"timestamp_micros(unix_micros(timestamp'{OPENS}') + cast(id * {OPEN * 1e6 / size} as bigint)) AS time",
            f"CASE WHEN {RANDOM.format(1)} < 0.9 THEN 'passive' ELSE 'active' END AS type",
            "'sitting' AS activity",
            "concat('p', id % 1000) AS patient",
            f"40 + 80 * {RANDOM.format(2)} AS rate",
        ),
    )


def _write(spark: SparkSession, config: Config, dataset: str, events: DataFrame) -> None:
    from pyspark.sql import functions as F

    table = silver(DATASETS[dataset])
    delta.create(spark, config, table)
    own = {
        "event_id": F.lpad(F.col("id").cast("string"), 20, "0"),
        "event_date": F.to_date("time"),
        "ambiguous_time": F.lit(False),
        "late": F.lit(False),
        "file": F.lit("generated"),
        "line": F.lit(1),
        "landing_date": F.lit(DAY),
    }
    rows = events.withColumns(own)
    columns = [
        (F.col(c.name) if c.name in rows.columns else F.lit(None)).cast(c.type).alias(c.name) for c in table.columns
    ]
    ranged = rows.select(*columns).repartitionByRange(FILES, "time").sortWithinPartitions("time")
    delta.append(spark, config, table, ranged)


if __name__ == "__main__":
    main(float(sys.argv[1]))
