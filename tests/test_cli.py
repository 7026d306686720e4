"""The command line as a person uses it: what it prints, where, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet
from pyarrow.csv import read_csv

from pipeline.cli import main

EXAMPLE = "a1 b2 a3 a4 c5 b6 a7 b8"
ANY = "RETURN COUNT(*) PATTERN (SEQ(A+, B))+ WITHIN 10 seconds SLIDE 10 seconds"


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.csv"
    rows = [f"{word[1:]},{word[0].upper()},{word[1:]}" for word in EXAMPLE.split()]
    path.write_text("\n".join(["time,type,x", *rows]) + "\n")
    return path


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_query_in_a_file(tmp_path: Path, events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = tmp_path / "q.query"
    query.write_text(f"-- a comment\n{ANY}\n")
    assert main(["run", str(query), "--events", str(events), "--format", "jsonl"]) == 0
    assert lines(capsys) == [{"window_start": 0, "window_end": 10, "COUNT(*)": 43}]


@pytest.mark.parametrize(
    ("semantics", "trends"), [("skip-till-any-match", 43), ("skip-till-next-match", 8), ("contiguous", 2)]
)
def test_a_query_as_text(events: Path, capsys: pytest.CaptureFixture[str], semantics: str, trends: int) -> None:
    query = ANY.replace("WITHIN", f"SEMANTICS {semantics} WITHIN")
    assert main(["run", query, "--events", str(events), "--format", "jsonl"]) == 0
    assert lines(capsys)[0]["COUNT(*)"] == trends


def test_a_query_on_standard_input(
    events: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(ANY))
    assert main(["run", "-", "--events", str(events)]) == 0
    assert capsys.readouterr().out == (
        "window_start  window_end  COUNT(*)\n------------  ----------  --------\n           0          10        43\n"
    )


def test_csv_out(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "RETURN x, COUNT(*) AS n, SUM(A.x), AVG(B.y) PATTERN OR(A, B) GROUP-BY x WITHIN 2 seconds SLIDE 2 seconds"
    events.write_text("time,type,x,y\n1,A,5,\n2,B,'q',1\n3,A,7,\n")
    assert main(["run", query, "--events", str(events), "--format", "csv"]) == 2
    assert "'q'" in capsys.readouterr().err
    events.write_text("time,type,x,y\n1,A,5,\n2,B,7,1\n3,A,7,\n")
    assert main(["run", query, "--events", str(events), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["window_start"], row["x"], row["n"], row["SUM(A.x)"], row["AVG(B.y)"]) for row in rows] == [
        ("0", "5", "1", "5", ""),
        ("2", "7", "2", "7", "1.0"),
    ]


def test_no_rows(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(C, C) WITHIN 10 seconds"
    assert main(["run", query, "--events", str(events), "--format", "jsonl"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["run", query, "--events", str(events)]) == 0
    assert "(no rows)" in capsys.readouterr().out


def test_matches(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A a, B b) SEMANTICS contiguous WITHIN 10 seconds SLIDE 10 seconds"
    assert main(["run", query, "--events", str(events), "--matches", "--format", "jsonl"]) == 0
    assert lines(capsys) == [
        {
            "trend_start": 1,
            "trend_end": 2,
            "a": [{"time": 1, "type": "A", "x": 1}],
            "b": [{"time": 2, "type": "B", "x": 2}],
        },
        {
            "trend_start": 7,
            "trend_end": 8,
            "a": [{"time": 7, "type": "A", "x": 7}],
            "b": [{"time": 8, "type": "B", "x": 8}],
        },
    ]
    assert main(["run", query, "--events", str(events), "--matches", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["trend_start,trend_end,a,b", "1,2,1,2", "7,8,7,8"]


def test_types_are_columns_and_the_dataset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ticks.jsonl"
    ticks = [("DELL", "Computer"), ("IPIX", "Computer"), ("AMAT", "Computer"), ("QQQ", "Finance")]
    path.write_text(
        "".join(json.dumps({"time": t, "company": c, "sector": s}) + "\n" for t, (c, s) in enumerate(ticks))
    )
    run = ["--events", str(path), "--types", "company,sector", "--format", "jsonl"]
    for pattern, count in [
        ("SEQ(DELL, IPIX, AMAT)", 1),
        ("Computer+", 7),
        ("Stock S+", 15),
        ("SEQ(STOCK, Finance)", 3),
    ]:
        query = f"RETURN COUNT(*) PATTERN {pattern} FROM stock WITHIN 1 minute SLIDE 1 minute"
        assert main(["run", query, *run]) == 0
        assert lines(capsys)[0]["COUNT(*)"] == count


def test_a_file_without_types_serves_the_dataset_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ticks.csv"
    path.write_text("time,price\n1,5\n2,4\n")
    query = "RETURN COUNT(*) PATTERN {} FROM stock WITHIN 1 minute SLIDE 1 minute"
    assert main(["run", query.format("Stock+"), "--events", str(path), "--format", "jsonl"]) == 0
    assert lines(capsys)[0]["COUNT(*)"] == 3
    assert main(["run", query.format("DELL+"), "--events", str(path)]) == 2
    assert "--types" in capsys.readouterr().err


def test_times_are_written_as_they_were_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.csv"
    for times, within, expected in [
        (("1", "2"), "2 seconds", (0, 2)),
        (("1", "2"), "500 milliseconds SLIDE 500 ms", (1, 1.5)),
        (("0.25", "0.5"), "0.5 seconds", (-0.25, 0.25)),
        (("1970-01-01T00:00:01Z", "1970-01-01T01:00:02+01:00"), "1 day SLIDE 1 day", None),
    ]:
        path.write_text(f"time,type\n{times[0]},A\n{times[1]},B\n")
        slide = "" if "SLIDE" in within or "0.5" in within else " SLIDE 2 seconds"
        query = f"RETURN COUNT(*) PATTERN A WITHIN {within}{slide}"
        assert main(["run", query, "--events", str(path), "--format", "jsonl"]) == 0
        row = lines(capsys)[0]
        assert (row["window_start"], row["window_end"]) == (
            expected or ("1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z")
        )


def test_beyond_max_bits_counts_are_rounded_and_marked(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", ANY, "--events", str(events), "--format", "jsonl", "--max-bits", "5"]) == 0
    assert lines(capsys) == [{"window_start": 0, "window_end": 10, "COUNT(*)": "4.3000e1", "exact": False}]
    assert main(["run", ANY, "--events", str(events), "--format", "jsonl", "--max-bits", "6"]) == 0
    assert lines(capsys) == [{"window_start": 0, "window_end": 10, "COUNT(*)": 43}]


@pytest.mark.parametrize(
    ("query", "arguments", "code", "message"),
    [
        ("RETURN COUNT(*) PATERN A WITHIN 1 s", [], 2, "query:1:17: "),
        ("nowhere.query", [], 2, "nowhere.query: No such file"),
        ("RETURN SUM(A.z) PATTERN A WITHIN 1 s", [], 2, "has no column z"),
        ("RETURN COUNT(*) PATTERN AND(A, B) WITHIN 1 s", [], 3, "PATTERN"),
        (ANY, ["--engine", "sasee"], 2, "did you mean sase?"),
        (ANY, ["--engine", "sase", "--max-trends", "10"], 4, "--max-trends"),
        (ANY, ["--without", "stack"], 2, "did you mean stacks?"),
        ("RETURN COUNT(*) PATTERN A+ WITHIN 2 s SLIDE 1 s", ["--types", "kind"], 2, "kind"),
        ("RETURN COUNT(*) PATTERN SEQ(A, B) WHERE A.x = B.type WITHIN 2 s", [], 2, "query:1:41: this compares"),
        ("RETURN COUNT(*) PATTERN A WITHIN 1000 days SLIDE 1 ms", [], 3, "WITHIN: an event would be in more"),
        ("RETURN COUNT(*) PATTERN SEQ(A trend_start, B) WITHIN 2 s", ["--matches"], 2, "query:1:29: a variable"),
        (" ", [], 2, "the query is empty"),
    ],
)
def test_mistakes(
    events: Path, capsys: pytest.CaptureFixture[str], query: str, arguments: list[str], code: int, message: str
) -> None:
    assert main(["run", query, "--events", str(events), *arguments]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


def test_refuses_what_an_optimisation_turned_off_cannot(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "RETURN COUNT(*) PATTERN A+ SEMANTICS skip-till-next-match WHERE A.x < NEXT(A).x WITHIN 9 s"
    assert main(["run", query, "--events", str(events), "--without", "predicates"]) == 3
    assert "SEMANTICS" in capsys.readouterr().err


def test_a_type_that_no_event_has_is_noted(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "RETURN COUNT(*) PATTERN SEQ(A, Bb) WITHIN 9 s", "--events", str(events)]) == 0
    assert "no event of" in capsys.readouterr().err


def test_bad_rows_fail_with_their_line_or_are_counted(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events.write_text(events.read_text() + "soon,A,9\n9,B,9\n")
    assert main(["run", ANY, "--events", str(events)]) == 2
    assert f"{events}:10" in capsys.readouterr().err
    assert main(["run", ANY, "--events", str(events), "--bad-rows", "skip", "--format", "jsonl"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["COUNT(*)"] == 75
    assert "1 bad row set aside" in captured.err


def test_rounded_rows_are_marked_wherever_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.csv"
    times = [*range(0, 20000, 10), *range(20000, 20008)]
    path.write_text("time,type\n" + "".join(f"{time},A\n" for time in times))
    query = "RETURN COUNT(*) PATTERN A+ WITHIN 10 s SLIDE 10 s"
    for form in ("csv", "table"):
        assert main(["run", query, "--events", str(path), "--format", form, "--max-bits", "5"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert out[0].endswith("exact")
        assert "2.5500e2" in out[-1]
        assert out[-1].endswith("False")


def test_numbers_compared_by_order_are_no_text(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events.write_text("time,type,x\n1,A,10\n2,A,9\n3,A,8\n4,B,oops\n")
    query = "RETURN COUNT(*) PATTERN A+ WHERE A.x > NEXT(A).x WITHIN 9 s SLIDE 9 s"
    assert main(["run", query, "--events", str(events)]) == 2
    assert f"{events}:5: x: 'oops' is not a number" in capsys.readouterr().err
    assert main(["run", query, "--events", str(events), "--bad-rows", "skip", "--format", "jsonl"]) == 0
    assert lines(capsys)[0]["COUNT(*)"] == 7


def test_cost_is_said_apart_from_the_rows(events: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", ANY, "--events", str(events), "--engine", "sase", "--cost", "--format", "jsonl"]) == 0
    captured = capsys.readouterr()
    assert "43 trends built" in captured.err
    assert len(captured.out.splitlines()) == 1


def test_a_jobs_plan_has_one_format(capsys: pytest.CaptureFixture[str]) -> None:
    query = "RETURN COUNT(*) PATTERN Stock S+ FROM stock WITHIN 1 hour SLIDE 1 hour"
    assert main(["explain", query, "--interval", "2030-01-07", "--format", "json"]) == 2
    assert "as text alone" in capsys.readouterr().err


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A, !C, B) WHERE A.x < B.x WITHIN 9 s"
    for form, expected in [("text", "A → B"), ("json", '"adjacent"'), ("dot", "digraph"), ("mermaid", "flowchart")]:
        assert main(["explain", query, "--format", form]) == 0
        assert expected in capsys.readouterr().out


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good.query").write_text(ANY)
    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "queries checked: 1, with mistakes: 0, warnings: 0\n"
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "bad.query").write_text("RETURN COUNT(*)\nPATTERN A\nWITHIN 5 parsecs")
    (tmp_path / "between.query").write_text("RETURN COUNT(*) PATTERN SEQ(A, X?, B) WHERE A.x < B.y WITHIN 9 s")
    assert main(["check", str(tmp_path)]) == 2
    out = capsys.readouterr().out
    assert "bad.query:3:10: unknown unit parsecs" in out
    assert "other events (X) may lie between" in out
    (tmp_path / "nested" / "bad.query").write_text("RETURN COUNT(*) PATTERN AND(A, B) WITHIN 5 s")
    assert main(["check", str(tmp_path)]) == 3


def test_engines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines"]) == 0
    assert "sase" in capsys.readouterr().out


def test_the_installed_command(events: Path) -> None:
    command = [sys.executable, "-m", "pipeline.cli", "run", ANY, "--events", str(events), "--format", "jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["COUNT(*)"], done.stderr) == (0, 43, "")


def test_a_reader_that_has_seen_enough_is_no_error(events: Path) -> None:
    query = "RETURN COUNT(*) PATTERN A+ WITHIN 1 hour SLIDE 1 second"
    command = f"{sys.executable} -m pipeline.cli run '{query}' --events {events} --format jsonl | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_a_run_loads_no_frames(events: Path, tmp_path: Path) -> None:
    """Of pandas, which pyarrow would load by itself, and of Spark, each would take longer than a small run."""
    parquet.write_table(read_csv(events), tmp_path / "events.parquet")
    for file in ("events.csv", "events.parquet"):
        script = (
            "import sys; from pipeline.cli import program; code = program(); "
            "sys.exit(code or ' '.join({'pandas', 'pyspark', 'numba'} & {*sys.modules}) or 0)"
        )
        command = [sys.executable, "-c", script, "run", ANY, "--events", str(tmp_path / file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), file
        assert "43" in done.stdout
