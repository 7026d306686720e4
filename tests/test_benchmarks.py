"""The benchmarks run, on very short streams: no time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.__main__ import bench
from benchmarks.experiments import EXPERIMENTS
from benchmarks.harness import Figure, Target


def test_table_and_file_have_every_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(harness, "ROUNDS", 2)
    file = tmp_path / "results.json"
    bench(list(EXPERIMENTS), 1e-4, file)
    written = json.loads(file.read_text("utf-8"))["experiments"]
    table = capsys.readouterr().out
    assert list(written) == list(EXPERIMENTS)
    for name, figures in written.items():
        assert figures
        for figure in figures:
            assert any(line.startswith(name) and figure["case"] in line for line in table.splitlines())


def test_a_figure_is_the_median_and_says_what_it_missed() -> None:
    assert Figure("", "×", [1, 9, 4], Target("≥", 5)).verdict == "MISSED"
    assert Figure("", "×", [1, 9, 4], Target("≤", 5)).verdict == "met"
    assert Figure("", "×", [1, 9, 4]).verdict == ""
