"""What the doctor finds on a machine where all is well, and on others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline import doctor, jars
from pipeline.config import Config
from pipeline.doctor import Finding, checks
from tests.conftest import free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def finding(found: list[Finding], subject: str) -> Finding:
    return next(each for each in found if each.subject == subject)


@pytest.fixture(autouse=True)
def _plenty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests are not about this machine."""
    monkeypatch.setattr(doctor, "DISK", 0)
    monkeypatch.setattr(doctor, "MEMORY", 0)
    for name in ("SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)


def test_all_is_well(spark: SparkSession, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    for dataset in ("stock", "taxi"):
        (Path(config.landing) / dataset).mkdir(parents=True)
    (Path(config.lake) / "ops").mkdir(parents=True)
    found = checks(config)
    assert {each.subject: each.found for each in found if each.level != "ok"} == {}
    assert finding(found, "Java").found[:2] >= "17"
    assert finding(found, "landing").found.endswith("landing, with stock, taxi")
    assert finding(found, "Spark").found == "4.2.0 with local[2]"
    assert finding(found, "tables").found.endswith("lake; none of a run yet")
    assert not (Path(config.lake) / "ops" / "doctor").exists()
    assert str(finding(found, "Delta jars")).startswith("ok       Delta jars: 4.4.0 in ")


def test_a_fresh_machine_has_no_folders_yet(spark: SparkSession, config: Config) -> None:
    found = checks(config)
    assert (finding(found, "lake").level, finding(found, "lake").mend) == ("warning", "the first run makes it")
    assert "trends generate" in finding(found, "landing").mend
    assert not Path(config.lake).exists()


def test_spark_is_not_tried_without_jars(config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "FOLDER", tmp_path / "jars")
    found = checks(config)
    assert finding(found, "Delta jars").level == "error"
    assert "python -m pipeline.jars" in finding(found, "Delta jars").mend
    assert finding(found, "Spark").found == "not tried, because of the errors above"


def test_a_damaged_jar_is_found(config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in jars.SHA256:
        (tmp_path / name).write_text("half")
    monkeypatch.setattr(doctor, "FOLDER", tmp_path)
    monkeypatch.setattr(jars, "FOLDER", tmp_path)
    assert finding(checks(config), "Delta jars").found.startswith("damaged: delta-spark")


def test_a_connect_server_that_does_not_answer(config: Config) -> None:
    found = checks(Config(config.lake, config.landing, f"sc://127.0.0.1:{free_port()}"))
    assert finding(found, "Spark Connect").level == "error"
    assert "start the Spark Connect server" in finding(found, "Spark Connect").mend
    assert "Java" not in {each.subject for each in found}  # the server's affair


def test_little_room_is_said(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISK", "LEAST_DISK", "MEMORY"):
        monkeypatch.setattr(doctor, name, 10**18)
    found = checks(config)
    assert finding(found, "disk of the lake").level == "error"
    assert "make room" in finding(found, "disk of the lake").mend
    assert finding(found, "memory").level == "warning"


def test_another_version_than_the_pinned_one(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = ["numpy==0.1", "nothing-of-this-name==1", 'ruff==0; extra == "dev"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: pins)
    packages = finding(checks(config), "packages")
    assert packages.level == "error"
    assert "numpy is 2" in packages.found
    assert packages.found.endswith("not 0.1; nothing-of-this-name is missing, not 1")


def test_settings_of_another_spark_are_said(config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "FOLDER", tmp_path / "jars")
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert finding(checks(config), "SPARK_CONF_DIR").mend == "unset SPARK_CONF_DIR"
