"""How long a person waits: `trends run` on a small file, and Airflow for the DAGs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness import Figure, Target, progress

TITLE = "From the shell to a result, files warm, and the time to read the DAGs once Airflow is imported"
ROOT = Path(__file__).parents[1]
ROUNDS = 5
QUERY = "queries/stock/down-trends-by-sector.query"
SAMPLE = "queries/stock/sample.csv"
# As Airflow's DAG processor reads a file, once Airflow itself is imported.
PARSE = """
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
import airflow.sdk, airflow.providers.standard.triggers.temporal
found = {}
for file in sys.argv[1:]:
    begun = time.perf_counter()
    bag = DagBag(dag_folder=file)
    assert bag.dags and not bag.import_errors, bag.import_errors
    found[file] = time.perf_counter() - begun
print(json.dumps(found))
"""


def start(_scale: float) -> list[Figure]:
    """The seconds of each, warm."""
    trends = Path(sys.executable).with_name("trends")
    command = [str(trends), "run", QUERY, "--events", SAMPLE]
    progress(f"  {' '.join(command[1:])}")
    taken = [_timed(command) for _ in range(ROUNDS + 1)][1:]
    return [Figure("trends run, from shell to result", "s", taken, Target("≤", 0.5)), *_dags()]


def _timed(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - started


def _dags() -> list[Figure]:
    files = sorted(map(str, (ROOT / "dags").glob("[a-z]*.py")))
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="trendmill-start-") as home:
        environment = os.environ | {
            "AIRFLOW_HOME": home,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        }
        for number in range(ROUNDS):
            progress(f"  DAGs, round {number + 1}")
            printed = subprocess.run(
                [sys.executable, "-c", PARSE, *files], cwd=ROOT, env=environment, check=True, capture_output=True,
                text=True,
            )  # fmt: skip
            rounds.append(json.loads(printed.stdout.splitlines()[-1]))
    return [Figure(f"read {Path(file).name}", "s", [one[file] for one in rounds], Target("≤", 0.3)) for file in files]
