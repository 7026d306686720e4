"""A Spark job over more and more rows, on one core and two, with even keys and one huge one; and window functions.

What is asked, how often prices fall several times running, SQL can say too: rows are numbered by the falls before them
(a window function), and a run of n falls has n (n + 1) / 2 trends. Any-match has no such form.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.harness import DisagreementError, Figure, progress
from benchmarks.jobs import DAY, ROOT, make_stock, sort_stock
from pipeline import delta
from pipeline.aggregate import job
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.questions import Question, ask
from pipeline.spark import session
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TITLE = "Falling runs of 1,000 companies as Spark jobs, over more and more rows, against plain Spark on the same rows"
MILLION = 1_000_000
# Rows, cores, and the part of all rows that is of one company.
RUNS = ((2 * MILLION, 2, 0), (10 * MILLION, 1, 0), (10 * MILLION, 2, 0), (10 * MILLION, 2, 0.5), (50 * MILLION, 2, 0))
FEW = MILLION  # rows, which warm Spark up
ROUNDS, ONCE = 2, 20 * MILLION  # from so many rows on, one round
RATIOS = (("contiguous, job", "contiguous, window functions"), ("any-match, job", "sort and count"))
FALLS = (
    "RETURN sector, COUNT(*) PATTERN Stock S+ FROM stock SEMANTICS {} WHERE [company, sector] "
    "AND S.price > NEXT(S).price GROUP-BY sector WITHIN 10 minutes SLIDE 10 minutes"
)
ISLANDS = """
WITH before AS (
  SELECT sector, company, time, window(time, '10 minutes').start AS frame, price,
         lag(price) OVER (PARTITION BY company, window(time, '10 minutes').start ORDER BY time) AS last
  FROM rows
), runs AS (
  SELECT sector, company, frame,
         sum(if(last > price, 0, 1)) OVER (PARTITION BY company, frame ORDER BY time) AS run
  FROM before
), lengths AS (SELECT sector, frame, company, run, count(*) AS n FROM runs GROUP BY sector, frame, company, run)
SELECT sector, frame, sum(n * (n + 1) / 2) AS trends FROM lengths GROUP BY sector, frame
"""


def sizes(scale: float) -> list[Figure]:
    """Rows a second of each, and the ratio of the jobs' seconds to those of plain Spark."""
    figures = []
    for size, cores, skew in RUNS:
        rows = round(size * scale)
        kind = f"{rows / 1e6:g} M rows, {cores} core{'s' * (cores > 1)}{', half of one company' * bool(skew)}"
        progress(f"  {kind}")
        # A process of its own, since there is one Spark session a process.
        command = [sys.executable, "-m", "benchmarks.sizes", str(rows), str(cores), str(skew)]
        run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
        seconds: dict[str, list[float]] = json.loads(run.stdout.splitlines()[-1])
        figures += [
            Figure(f"{kind}: {case}", "M rows/s", [rows / one / 1e6 for one in taken])
            for case, taken in seconds.items()
        ]
        figures += [
            Figure(f"{kind}: {case} : {plain}", "×", [one / other for one, other in zip(*pair, strict=True)])
            for case, plain in RATIOS
            for pair in [(seconds[case], seconds[plain])]
        ]
    return figures


def main(rows: int, cores: int, skew: float) -> None:
    """Print the seconds of each case."""
    with tempfile.TemporaryDirectory(prefix="trendmill-sizes-") as folder:
        few, config = (Config(f"{folder}/{name}", f"{folder}/landing", f"local[{cores}]") for name in ("few", "lake"))
        spark = session(config)
        progress("    makes the tables, and warms up")
        make_stock(spark, few, min(rows, FEW), 1_000, skew)
        make_stock(spark, config, rows, 1_000, skew)
        _timed(spark, few)
        rounds = [_timed(spark, config) for _ in range(1 if rows >= ONCE else ROUNDS)]
        spark.stop()
    print(json.dumps({name: [one[name] for one in rounds] for name in rounds[0]}))


def _timed(spark: SparkSession, config: Config) -> dict[str, float]:
    """The seconds of each case."""
    delta.read(spark, config, silver(DATASETS["stock"])).createOrReplaceTempView("rows")
    every, runs = (ask(FALLS.format(name), f"{name}.query") for name in ("skip-till-any-match", "contiguous"))
    cases: dict[str, Callable[[], object]] = {
        "sort and count": lambda: sort_stock(spark, config),
        "contiguous, window functions": lambda: _islands(spark),
        "contiguous, job": lambda: _trends(spark, config, runs),
        "any-match, job": lambda: _trends(spark, config, every),
    }
    found, taken = {}, {}
    for name, case in cases.items():
        started = time.perf_counter()
        found[name] = case()
        taken[name] = time.perf_counter() - started
        progress(f"    {name}: {taken[name]:.1f} s")
    if found["contiguous, window functions"] != found["contiguous, job"]:
        raise DisagreementError(f"SQL and the job give different answers: {found}")
    return taken


def _islands(spark: SparkSession) -> int:
    return sum(int(row.trends) for row in spark.sql(ISLANDS).collect())


def _trends(spark: SparkSession, config: Config, question: Question) -> int:
    with job.aggregated(spark, config, [(question, question.reach.ends(DAY))]) as (answer,):
        return sum(int(row["count"]) for row in answer.rows.select("count").collect())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
