"""Real Spark for the tests: one JVM a pytest worker, one Spark Connect server where a test asks for it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.config import Config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    # Short runs: compiling takes more time than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"  # while it is set, pyspark's functions make columns for Spark Connect


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A lake and a landing folder of the test's own."""
    return Config(str(tmp_path / "lake"), str(tmp_path / "landing"), "local[2]", SMALL)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session in this process."""
    from pipeline.spark import session

    folder = tmp_path_factory.mktemp("spark")
    running = session(Config(str(folder / "lake"), str(folder / "landing"), "local[2]", SMALL))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Spark Connect server, a process of its own."""
    from pipeline.spark import connect_server

    folder = tmp_path_factory.mktemp("connect")
    port = free_port()
    config = Config(str(folder / "lake"), str(folder / "landing"), "local[2]", SMALL)
    command, environment = connect_server(config, port)
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        _wait(port, server, folder / "log")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def connect(connect_url: str, tmp_path: Path) -> Iterator[SparkSession]:
    """A session through Spark Connect."""
    from pipeline.spark import session

    running = session(Config(str(tmp_path / "lake"), str(tmp_path / "landing"), connect_url))
    try:
        yield running
    finally:
        running.stop()
        os.environ.pop(CONNECT_MODE, None)


@pytest.fixture(params=["in process", "connect"])
def any_spark(request: pytest.FixtureRequest) -> SparkSession:
    """The test runs twice: in this process, and through Spark Connect."""
    found: SparkSession = request.getfixturevalue("spark" if request.param == "in process" else "connect")
    return found


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the Connect server did not start:\n{log.read_text()}")
