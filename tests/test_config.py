"""Settings from the environment, and what is said about those that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import Config, parse_conf
from pipeline.errors import SetupError

VARIABLES = ("TRENDS_LAKE", "TRENDS_LANDING", "TRENDS_SPARK", "TRENDS_SPARK_CONF")


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_defaults_are_folders_of_the_current_one(tmp_path: Path) -> None:
    config = Config.from_environment()
    assert (config.lake, config.landing) == (str(tmp_path / "lake"), str(tmp_path / "landing"))
    assert (config.master, config.spark_conf, config.remote) == ("local[*]", {}, False)
    assert config.lake_folder == tmp_path / "lake"


def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRENDS_LAKE", "hdfs://names:9000/lake/")
    monkeypatch.setenv("TRENDS_LANDING", "../in/./landing/")
    monkeypatch.setenv("TRENDS_SPARK", "sc://spark.example:15002")
    monkeypatch.setenv("TRENDS_SPARK_CONF", "spark.a=1; spark.b=x=y;")
    config = Config.from_environment()
    assert config.lake == "hdfs://names:9000/lake"
    assert config.lake_folder is None
    assert config.landing == str(tmp_path.parent / "in" / "landing")
    assert config.remote
    assert config.spark_conf == {"spark.a": "1", "spark.b": "x=y"}


@pytest.mark.parametrize(
    ("text", "path"),
    [("s3a://bucket/lake", "s3a://bucket/lake"), ("file:///data/lake", "/data/lake"), (" /data/lake ", "/data/lake")],
)
def test_places_of_a_lake(text: str, path: str) -> None:
    assert Config(lake=text).lake == path


def test_lines_may_hold_semicolons() -> None:
    assert parse_conf("spark.a=1;2\n\nspark.b = 3\n") == {"spark.a": "1;2", "spark.b": "3"}


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*,3]", "spark://h:7077", "yarn", "k8s://https://h:6443"]
)
def test_masters(master: str) -> None:
    assert Config(master=master).master == master


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TRENDS_LAKE", " ", "TRENDS_LAKE: the value is empty"),
        ("TRENDS_LAKE", "s3://bucket/lake", "TRENDS_LAKE: s3://bucket/lake cannot be used"),
        ("TRENDS_LAKE", "hdfs://", "TRENDS_LAKE: hdfs:// cannot be used"),
        ("TRENDS_LAKE", "/", "TRENDS_LAKE: / is the root of the file system"),
        ("TRENDS_LAKE", "a-file/lake", "TRENDS_LAKE: .*a-file is a file"),
        ("TRENDS_LAKE", "a-file", "TRENDS_LAKE: .*a-file is a file"),
        ("TRENDS_LANDING", "lake", "TRENDS_LANDING: .* is inside the lake"),
        ("TRENDS_LANDING", "lake/raw", "TRENDS_LANDING: .* is inside the lake"),
        ("TRENDS_SPARK", "local[0]", r"TRENDS_SPARK: 'local\[0\]' is no Spark master"),
        ("TRENDS_SPARK", "spark:/h", "TRENDS_SPARK: 'spark:/h' is no Spark master"),
        ("TRENDS_SPARK", "", "TRENDS_SPARK: '' is no Spark master"),
        ("TRENDS_SPARK_CONF", "spark.a", "TRENDS_SPARK_CONF: 'spark.a' is not key=value"),
        ("TRENDS_SPARK_CONF", "a=1", "TRENDS_SPARK_CONF: 'a' is no Spark setting"),
        ("TRENDS_SPARK_CONF", "spark.master=local", "TRENDS_SPARK_CONF: spark.master is set by TRENDS_SPARK"),
        ("TRENDS_SPARK_CONF", "spark.sql.session.timeZone=Asia/Tokyo", "TRENDS_SPARK_CONF: .* is always UTC"),
    ],
)
def test_nonsense_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str) -> None:
    Path("a-file").write_text("")
    monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match=f"(?s)^{message}.*\nhint: .+"):
        Config.from_environment()
