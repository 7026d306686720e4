"""One Spark session that knows Delta: in this process, on a cluster, or through Spark Connect."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import FIXED, Config
from pipeline.errors import SetupError
from pipeline.jars import delta_jars, log_store_jar, spark_home
from pipeline.java import CACHE, find_java
from pipeline.memory import available_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
CONNECT_PORT = 15002
LOGGING = Path(__file__).with_name("log4j2.properties")
OURS = re.compile(r"^pipeline\.errors\.\w+: (.*)", re.MULTILINE)
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"

# What every session needs, whoever started its server.
SESSION = {
    **FIXED,
    "spark.sql.ansi.enabled": "true",
    # Times with statistics that readers can prune by, and that every Parquet reader understands.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Other Delta readers take a file of a table as it is.
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "false",
    # Made for tables of a few hundred files: with the defaults, tasks without work take most of the time.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}
# What a server has from its start.
STARTUP = {
    "spark.app.name": "trendmill",
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta's own is safe for the threads of one process only.
    "spark.delta.logStore.file.impl": "trendmill.LinkedLogStore",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Tasks read text as codes: a column of a hundred thousand words, such as drivers, is to be written as codes too. By
    # default a dictionary is given up after a page of 20 000 rows that hardly repeat a word, or beyond 1 MB.
    "spark.hadoop.parquet.page.row.count.limit": "200000",
    "spark.hadoop.parquet.dictionary.page.size": str(16 << 20),
}
# Settings in which the user's value joins ours, and what stands between them.
JOINED = {"spark.jars": ",", "spark.sql.extensions": ",", "spark.driver.extraJavaOptions": " "}


def session(config: Config) -> SparkSession:
    """The one session of this process; with Spark Connect, a new session at its server."""
    from pyspark.sql import SparkSession

    # Spark prints the context of an error as JSON beside raising it.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # Timestamps become Python's in the zone of the process.
    os.environ["TZ"] = FIXED["spark.sql.session.timeZone"]
    time.tzset()
    if config.remote:
        return _connect(config)
    os.environ.update(environment(config))
    builder = SparkSession.builder.master(config.master)
    for key, value in settings(config).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:  # Spark's own, or py4j's where the master is the reason
        raise SetupError(
            f"Spark did not start with {config.master}: {first_line(error)}\nhint: trends doctor"
        ) from error


def settings(config: Config) -> dict[str, str]:
    """Every setting of a session that this machine starts."""
    ours = SESSION | STARTUP
    ours["spark.jars"] = ",".join(str(jar) for jar in (*delta_jars(), log_store_jar()))
    # Nothing is kept in it, but Spark makes the folder, and by default in the current one.
    ours["spark.sql.warehouse.dir"] = str(CACHE / "warehouse")
    ours["spark.driver.extraJavaOptions"] = f'"-Dlog4j2.configurationFile={LOGGING}"'
    if config.master.startswith("local"):
        # A quarter of 16 GB, but never what the machine does not have.
        ours["spark.driver.memory"] = f"{max(1, min(4, available_memory() // 2**31))}g"
        ours["spark.sql.shuffle.partitions"] = "8"
    if _on_this_machine(config):
        ours |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return joined(ours, config.spark_conf)


def joined(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """The user's settings over ours; those that are lists hold both.

    >>> joined({"spark.jars": "delta.jar", "spark.ui.enabled": "false"}, {"spark.jars": "hadoop-aws.jar"})
    {'spark.jars': 'delta.jar,hadoop-aws.jar', 'spark.ui.enabled': 'false'}
    """
    both = {key: JOINED[key].join((ours[key], theirs[key])) for key in JOINED if key in ours and key in theirs}
    return {**ours, **theirs, **both}


def environment(config: Config) -> dict[str, str]:
    """The environment variables that Spark's processes need; what the user has set for Python stays."""
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    ours = {"JAVA_HOME": str(find_java().home()), "SPARK_HOME": str(spark_home()), "PYSPARK_PYTHON": python}
    if _on_this_machine(config):
        ours["SPARK_LOCAL_IP"] = LOOPBACK
    return ours


def connect_server(config: Config, port: int = CONNECT_PORT, host: str = LOOPBACK) -> tuple[list[str], dict[str, str]]:
    """The command, and its environment, of a Spark Connect server for `sc://host:port`, in the foreground."""
    options = settings(config) | {
        "spark.master": config.master,
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [str(spark_home() / "bin" / "spark-submit")]
    for key, value in options.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    return command, os.environ | environment(config)


def address(config: Config) -> tuple[str, int]:
    """Host and port of a Connect master.

    >>> address(Config(master="sc://spark.example:15003/;use_ssl=true"))
    ('spark.example', 15003)
    """
    place = config.master.removeprefix("sc://").partition("/")[0]
    host, _, port = place.rpartition(":") if re.search(r":\d+$", place) else (place, "", "")
    return host.strip("[]"), int(port or CONNECT_PORT)


def first_line(error: BaseException) -> str:
    """What an error of Spark says, without the Java stack below it; or what one of ours says that a task raised."""
    if ours := OURS.search(str(error)):
        return ours[1]
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _connect(config: Config) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    host, port = address(config)
    hint = "hint: start the Spark Connect server, or set TRENDS_SPARK=local[*]"
    try:
        # The client itself would try again for minutes.
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        raise SetupError(f"TRENDS_SPARK: nothing answers at {host}:{port} ({error})\n{hint}") from None
    try:
        spark = SparkSession.builder.remote(config.master).create()
        try:
            _prepare(spark, config)
        except BaseException:
            spark.stop()
            raise
    except PySparkException as error:
        raise SetupError(f"TRENDS_SPARK: {host}:{port} is no working server: {first_line(error)}\n{hint}") from error
    return spark


def _prepare(spark: SparkSession, config: Config) -> None:
    from pyspark.errors import PySparkException

    if DELTA_EXTENSION not in (spark.conf.get("spark.sql.extensions", None) or ""):
        raise SetupError(f"TRENDS_SPARK: the server of {config.master} lacks Delta\nhint: see docs/lake.md")
    for key, value in {**SESSION, **config.spark_conf}.items():
        try:
            spark.conf.set(key, value)
        except PySparkException as error:
            if "CANNOT_MODIFY" not in str(error):
                raise
            raise SetupError(f"TRENDS_SPARK_CONF: {key} belongs to the Connect server\nhint: set it there") from None


def _on_this_machine(config: Config) -> bool:
    return bool(re.match(r"local|spark://(127\.0\.0\.1|localhost):", config.master))
