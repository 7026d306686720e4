"""Real Spark for the tests: one JVM a pytest worker, one Spark Connect server; a real browser; who runs what."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.config import Config
from tests.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

sys.set_int_max_str_digits(0)  # as the command does: no test may rely on a limit that users do not have

SMALL = {
    "spark.driver.memory": "1g",
    # Rows are few: each job and each task beyond the first is only overhead.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # Short runs: compiling takes more time than it saves.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Compiling so, Java keeps 48 MB of machine code unless told otherwise, which some tests on Spark nearly fill.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
}
CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"  # while it is set, pyspark's functions make columns for Spark Connect


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Share tests out among the workers: what is costly to start is started by one, and short tests come last."""
    for item in items:
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))
    # Groups come first by themselves. So no worker is left with a long test when the others are done.
    items.sort(key=lambda item: not {"spark", "any_spark"} & {*_fixtures(item)})


def _group(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    if "connect_url" in _fixtures(item) or (callspec and callspec.params.get("any_spark") == "connect"):
        return "connect"  # one server
    # A file's tests run the same kernels, each of which takes up to a minute to compile.
    return item.path.stem if item.path.parent.name == "engines" else None


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])  # a doctest has none


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A lake and a landing folder of the test's own."""
    return Config(str(tmp_path / "lake"), str(tmp_path / "landing"), "local[2]", SMALL, site=str(tmp_path / "site"))


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


@pytest.fixture(scope="session")
def published(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small lake: a question of Monday, and all of Tuesday, were published; then a late event came."""
    from tests import small_lake

    def make(home: Path) -> None:
        config = _of(home)
        small_lake.fill(spark, config)
        small_lake.run_unchecked(spark, config, "first", [small_lake.FALLING], first=small_lake.MONDAY)
        small_lake.run_unchecked(spark, config, "first", [small_lake.WHOLE_DAYS, small_lake.RIDES])
        small_lake.add_late(spark, config)

    return small_lake.kept(tmp_path_factory, "published", make)


@pytest.fixture(scope="session")
def clean(spark: SparkSession, published: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The tables of one question after one more run, of what has changed."""
    from tests import small_lake

    def make(home: Path) -> None:
        small_lake.run_unchecked(
            spark, small_lake.copy(published, _of(home)), "clean", [small_lake.FALLING], changed=True
        )

    return small_lake.tables(spark, _of(small_lake.kept(tmp_path_factory, "clean", make)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, closed with its module: while it is open, no other event loop runs in this thread."""
    with chromium() as running:
        yield running


def _of(home: Path) -> Config:
    return Config(str(home / "lake"), str(home / "landing"), "local[2]", SMALL)


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
