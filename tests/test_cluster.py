"""A Spark cluster of this machine, a master and two workers in processes of their own: a backfill on it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from pipeline.aggregate.cut import Strategy
from pipeline.aggregate.job import aggregated, most_cores
from pipeline.config import Config
from pipeline.jars import spark_home
from pipeline.spark import environment
from tests import small_lake
from tests.conftest import free_port
from tests.small_lake import MONDAY, ROOT, TUESDAY, UNCHECKED, WHOLE_DAYS, copy, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPLOY = "org.apache.spark.deploy"
# Few events, but several tasks; then each way of cutting them, and how many tasks each executor had.
PROGRAM = (
    UNCHECKED
    + """
import json
from pipeline.aggregate import cut
from pipeline.aggregate.job import aggregated, parallelism
from pipeline.config import Config
from pipeline.spark import session
from tests.small_lake import TUESDAY, WHOLE_DAYS

cut.FEW_EVENTS = 10
code = main(sys.argv[1:])
config = Config.from_environment()
spark = session(config)
asked = [(WHOLE_DAYS, WHOLE_DAYS.reach.ends(TUESDAY))]
found = {"code": code, "parallelism": parallelism(spark, config)}
for strategy in cut.Strategy:
    with aggregated(spark, config, asked, strategy=strategy) as answers:
        found[strategy.name] = sorted(str(row) for row in answers[0].rows.collect())
executors = spark.sparkContext._jsc.sc().statusStore().executorList(True)
found["tasks"] = {executors.apply(n).id(): executors.apply(n).completedTasks() for n in range(executors.size())}
print(json.dumps(found))
spark.stop()
"""
)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster with two workers, in another time zone."""
    port, page = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    host = ("--host", "127.0.0.1")
    with ExitStack() as stack:
        stack.enter_context(_daemon(tmp_path, "Master", *host, "--port", str(port), "--webui-port", str(page)))
        for number in (1, 2):
            folder = tmp_path / f"worker{number}"
            size = ("--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder))
            stack.enter_context(_daemon(tmp_path, "Worker", *host, *size, url, number=number))
        _wait(f"http://127.0.0.1:{page}/json/", tmp_path)
        yield url


@contextmanager
def _daemon(folder: Path, name: str, *arguments: str, number: int = 0) -> Iterator[None]:
    settings = {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYTHONPATH": str(ROOT),
        "TZ": "Asia/Tokyo",
    }
    command = [str(spark_home() / "bin" / "spark-class"), f"{DEPLOY}.{name.lower()}.{name}", *arguments]
    with (folder / f"{name}{number}.log").open("w") as log:
        started = subprocess.Popen(
            command,
            env=os.environ | environment(Config(master="spark://127.0.0.1:1")) | settings,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        started.terminate()
        started.wait(30)


def _wait(page: str, folder: Path) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end:
        try:
            with urlopen(page, timeout=5) as answer:
                if json.load(answer)["aliveworkers"] == 2:
                    return
        except OSError:
            pass
        time.sleep(0.2)
    logs = "\n".join(log.read_text() for log in folder.glob("*.log"))
    raise RuntimeError(f"the cluster did not start:\n{logs}")


def test_a_backfill_on_two_workers(
    spark: SparkSession, published: Path, clean: dict[str, list[str]], config: Config, master: str
) -> None:
    config = copy(published, config)
    days = ("--from", str(MONDAY), "--to", str(TUESDAY))
    memory = {"spark.executor.memory": "512m", "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    driver = small_lake.start(config, PROGRAM, "backfill", "falling", *days, "--changed", master=master, **memory)
    out, err = driver.communicate(timeout=600)
    assert driver.returncode == 0, err
    found = json.loads(out.splitlines()[-1])
    assert found["code"] == 0, err
    assert "nothing shuffled" in err or "shuffled" in err  # several tasks, where one could do all
    assert tables(spark, config) == clean

    assert found["parallelism"] == 2
    assert {name for name, tasks in found["tasks"].items() if tasks} == {"0", "1"}
    with aggregated(spark, config, [(WHOLE_DAYS, WHOLE_DAYS.reach.ends(TUESDAY))]) as answers:
        expected = sorted(str(row) for row in answers[0].rows.collect())
    assert {strategy.name: found[strategy.name] for strategy in Strategy} == dict.fromkeys(
        (strategy.name for strategy in Strategy), expected
    )


@pytest.mark.parametrize(
    ("settings", "cores"),
    [
        ({}, 0),
        ({"spark.master": "local[3]"}, 3),
        ({"spark.master": "local[4, 2]", "spark.executor.instances": "9"}, 4),
        ({"spark.master": "local[*]"}, 0),
        ({"spark.master": "spark://far:7077", "spark.cores.max": "12"}, 12),
        ({"spark.executor.instances": "5"}, 5),
        ({"spark.executor.instances": "5", "spark.executor.cores": "4"}, 20),
        ({"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "6"}, 6),
        ({"spark.dynamicAllocation.maxExecutors": "6"}, 0),
    ],
)
def test_cores_that_a_session_may_get(settings: dict[str, str], cores: int) -> None:
    assert most_cores(settings.get) == cores
