"""The benchmarks run, on very short streams: no time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.__main__ import bench
from benchmarks.experiments import EXPERIMENTS
from benchmarks.harness import Figure, Target
from tests.conftest import SMALL


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Few rounds; Spark as the other tests have it, where an experiment starts one in a process of its own."""
    monkeypatch.setattr(harness, "ROUNDS", 2)
    settings = {key: value for key, value in SMALL.items() if key.startswith("spark.sql.")}
    (tmp_path / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", SMALL["spark.driver.extraJavaOptions"])


def benched(file: Path, *names: str) -> dict[str, list[dict[str, object]]]:
    """The experiments that a run of these writes."""
    bench(names, 1e-4, file)
    found: dict[str, list[dict[str, object]]] = json.loads(file.read_text("utf-8"))["experiments"]
    return found


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_table_and_file_have_every_figure(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = benched(tmp_path / "results.json", name)[name]
    table = capsys.readouterr().out
    assert figures
    for figure in figures:
        assert any(line.startswith(name) and str(figure["case"]) in line for line in table.splitlines())


def test_experiments_stand_in_the_order_in_which_they_ran(tmp_path: Path) -> None:
    names = ["sliding", "any-match"]
    assert [*benched(tmp_path / "results.json", *names)] == names


def test_a_figure_is_the_median_and_says_what_it_missed() -> None:
    assert Figure("", "×", [1, 9, 4], Target("≥", 5)).verdict == "MISSED"
    assert Figure("", "×", [1, 9, 4], Target("≤", 5)).verdict == "met"
    assert Figure("", "×", [1, 9, 4]).verdict == ""
