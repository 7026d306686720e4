"""The commands over the lake, one after the other, as a user types them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from pipeline import answer_commands, commands, compare
from pipeline.cli import main
from pipeline.publish import engine_runs, gold
from pipeline.quality import waivers
from tests.conftest import CONNECT_MODE

DAY = "2030-01-07"
DOWN_TRENDS = Path(__file__).parents[1] / "queries" / "stock" / "down-trends-by-sector.query"


@pytest.fixture
def lake(connect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, with a Spark that is there already."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRENDS_SPARK", connect_url)
    yield tmp_path
    os.environ.pop(CONNECT_MODE, None)


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints."""
    capsys.readouterr()
    assert main(arguments) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def test_from_files_to_tables(lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRENDS_SITE", "pages")
    assert "no tables" in said(capsys, "tables")
    made = said(capsys, "generate", "activity", "--from", DAY, "--rows", "300", "--bad", "0.02")
    found = re.search(r"(\d+) rows, (\d+) of them bad, (\d+) duplicates", made)
    assert found
    rows, bad, duplicates = map(int, found.groups())
    events = rows - bad - duplicates

    done = said(capsys, "ingest", "all", code=2)  # the other datasets have no files
    assert [f"landing/{name} has no day with files" in done for name in ("stock", "taxi")] == [True, True]
    done = said(capsys, "ingest", "activity", "--from", DAY)
    assert f"{rows:,} rows gave {events:,} events; {bad} rows quarantined, {duplicates} duplicates" in done
    index = lake / "pages" / "quality" / "index.html"
    assert index.is_file()
    assert f"checks: {index};" in done
    assert f"open {lake / 'pages' / 'index.html'}" in said(capsys, "report")
    assert "complete" in said(capsys, "ingest", "activity")
    assert "has no day with files" in said(capsys, "ingest", "activity", "--to", "2030-01-06", code=2)
    query = lake / "queries" / "activity" / "never.query"
    query.parent.mkdir(parents=True)
    query.write_text("RETURN COUNT(*) PATTERN Activity A FROM activity WHERE A.rate < 0 WITHIN 1 hour SLIDE 1 hour")
    assert f"never {DAY}: 0 rows" in said(capsys, "backfill", "never", "--from", DAY)

    with monkeypatch.context() as without_spark:
        without_spark.setenv("TRENDS_SPARK", "sc://127.0.0.1:1")
        tables = {line.split()[0]: line.split() for line in said(capsys, "tables").splitlines()[2:]}
        assert "silver.activity.event_id_unique" in said(capsys, "quality", "--every")
    assert (tables["silver.activity"][1], tables["bronze.activity"][1]) == (str(events), str(rows))
    assert {tables[name][7] for name in ("bronze.activity", "silver.activity", "ops.intervals")} == {DAY}
    shown = said(capsys, "show", "silver.activity", "--rows", "3", "--format", "jsonl")
    patients = [json.loads(line)["patient"] for line in shown.splitlines()]
    assert len(patients) == 3
    assert all(patient.startswith("patient-") for patient in patients)  # masked
    revealed = said(capsys, "show", "silver.activity", "--rows", "1", "--format", "jsonl", "--reveal")
    assert not json.loads(revealed)["patient"].startswith("patient-")
    assert "reason" in said(capsys, "show", "quarantine.activity", "--date", DAY)

    waive = ("quality", "waive", "silver.activity.event_id_uniqe", "--date", DAY, "--reason", "known")
    assert "did you mean silver.activity.event_id_unique?" in said(capsys, *waive, code=2)
    assert said(capsys, "maintain") == ""

    for file in (lake / "lake" / "quarantine" / "activity").rglob("*.parquet"):
        file.unlink()
    told = said(capsys, "show", "quarantine.activity", code=2)
    assert "hint: run it again" in told  # and no traceback


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ingest", "stok"), "did you mean stock?"),
        (("ingest", "stock", "--from", "2030-01-08", "--to", DAY), "is before"),
        (("ingest", "stock"), "has no day with files"),
        (("ingest", "stock", "--from", DAY), f"stock {DAY}: no file in"),
        (("show", "silver.stok"), "did you mean silver.stock?"),
        (("show", "silver.stock"), "there is no such table"),
        (("generate", "stock", "--bad", "0.9"), "not between 0 and 0.4"),
        (("generate", "stock", "--rows", "0"), "at least one row"),
        (("quality", "--dataset", "activty"), "did you mean activity?"),
        (("compare", str(DOWN_TRENDS), "--interval", DAY, "--budget", "0"), "an engine needs some time"),
    ],
)
def test_mistakes(lake: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    assert message in said(capsys, *arguments, code=2)


@pytest.mark.parametrize(
    ("check", "again"), [("silver.stock.x", "ingest stock"), ("gold.falling.x", "backfill falling")]
)
def test_what_is_run_again_after_a_waiver(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: str, again: str
) -> None:
    monkeypatch.setattr(commands, "lake", lambda _: nullcontext((None, None)))
    monkeypatch.setattr(waivers, "waive", lambda *_: ["stock"])
    told = said(capsys, "quality", "waive", check, "--date", DAY, "--reason", "known")
    assert told == f"waived; run the day again: trends {again} --from {DAY}\n"


def test_an_interval_with_nothing_to_compare(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(answer_commands, "lake", lambda _: nullcontext((None, None)))
    monkeypatch.setattr(gold, "prepare", lambda *_: None)
    monkeypatch.setattr(engine_runs, "record", lambda *_: None)
    monkeypatch.setattr(compare, "compare", lambda *given, **_: compare.Comparison(given[2], given[3], (), (), 0, 0))
    told = said(capsys, "compare", str(DOWN_TRENDS), "--interval", DAY)
    assert told.splitlines() == [
        "windows: 0, compared: 0, differences: 0",
        f"warning: no window of {DAY} has events",
    ]
