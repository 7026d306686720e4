"""Landing files of every kind, whole and broken, become rows of bronze."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.datasets import DATASETS
from pipeline.errors import InputError
from pipeline.sources import landing_bytes
from pipeline.sources.landing_rows import SCHEMA, LandingFile, landing_file, path_of, read_rows
from pipeline.sources.text_lines import LONGEST
from tests.sources.bronze import DAY, table

STOCK, TAXI, ACTIVITY = (DATASETS[name].formats for name in ("stock", "taxi", "activity"))
NAME = "dell_20300107_trade.csv"
ROW = "34200000,491800,300,P,2000,0"
OTHER = "34200001,491900,200,Q,20,0"


def rows_of(landing: Path, content: bytes, name: str = NAME, formats: tuple = STOCK) -> list[dict]:
    """The rows of a file with this content."""
    (landing / name).write_bytes(content)
    return table(landing, name, formats).to_pylist()


def short(rows: list[dict]) -> list[tuple]:
    """What differs between the rows of a file."""
    return [(row["line"], row["copy"], row["raw"], row["problem"]) for row in rows]


@pytest.fixture(params=[7, 1 << 22], ids=["blocks of 7 bytes", "one block"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(landing_bytes, "BLOCK", request.param)
    return request.param


def test_facts_of_the_file(tmp_path: Path) -> None:
    content = f"{ROW}\n{OTHER}\n".encode()
    path = tmp_path / "stock" / "2030-01-07" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    os.utime(path, (1_893_999_600.25, 1_893_999_600.25))
    rows = table(tmp_path, f"stock/2030-01-07/{NAME}", STOCK).to_pylist()
    assert rows[1] == {
        "landing_date": date(2030, 1, 7),
        "file": f"stock/2030-01-07/{NAME}",
        "file_hash": hashlib.sha256(content).hexdigest(),
        "format": "trade ticks",
        "header": None,
        "line": 2,
        "copy": 0,
        "raw": OTHER,
        "problem": None,
        "arrived_at": datetime(2030, 1, 7, 7, 0, 0, 250_000, UTC),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{ROW}\n{OTHER}\n", [(1, ROW), (2, OTHER)]),
        (f"{ROW}\n{OTHER}", [(1, ROW), (2, OTHER)]),
        (f"{ROW}\r\n{OTHER}\r\n", [(1, ROW), (2, OTHER)]),
        (f"\ufeff{ROW}\n{OTHER}\n", [(1, ROW), (2, OTHER)]),
        (f"\n\n{ROW}\n\r\n  \t\n{OTHER}\n\n", [(3, ROW), (6, OTHER)]),
    ],
    ids=["plain", "no newline at the end", "CRLF", "BOM", "blank lines"],
)
def test_lines(tmp_path: Path, block: int, text: str, expected: list[tuple[int, str]]) -> None:
    rows = rows_of(tmp_path, text.encode())
    assert [(row["line"], row["raw"]) for row in rows] == expected
    assert {row["format"] for row in rows} == {"trade ticks"}


def test_copies_are_counted_over_the_whole_file(tmp_path: Path, block: int) -> None:
    rows = rows_of(tmp_path, "\n".join([ROW, ROW, OTHER, ROW, OTHER]).encode())
    assert [row["copy"] for row in rows] == [0, 1, 0, 2, 1]


def test_an_inserted_line_leaves_the_copies_of_others(tmp_path: Path) -> None:
    before = rows_of(tmp_path, f"{ROW}\n{ROW}\n".encode())
    after = rows_of(tmp_path, f"{OTHER}\n{ROW}\n{ROW}\n".encode())
    assert [(row["raw"], row["copy"]) for row in after[1:]] == [(row["raw"], row["copy"]) for row in before]


def test_a_row_that_is_no_text(tmp_path: Path, block: int) -> None:
    content = b"\n".join([ROW.encode(), b"34200000,49\xff,300,\xc3\xa4,2000,0", "34200001,ü,1,P,20,0".encode()])
    assert short(rows_of(tmp_path, content)) == [
        (1, 0, ROW, None),
        (2, 0, "34200000,49\\xff,300,ä,2000,0", "is not text in UTF-8"),
        (3, 0, "34200001,ü,1,P,20,0", None),
    ]


@pytest.mark.parametrize("block_size", [1 << 16, 1 << 22])
@pytest.mark.parametrize("size", [LONGEST + 1, 3 * LONGEST])
def test_a_very_long_line(tmp_path: Path, size: int, block_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landing_bytes, "BLOCK", block_size)
    content = b"\n".join([ROW.encode(), b"x" * size, OTHER.encode(), b"y" * LONGEST, b"z" * size])
    rows = rows_of(tmp_path, content)
    assert [(row["line"], len(row["raw"]), row["problem"]) for row in rows] == [
        (1, len(ROW), None),
        (2, LONGEST, "is longer than 1 MiB, and was cut off there"),
        (3, len(OTHER), None),
        (4, LONGEST, None),
        (5, LONGEST, "is longer than 1 MiB, and was cut off there"),
    ]


def test_gzip_of_several_members_and_padding(tmp_path: Path, block: int) -> None:
    content = gzip.compress(f"{ROW}\n{OTHER[:5]}".encode())
    content += gzip.compress(f"{OTHER[5:]}\n".encode()) + b"\0" * 20
    assert short(rows_of(tmp_path, content)) == [(1, 0, ROW, None), (2, 0, OTHER, None)]


def test_gzip_cut_off(tmp_path: Path, block: int) -> None:
    lines = [f"{time},491800,300,P,2000,0" for time in range(34_200_000, 34_205_000)]
    content = gzip.compress("\n".join(lines).encode())
    rows = rows_of(tmp_path, content[: len(content) * 2 // 3])
    *good, last = short(rows)
    assert good == [(number + 1, 0, line, None) for number, line in enumerate(lines[: len(good)])]
    assert 1000 < len(good) < 5000
    assert last[3] == "the file ends early: its gzip stream is cut off"
    assert last[0] == len(good) + 1
    assert lines[len(good)].startswith(last[2])
    assert rows[-1]["format"] == "trade ticks"


def test_gzip_damaged(tmp_path: Path, block: int) -> None:
    content = bytearray(gzip.compress(f"{ROW}\n{OTHER}\n".encode()))
    content[-6] ^= 255  # in the checksum
    rows = short(rows_of(tmp_path, bytes(content)))
    damaged = "the file is damaged: its compressed data make no sense from here"
    assert rows == [(1, 0, ROW, None), (2, 0, OTHER, None), (3, 0, "", damaged)]


def zip_of(members: dict[str, str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


def readings(count: int, start: float = 8.38) -> list[str]:
    return [" ".join([f"{start + row / 100:.2f}", "1", "NaN", *["0.5"] * 51]) for row in range(count)]


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_zip_of_several_members(tmp_path: Path, block: int, method: int) -> None:
    text = "\n".join(readings(2))
    content = zip_of(
        {"a/": "", "a/subject101.dat": text, "__MACOSX/subject101.dat": "x", "a/subject102.dat": text}, method
    )
    rows = rows_of(tmp_path, content, "data.zip", ACTIVITY)
    assert [(row["file"], row["format"], row["line"], row["copy"]) for row in rows] == [
        ("data.zip!a/subject101.dat", "PAMAP2", 1, 0),
        ("data.zip!a/subject101.dat", "PAMAP2", 2, 0),
        ("data.zip!a/subject102.dat", "PAMAP2", 1, 0),
        ("data.zip!a/subject102.dat", "PAMAP2", 2, 0),
    ]
    assert {path_of(row["file"]) for row in rows} == {"data.zip"}


@pytest.mark.parametrize("streamed", [False, True])
def test_zip_cut_off(tmp_path: Path, streamed: bool) -> None:
    lines = readings(3000)
    members = {"subject101.dat": "\n".join(lines), "subject102.dat": "\n".join(lines)}
    whole = zip_of(members)
    if streamed:  # then the sizes come after the data

        class Pipe(io.BytesIO):
            def seekable(self) -> bool:
                return False

        pipe = Pipe()
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in members.items():
                archive.writestr(name, text)
        whole = pipe.getvalue()
    rows = rows_of(tmp_path, whole[: len(whole) * 3 // 4], "data.zip", ACTIVITY)
    first = [row for row in rows if row["file"] == "data.zip!subject101.dat"]
    *second, last = [row for row in rows if row["file"] == "data.zip!subject102.dat"]
    assert [row["raw"] for row in first] == lines
    assert [row["raw"] for row in second] == lines[: len(second)]
    assert 0 < len(second) < 3000
    assert last["problem"] == "the file ends early: its zip archive is cut off"
    # Only the directory at the end is missing: all rows are there, and the problem is said.
    rows = rows_of(tmp_path, whole[:-30], "data.zip", ACTIVITY)
    assert [row["raw"] for row in rows[:-1]] == [*lines, *lines]
    assert (rows[-1]["file"], rows[-1]["problem"]) == ("data.zip", "the file ends early: its zip archive is cut off")


def test_zip_damaged(tmp_path: Path) -> None:
    lines = readings(3000)
    content = bytearray(zip_of({"subject101.dat": "\n".join(lines)}))
    content[len(content) * 3 // 4] ^= 255
    rows = rows_of(tmp_path, bytes(content), "data.zip", ACTIVITY)
    assert len(rows) > 1500
    assert [row["raw"] for row in rows[:1500]] == lines[:1500]
    assert rows[-1]["problem"] == "the file is damaged: its compressed data make no sense from here"


@pytest.mark.parametrize("content", [b"", b"\n\n", gzip.compress(b""), zip_of({})], ids=["0", "blank", "gzip", "zip"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    rows = rows_of(tmp_path, content)
    assert [(row["line"], row["raw"], row["format"], row["problem"]) for row in rows] == [
        (1, "", "unknown", "the file is empty")
    ]


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    assert rows_of(tmp_path, b"Participant,HR,respr,Time(sec),Label\n", "rates.csv", ACTIVITY) == []


def test_an_unknown_format(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, b"a;b\n1;2\n\xff\n")
    assert [(row["format"], row["header"], row["raw"], row["problem"]) for row in rows] == [
        ("unknown", None, "a;b", "the file is in no known format"),
        ("unknown", None, "1;2", "the file is in no known format"),
        ("unknown", None, "\\xff", "is not text in UTF-8"),
    ]


def test_the_header_is_kept_apart(tmp_path: Path, block: int) -> None:
    rows = rows_of(tmp_path, b"Participant,HR,respr,Time(sec),Label\r\n2,118,12.1,1644227583,0\r\n", "x.csv", ACTIVITY)
    assert [(row["header"], row["line"], row["raw"]) for row in rows] == [
        ("Participant,HR,respr,Time(sec),Label", 2, "2,118,12.1,1644227583,0")
    ]


TRIPS = pa.table(
    {
        "VendorID": pa.array([1, 2], pa.int64()),
        "tpep_pickup_datetime": pa.array([datetime(2030, 1, 7, 8), datetime(2030, 1, 7, 9)], pa.timestamp("us")),
        "tpep_dropoff_datetime": pa.array([datetime(2030, 1, 7, 8, 10), None], pa.timestamp("us")),
        "trip_distance": pa.array([1.5, 2.0]),
        "fare_amount": pa.array([7.5, 10.0]),
        "note": pa.array(['a, "b"', "two\nlines"]),
    }
)


def test_parquet_as_csv(tmp_path: Path) -> None:
    pq.write_table(TRIPS, tmp_path / "trips.parquet")
    rows = table(tmp_path, "trips.parquet", TAXI).to_pylist()
    assert rows[0]["header"] == "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,trip_distance,fare_amount,note"
    assert [(row["format"], row["line"], row["raw"]) for row in rows] == [
        ("TLC trips", 1, '1,2030-01-07 08:00:00.000000,2030-01-07 08:10:00.000000,1.5,7.5,"a, ""b"""'),
        ("TLC trips", 2, '2,2030-01-07 09:00:00.000000,,2,10,"two lines"'),
    ]


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_parquet_cut_off(tmp_path: Path, keep: float) -> None:
    whole = pa.BufferOutputStream()
    pq.write_table(TRIPS, whole)
    content = whole.getvalue().to_pybytes()
    rows = rows_of(tmp_path, content[: int(len(content) * keep)], "trips.parquet", TAXI)
    assert [row["problem"] for row in rows] == ["the file is damaged: Parquet that cannot be read from here"]


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(f"{ROW}\n")
    file = landing_file(str(tmp_path), NAME, DAY)
    (tmp_path / NAME).write_text(f"{ROW}\n{OTHER}\n")
    with pytest.raises(InputError, match="changed while it was read\nhint: ingest it again"):
        list(read_rows(file, STOCK))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.csv: no such file"):
        landing_file(str(tmp_path), "nothing.csv", DAY)


def test_a_file_by_its_uri(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(f"{ROW}\n")
    file = landing_file(f"file://{tmp_path}", NAME, DAY)
    assert file.hash == hashlib.sha256((tmp_path / NAME).read_bytes()).hexdigest()
    assert [batch["raw"].to_pylist() for batch in read_rows(file, STOCK)] == [[ROW]]


def test_in_a_task_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / NAME).write_text(f"{ROW}\n{ROW}\n")
    file = landing_file(str(tmp_path), NAME, DAY)

    def task(batches):  # type: ignore[no-untyped-def]
        for _ in batches:
            yield from read_rows(file, STOCK)

    rows = spark.range(1, numPartitions=1).mapInArrow(task, from_arrow_schema(SCHEMA)).collect()
    assert [(row["raw"], row["line"], row["copy"], row["landing_date"]) for row in rows] == [
        (ROW, 1, 0, DAY),
        (ROW, 2, 1, DAY),
    ]
    assert isinstance(file, LandingFile)
