"""Event files in all formats, good and bad, become events or a message."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import InputError
from pipeline.events import Column, Events, Kind, Numbers, Texts, TimeStyle
from pipeline.sources import csv_blocks, jsonl_events, parquet_events
from pipeline.sources.events_file import read_events

HEART_RATE = Path(__file__).parents[3] / "shared/data/activity/stress_predict_heart_rate.csv.gz"
ROWS = [
    {"time": 1, "type": "A", "price": 10.5, "name": "x"},
    {"time": 3, "type": "B", "price": None, "name": None},
    {"time": 2, "type": "A", "price": 7.0, "name": 'ü, "quoted"'},
]


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> Path:
    """The rows in the format of the file's name."""
    names = list(rows[0])
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\r\n")  # else Python 3.11 leaves a lone return unquoted
            writer.writerow(names)
            writer.writerows([["" if row[name] is None else row[name] for name in names] for row in rows])
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return path


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def any_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(tmp_path / f"events.{request.param}", ROWS)


@pytest.fixture
def make(tmp_path: Path) -> Any:
    """A file of this name and content."""

    def make(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def values(column: Column) -> list[Any]:
    """A column as Python values."""
    if isinstance(column, Texts):
        assert list(column.words) == sorted(set(column.words))
        return [None if code < 0 else column.words[code] for code in column.codes]
    return [None if null else value for value, null in zip(column.values.tolist(), column.null, strict=True)]


def csv_column(make: Any, cells: list[str], kind: Kind) -> Column:
    text = "time,x\n" + "".join(f"{index},{cell}\n" for index, cell in enumerate(cells))
    return read_events(make("x.csv", text), {"x": kind}).attributes["x"]


def json_column(make: Any, cells: list[str], kind: Kind) -> Column:
    text = "".join(f'{{"time": {index}, "x": {cell}}}\n' for index, cell in enumerate(cells))
    return read_events(make("x.jsonl", text), {"x": kind}).attributes["x"]


def parquet_column(tmp_path: Path, array: pa.Array, kind: Kind) -> Column:
    pq.write_table(pa.table({"time": list(range(len(array))), "x": array}), tmp_path / "x.parquet")
    return read_events(tmp_path / "x.parquet", {"x": kind}).attributes["x"]


def times(make: Any, cells: list[str]) -> Events:
    return read_events(make("t.csv", "time\n" + "\n".join(cells) + "\n"), {})


def json_literal(cell: str) -> str:
    """A CSV cell as JSON: a number if JSON can write it so, else text."""
    try:
        json.loads(cell)
    except ValueError:
        return json.dumps(cell)
    return cell


def message(path: Path, attributes: dict[str, Kind] | None = None, types: list[str] | None = None) -> str:
    with pytest.raises(InputError) as error:
        read_events(path, attributes or {}, types)
    return str(error.value).replace(f"{path.parent}/", "")


class TestEveryFormat:
    def test_the_columns_that_are_asked_for(self, any_file: Path) -> None:
        events = read_events(any_file, {"price": Kind.NUMBER, "name": Kind.ANY})
        assert events.time.tolist() == [1, 3, 2]
        assert (events.clock.ticks_per_second, events.clock.style) == (1, TimeStyle.INTEGER)
        assert [values(column) for column in events.types] == [["A", "B", "A"]]
        assert {name: values(column) for name, column in events.attributes.items()} == {
            "price": [10.5, None, 7.0],
            "name": ["x", None, 'ü, "quoted"'],
        }
        assert events.known == ("time", "type", "price", "name")
        assert events.open_schema == (any_file.suffix == ".jsonl")
        assert events.skipped == 0

    def test_only_those_are_read(self, any_file: Path) -> None:
        assert read_events(any_file, {}).attributes == {}

    def test_all_columns(self, any_file: Path) -> None:
        events = read_events(any_file, {"price": Kind.NUMBER}, all_columns=True)
        assert sorted(events.attributes) == ["name", "price", "type"]
        assert values(events.attributes["type"]) == ["A", "B", "A"]

    def test_an_attribute_that_the_file_lacks_is_left_out(self, any_file: Path) -> None:
        assert read_events(any_file, {"prise": Kind.NUMBER}).attributes == {}

    def test_time_and_type_as_attributes(self, any_file: Path) -> None:
        events = read_events(any_file, {"time": Kind.NUMBER, "type": Kind.TEXT})
        assert values(events.attributes["time"]) == [1, 3, 2]
        assert values(events.attributes["type"]) == ["A", "B", "A"]
        assert len(events.types) == 1

    def test_time_is_not_text(self, any_file: Path) -> None:
        assert "time: a number of seconds, where the query needs text" in message(any_file, {"time": Kind.TEXT})

    def test_named_type_columns(self, any_file: Path) -> None:
        events = read_events(any_file, {}, ["name", "type"])
        assert [values(column) for column in events.types] == [["x", None, 'ü, "quoted"'], ["A", "B", "A"]]

    def test_a_type_column_that_is_missing(self, any_file: Path) -> None:
        said = message(any_file, types=["typ"])
        assert said.startswith(f"{any_file.name}: no column 'typ'; the columns are time, type, price, name\n")
        assert "did you mean 'type'?" in said

    def test_no_type_column(self, any_file: Path) -> None:
        write(any_file, [{"time": 1, "x": 2}])
        assert read_events(any_file, {}).types == ()

    def test_no_time_column(self, any_file: Path) -> None:
        write(any_file, [{"Time": 1, "x": 2}])
        said = message(any_file)
        assert said.startswith(
            f"{any_file.name}: no column 'time'; the columns are Time, x\nhint: did you mean 'Time'?"
        )

    def test_a_missing_time_is_a_bad_row(self, any_file: Path) -> None:
        write(any_file, [*ROWS, {"time": None, "type": "C", "price": 1.0, "name": "y"}])
        place = {".csv": ":5", ".jsonl": ":4", ".parquet": ": row 4"}[any_file.suffix]
        assert message(any_file).startswith(f"{any_file.name}{place}: time: the time is missing\nhint: --bad-rows skip")
        events = read_events(any_file, {}, bad_rows="skip")
        assert (len(events), events.skipped) == (3, 1)
        assert events.skipped_examples == (f"{any_file}{place}: time: the time is missing",)
        assert values(events.types[0]) == ["A", "B", "A"]

    def test_an_infinite_number_is_a_bad_value(self, any_file: Path) -> None:
        write(any_file, [*ROWS, {"time": 5, "type": "C", "price": float("-inf"), "name": "y"}])
        assert "is not a finite number" in message(any_file, {"price": Kind.NUMBER})
        assert len(read_events(any_file, {})) == 4  # a column that nobody needs may hold anything

    def test_nan_is_null(self, any_file: Path) -> None:
        write(any_file, [*ROWS, {"time": 5, "type": "C", "price": float("nan"), "name": "y"}])
        for kind in (Kind.NUMBER, Kind.ANY):
            assert values(read_events(any_file, {"price": kind}).attributes["price"]) == [10.5, None, 7.0, None]

    def test_progress(self, any_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_blocks, "BLOCK", 20)
        monkeypatch.setattr(jsonl_events, "BATCH", 1)
        monkeypatch.setattr(parquet_events, "BATCH", 1)
        seen: list[int] = []
        read_events(any_file, {}, progress=seen.append)
        assert seen[-1] == 3
        assert seen == sorted(seen)
        assert len(set(seen) - {0}) > 1


class TestNoUsableFile:
    def test_no_such_file(self, any_file: Path) -> None:
        said = message(any_file.with_name("event" + any_file.suffix))
        assert said.endswith(f": there is no such file\nhint: did you mean {any_file.name}?")

    def test_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "x.csv").mkdir()
        assert "this is a folder" in message(tmp_path / "x.csv")

    @pytest.mark.parametrize("name", ["x", "x.txt", "x.parquet.gz", "x.gz"])
    def test_an_unknown_format(self, make: Any, name: str) -> None:
        assert "the name does not tell the format\nhint: name it .csv, .jsonl," in message(make(name, "time\n1\n"))

    @pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
    def test_an_empty_file(self, make: Any, name: str) -> None:
        assert message(make(name, "")) == f"{name}: the file is empty"

    def test_nothing_but_blank_lines(self, make: Any) -> None:
        assert "x.csv: the file is empty" in message(make("x.csv", "\n \n\n"))
        assert "x.jsonl: the file has no events" in message(make("x.jsonl", "\n \n\n"))

    def test_not_parquet(self, make: Any) -> None:
        assert "x.parquet: not a readable Parquet file" in message(make("x.parquet", "time,type\n1,A\n"))

    @pytest.mark.parametrize("name", ["x.csv.gz", "x.jsonl.gz"])
    def test_not_gzip(self, make: Any, name: str) -> None:
        assert f"{name}: not a whole gzip file" in message(make(name, "time\n1\n"))
        assert f"{name}: not a whole gzip file" in message(make(name, gzip.compress(b'time\n{"time": 1}' * 99)[:-9]))

    def test_a_column_named_twice(self, make: Any) -> None:
        assert "the header names 'x' more than once" in message(make("x.csv", "time,x,y,x\n1,2,3,4\n"))

    def test_another_separator(self, make: Any) -> None:
        assert "separated by semicolons; write commas" in message(make("x.csv", "time;type\n1;A\n"))

    def test_another_encoding(self, make: Any) -> None:
        assert "x.csv: not a UTF-8 text file" in message(make("x.csv", "time,type\n1,A\n".encode("utf-16")))

    def test_an_open_quote_in_the_header(self, make: Any) -> None:
        assert "x.csv:1: a quote in the header is not closed" in message(make("x.csv", 'time,"type\n1,A\n'))

    def test_a_real_file_without_a_column_time(self) -> None:
        if not HEART_RATE.exists():
            pytest.skip("the shared sample data is not beside the repository")
        said = message(HEART_RATE)
        assert "no column 'time'; the columns are Participant, HR, respr, Time(sec), Label" in said


class TestTimes:
    @pytest.mark.parametrize(
        ("cells", "ticks", "per_second", "style"),
        [
            (["3", "-1", "0"], [3, -1, 0], 1, TimeStyle.INTEGER),
            (["1.5", "2", "-0.25"], [150, 200, -25], 100, TimeStyle.DECIMAL),
            (["1.50", "2.0"], [15, 20], 10, TimeStyle.DECIMAL),
            (["1.0", "2.000"], [1, 2], 1, TimeStyle.DECIMAL),
            (["1e3", "2.5E-1"], [100000, 25], 100, TimeStyle.DECIMAL),
            ([" 7", "+8"], [7, 8], 1, TimeStyle.INTEGER),
            (["1700000000.123456789", "0.1"], [1700000000123456789, 100000000], 10**9, TimeStyle.DECIMAL),
            (["0.000000000001", "2"], [1, 2 * 10**12], 10**12, TimeStyle.DECIMAL),
            (["9223372036854775807"], [2**63 - 1], 1, TimeStyle.INTEGER),
            (["1970-01-01T00:01:00Z", "1970-01-01 00:00:01Z"], [60, 1], 1, TimeStyle.ISO),
            (["1970-01-02", "1970-01-01"], [86400, 0], 1, TimeStyle.ISO),
            (["1970-01-01T01:00:00+01:00", "1969-12-31T19:00:00-05:00"], [0, 0], 1, TimeStyle.ISO),
            (["1970-01-01T00:00:00.5", "1970-01-01T00:00:01"], [5, 10], 10, TimeStyle.ISO),
            (["1970-01-01T00:00:00.000000001Z"], [1], 10**9, TimeStyle.ISO),
            (["1970-01-01T00:00:02", "1970-01-01T00:00:03Z", " 1970-01-01T00:00:00.25"],
             [200, 300, 25], 100, TimeStyle.ISO),
            (["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"], [253402300799, -62135596800], 1, TimeStyle.ISO),
        ],
    )  # fmt: skip
    def test_styles(self, make: Any, cells: list[str], ticks: list[int], per_second: int, style: TimeStyle) -> None:
        events = times(make, cells)
        assert events.time.dtype == np.int64
        assert events.time.tolist() == ticks
        assert (events.clock.ticks_per_second, events.clock.style) == (per_second, style)
        as_json = "".join(f'{{"time": {json_literal(cell)}}}\n' for cell in cells)
        again = read_events(make("t.jsonl", as_json), {})
        assert (again.time.tolist(), again.clock) == (ticks, events.clock)

    def test_a_batch_of_each_precision(self, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_blocks, "BLOCK", 8)
        events = times(make, ["1", "2.5", "3.25", "4"])
        assert events.time.tolist() == [100, 250, 325, 400]

    @pytest.mark.parametrize(
        "cell",
        ["yesterday", "2024-13-01", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00", "12:30", "0x10", "1_000", "nan"],
    )
    def test_what_is_no_time(self, make: Any, cell: str) -> None:
        said = message(make("t.csv", f"time\n1970-01-01\n{cell}\n"))
        assert said.startswith(f"t.csv:3: time: '{cell}' is not a time")

    @pytest.mark.parametrize("cell", ["1e30", "9223372036854775808", "1e-30", "1e999999999", "1e99999999999999999999"])
    def test_what_does_not_fit(self, make: Any, cell: str) -> None:
        assert message(make("t.csv", f"time\n1\n{cell}\n")).startswith(f"t.csv:3: time: '{cell}' ")

    @pytest.mark.parametrize("block", [8, 1000])
    def test_what_does_not_fit_together(self, make: Any, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
        monkeypatch.setattr(csv_blocks, "BLOCK", block)
        said = message(make("t.csv", "time\n9000000000000000000\n0.01\n"))
        assert "times to 2 decimals and times as large as 9000000000000000000" in said
        assert "do not fit together in 64 bits" in said

    @pytest.mark.parametrize("block", [8, 1000])
    def test_dates_and_numbers_do_not_mix(self, make: Any, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
        monkeypatch.setattr(csv_blocks, "BLOCK", block)
        dates_first = make("t.csv", "time\n1970-01-01\n17\n1970-01-02\n")
        assert message(dates_first).startswith("t.csv:3: time: '17' is a number, but the times before it are dates")
        assert read_events(dates_first, {}, bad_rows="skip").time.tolist() == [0, 86400]
        numbers_first = make("t.csv", "time\n17.5\n1970-01-01\n")
        assert "'1970-01-01' is a date, but the times before it are numbers" in message(numbers_first)

    def test_as_an_attribute(self, make: Any) -> None:
        path = make("t.csv", "time\n1.5\n1700000000.123456789\n")
        assert values(read_events(path, {"time": Kind.NUMBER}).attributes["time"]) == [1.5, 1700000000.123456789]

    @pytest.mark.parametrize(
        ("array", "ticks", "per_second", "style"),
        [
            (pa.array([1, 2], pa.uint8()), [1, 2], 1, TimeStyle.INTEGER),
            (pa.array([0.1, 1700000000.25]), [10, 170000000025], 100, TimeStyle.DECIMAL),
            (pa.array([Decimal("1.50"), Decimal("2.25")]), [150, 225], 100, TimeStyle.DECIMAL),
            (pa.array([datetime(1970, 1, 1, 0, 1)]), [60], 1, TimeStyle.ISO),
            (pa.array([1500], pa.timestamp("ms", "America/New_York")), [15], 10, TimeStyle.ISO),
            (pa.array([date(1970, 1, 2)]), [86400], 1, TimeStyle.ISO),
            (pa.array(["1970-01-01T00:00:01.5Z"]), [15], 10, TimeStyle.ISO),
            (pa.array(["7", "7"]).dictionary_encode(), [7, 7], 1, TimeStyle.INTEGER),
        ],
    )
    def test_parquet(
        self, tmp_path: Path, array: pa.Array, ticks: list[int], per_second: int, style: TimeStyle
    ) -> None:
        pq.write_table(pa.table({"time": array}), tmp_path / "t.parquet")
        events = read_events(tmp_path / "t.parquet", {})
        assert events.time.tolist() == ticks
        assert (events.clock.ticks_per_second, events.clock.style) == (per_second, style)

    def test_parquet_of_no_such_type(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"time": [True]}), tmp_path / "t.parquet")
        assert "t.parquet: time: a column of type bool, where the query needs a time" in message(tmp_path / "t.parquet")

    def test_json_decimals_keep_every_digit(self, make: Any) -> None:
        events = read_events(make("t.jsonl", '{"time": 1700000000.123456789}\n'), {})
        assert events.time.tolist() == [1700000000123456789]

    @pytest.mark.parametrize("value", ["true", "[1]", "{}", "Infinity", '"\\ud800"', '"soon"'])
    def test_json_of_no_such_type(self, make: Any, value: str) -> None:
        said = message(make("t.jsonl", f'{{"time": 1}}\n{{"time": {value}}}\n'))
        assert said.startswith("t.jsonl:2: time: ")
        assert "is not a time" in said


class TestCsvColumns:
    @pytest.mark.parametrize(
        ("cells", "expected", "dtype"),
        [
            (["1", "-2", "007"], [1, -2, 7], np.int64),
            (["1", "", "2.5"], [1.0, None, 2.5], np.float64),
            (["1", "NaN", "2"], [1, None, 2], np.int64),
            ([" 1", "+2", "3e2"], [1.0, 2.0, 300.0], np.float64),
            (["9223372036854775808", "-1"], [2**63, -1], object),
            (["9007199254740993", "0.5"], [9007199254740992.0, 0.5], np.float64),
            (["123456789012345678901234567890", "+0.5"], [123456789012345678901234567890.0, 0.5], np.float64),
        ],
    )
    def test_numbers(self, make: Any, cells: list[str], expected: list[Any], dtype: type) -> None:
        column = csv_column(make, cells, Kind.NUMBER)
        assert values(column) == expected
        assert isinstance(column, Numbers)
        assert column.values.dtype == dtype

    def test_batches_of_different_numbers(self, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_blocks, "BLOCK", 8)
        assert values(csv_column(make, ["1", "9223372036854775808"], Kind.NUMBER)) == [1, 2**63]
        column = csv_column(make, ["1", "9223372036854775808", "0.5"], Kind.NUMBER)
        assert values(column) == [1.0, 2.0**63, 0.5]

    def test_an_integer_too_large_for_a_float(self, make: Any) -> None:
        said = message(make("x.csv", f"time,x\n1,{'9' * 400}\n2,0.5x\n2,0.5\n"), {"x": Kind.NUMBER})
        assert "x: an integer beyond 1.8e308 cannot stand beside decimal numbers" in said

    @pytest.mark.parametrize("cell", ["abc", "0x1A", "1_000", "1e999", "--1", "1.5.2", "١", "9" * 5000])
    def test_what_is_no_number(self, make: Any, cell: str) -> None:
        said = message(make("x.csv", f"time,price\n1,2\n\n2,{cell}\n"), {"price": Kind.NUMBER})
        assert said.startswith(f"x.csv:4: price: '{cell[:39]}")
        assert said.endswith("\nhint: --bad-rows skip sets such rows aside and goes on")

    @pytest.mark.parametrize("block", [8, 1000])
    @pytest.mark.parametrize(
        ("cells", "expected", "dtype"),
        [
            (["1", "", "-20"], [1, None, -20], np.int64),
            (["1", "2.5", "1e3"], [1.0, 2.5, 1000.0], np.float64),
            (["1", "nan", "2"], [1, None, 2], np.int64),
            (["1", "9223372036854775808"], [1, 2**63], object),
            (["1", "007"], ["1", "007"], None),
            (["1.5", "007.5"], ["1.5", "007.5"], None),
            (["1", "+2"], ["1", "+2"], None),
            (["1", "1e999"], ["1", "1e999"], None),
            (["1", "nan", "x"], ["1", "nan", "x"], None),
            (["1", " 2"], ["1", " 2"], None),
            (["", ""], [None, None], np.int64),
        ],
    )
    def test_guesses(
        self, make: Any, monkeypatch: pytest.MonkeyPatch, cells: list[str], expected: list[Any], dtype: Any, block: int
    ) -> None:
        monkeypatch.setattr(csv_blocks, "BLOCK", block)
        column = csv_column(make, cells, Kind.ANY)
        assert values(column) == expected
        assert (column.values.dtype if isinstance(column, Numbers) else None) == dtype

    def test_text_is_text_whatever_it_looks_like(self, make: Any) -> None:
        assert values(csv_column(make, ["1", "007", "", " a "], Kind.TEXT)) == ["1", "007", None, " a "]


class TestCsvLines:
    def test_a_header_alone(self, make: Any) -> None:
        events = read_events(make("x.csv", "time,type,x"), {"x": Kind.ANY})
        assert len(events) == 0
        assert len(events.types) == 1
        assert values(events.attributes["x"]) == []

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_byte_order_mark_blank_lines_and_line_ends(self, make: Any, end: str) -> None:
        text = end.join(["\ufefftime,type", "", "1,A", "   ", "2,B", ""])
        assert read_events(make("x.csv", text), {}).time.tolist() == [1, 2]
        assert message(make("x.csv", text + f"x,C{end}")).startswith("x.csv:6: time: 'x' is not a time")

    def test_gzip(self, make: Any) -> None:
        assert read_events(make("x.csv.gz", gzip.compress(b"time\n1\n")), {}).time.tolist() == [1]

    def test_a_column_without_a_name(self, make: Any) -> None:
        events = read_events(make("x.csv", ",time,\n0,5,1\n"), {}, all_columns=True)
        assert (events.time.tolist(), events.known) == ([5], ("time",))

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            (b"2,B", "the line has 2 fields, the header has 3"),
            (b"2,B,b,b", "the line has 4 fields, the header has 3"),
            (b'2,"B,b', "a quote is opened and not properly closed"),
            (b"2,B,\xff", "the line is not UTF-8 text"),
            (b"2x,B,b", "time: '2x' is not a time: write seconds or ISO 8601, such as 2024-05-31T09:30:00Z"),
        ],
    )
    @pytest.mark.parametrize("block", [13, 30, 1000])
    def test_broken_lines(self, make: Any, monkeypatch: pytest.MonkeyPatch, line: bytes, said: str, block: int) -> None:
        monkeypatch.setattr(csv_blocks, "BLOCK", block)
        path = make("x.csv", b'time,type,x\n1,A,"a\na"\n\n' + line + b'\n3,"C",c\n4,D,5" pipe\n')
        assert (
            message(path, {"x": Kind.ANY}) == f"x.csv:5: {said}\nhint: --bad-rows skip sets such rows aside and goes on"
        )
        events = read_events(path, {"x": Kind.ANY}, bad_rows="skip")
        assert events.time.tolist() == [1, 3, 4]
        assert values(events.types[0]) == ["A", "C", "D"]
        assert values(events.attributes["x"]) == ["a\na", "c", '5" pipe']
        assert events.skipped == 1
        assert events.skipped_examples == (f"{path}:5: {said}",)

    def test_the_first_bad_row_is_the_one_named(self, make: Any) -> None:
        path = make("x.csv", "time,x,y\n1,1,1\n2,1,b\n3,a,1\n4\nx,1,1\n")
        kinds = {"x": Kind.NUMBER, "y": Kind.NUMBER}
        assert message(path, kinds).startswith("x.csv:3: y: 'b' is not a number")
        events = read_events(path, kinds, bad_rows="skip")
        lines = [example.removeprefix(f"{path}:").split(":")[0] for example in events.skipped_examples]
        assert lines == ["3", "4", "5", "6"]
        assert events.time.tolist() == [1]

    def test_the_first_messages_are_kept(self, make: Any) -> None:
        events = read_events(make("x.csv", "time\n" + "x\n" * 100 + "1\n"), {}, bad_rows="skip")
        assert (len(events), events.skipped, len(events.skipped_examples)) == (1, 100, 5)

    def test_an_open_quote_does_not_swallow_the_file(self, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(csv_blocks, "BLOCK", 50)
        monkeypatch.setattr(csv_blocks, "LONGEST_RECORD", 100)
        text = "time,x\n" + '1,"a\n' + "2,b\n" * 1000 + "3,c\n"
        events = read_events(make("x.csv", text), {}, bad_rows="skip")
        assert (len(events), events.skipped) == (1001, 1)


class TestJsonl:
    @pytest.mark.parametrize(
        ("cells", "kind", "expected"),
        [
            (["1", "null", "2.5"], Kind.NUMBER, [1.0, None, 2.5]),
            (["1", "18446744073709551616"], Kind.NUMBER, [1, 2**64]),
            (['"a"', "null", "true"], Kind.TEXT, ["a", None, "true"]),
            (["null", "1", "2.5"], Kind.ANY, [None, 1.0, 2.5]),
            (["null", '"a"', "false"], Kind.ANY, [None, "a", "false"]),
            (["null", "NaN", "null"], Kind.ANY, [None, None, None]),
            (['"1"', '""'], Kind.ANY, ["1", ""]),
        ],
    )
    def test_values(self, make: Any, monkeypatch: pytest.MonkeyPatch, cells: Any, kind: Kind, expected: Any) -> None:
        assert values(json_column(make, cells, kind)) == expected
        monkeypatch.setattr(jsonl_events, "BATCH", 1)
        assert values(json_column(make, cells, kind)) == expected

    @pytest.mark.parametrize(
        ("first", "second", "kind", "said"),
        [
            ("1", '"abc"', Kind.NUMBER, "'abc' is not a number"),
            ("1", "true", Kind.NUMBER, "true is not a number"),
            ('"a"', "7", Kind.TEXT, "7 is not text"),
            ('"a"', "7.50", Kind.TEXT, "7.50 is not text"),
            ('"a"', "[]", Kind.TEXT, "a list is not text"),
            ('"a"', '"\\ud800"', Kind.TEXT, "the text is not Unicode"),
            ('"a"', "7", Kind.ANY, "7 is not text, but the column's first value is"),
            ("7", '"a"', Kind.ANY, "'a' is not a number, but the column's first value is"),
            ("null", "{}", Kind.ANY, "an object is not a number or text"),
        ],
    )
    def test_wrong_values(self, make: Any, first: str, second: str, kind: Kind, said: str) -> None:
        path = make("x.jsonl", f'{{"time": 1, "x": {first}}}\n\n{{"time": 2, "x": {second}}}\n')
        assert message(path, {"x": kind}).startswith(f"x.jsonl:3: x: {said}\n")
        assert read_events(path, {"x": kind}, bad_rows="skip").time.tolist() == [1]

    def test_a_bad_row_decides_nothing(self, make: Any) -> None:
        path = make("x.jsonl", '{"time": null, "x": "a"}\n{"time": 1, "x": 5}\n')
        assert values(read_events(path, {"x": Kind.ANY}, bad_rows="skip").attributes["x"]) == [5]

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            (b'{"time": 2', "the line is not valid JSON: Expecting ',' delimiter at column 11"),
            (b'{"time": 2} x', "the line is not valid JSON: Extra data at column 12"),
            (b"[1, 2]", "the line is a list, not an object"),
            (b"null", "the line is null, not an object"),
            (b"2.5", "the line is a number, not an object"),
            (b"[", "the line is not a JSON object: write one object a line, and no list around them"),
            (b'{"time": "\xff"}', "the line is not UTF-8 text"),
            (b'{"time": ' + b"9" * 5000 + b"}", "the line has a number too long, or values nested too deep"),
            (b'{"a": ' * 100000, "the line has a number too long, or values nested too deep"),
        ],
    )
    def test_broken_lines(self, make: Any, line: bytes, said: str) -> None:
        path = make("x.jsonl", b'\xef\xbb\xbf{"time": 1}\n\n' + line + b'\n{"time": 3}')
        assert message(path).startswith(f"x.jsonl:3: {said}\nhint: --bad-rows skip")
        assert read_events(path, {}, bad_rows="skip").time.tolist() == [1, 3]

    def test_keys_may_come_and_go(self, make: Any) -> None:
        path = make("x.ndjson", '{"time": 1}\n{"time": 2, "x": 7}\n{"type": "B", "time": 3}\n')
        events = read_events(path, {"x": Kind.NUMBER, "y": Kind.NUMBER})
        assert values(events.types[0]) == [None, None, "B"]
        assert {name: values(column) for name, column in events.attributes.items()} == {"x": [None, 7, None]}
        assert (events.known, events.open_schema) == (("time", "x", "type"), True)

    def test_all_columns_take_any_value(self, make: Any) -> None:
        path = make("x.json", '{"time": 1, "x": [1.5, {"a": null}], "n": 1}\n{"time": 2, "x": 7, "y": "1", "n": 2.5}\n')
        events = read_events(path, {}, all_columns=True)
        assert {name: values(column) for name, column in events.attributes.items()} == {
            "x": ['[1.5, {"a": null}]', "7"],
            "n": [1.0, 2.5],
            "y": [None, "1"],
        }

    def test_gzip(self, make: Any) -> None:
        path = make("x.jsonl.gz", gzip.compress(b'{"time": 1, "x": 2}\n'))
        assert values(read_events(path, {}, all_columns=True).attributes["x"]) == [2]


class TestParquet:
    @pytest.mark.parametrize(
        ("array", "kind", "expected"),
        [
            (pa.array([1, None], pa.int8()), Kind.NUMBER, [1, None]),
            (pa.array([2**64 - 1, 1], pa.uint64()), Kind.NUMBER, [2**64 - 1, 1]),
            (pa.array([1.5, float("nan"), None]), Kind.ANY, [1.5, None, None]),
            (pa.array([Decimal("0.10"), None]), Kind.NUMBER, [0.1, None]),
            (pa.array([Decimal(10**30), None], pa.decimal128(38, 0)), Kind.NUMBER, [10**30, None]),
            (pa.array([True, None, False]), Kind.ANY, ["true", None, "false"]),
            (pa.array(["b", None, "a"]).dictionary_encode(), Kind.TEXT, ["b", None, "a"]),
            (pa.array(["b", "a"], pa.large_string()), Kind.TEXT, ["b", "a"]),
            (pa.array([b"b", b"a"]), Kind.TEXT, ["b", "a"]),
            (pa.array([date(2024, 5, 31)]), Kind.ANY, ["2024-05-31"]),
            (pa.array([1500, 2000, None], pa.timestamp("us")), Kind.ANY,
             ["1970-01-01T00:00:00.0015Z", "1970-01-01T00:00:00.002Z", None]),
            (pa.array([datetime(2024, 5, 31, 10, tzinfo=UTC)]), Kind.TEXT, ["2024-05-31T10:00:00Z"]),
            (pa.nulls(2), Kind.ANY, [None, None]),
            (pa.nulls(2), Kind.TEXT, [None, None]),
        ],
    )  # fmt: skip
    def test_values(self, tmp_path: Path, array: pa.Array, kind: Kind, expected: list[Any]) -> None:
        assert values(parquet_column(tmp_path, array, kind)) == expected

    @pytest.mark.parametrize(
        ("array", "kind", "said"),
        [
            (pa.array(["a"]), Kind.NUMBER, "a column of type string, where the query needs a number"),
            (pa.array([True]), Kind.NUMBER, "a column of type bool, where the query needs a number"),
            (pa.array([1]), Kind.TEXT, "a column of type int64, where the query needs text"),
            (pa.array([[1]]), Kind.ANY, "where the query needs a number or text"),
        ],
    )
    def test_wrong_types(self, tmp_path: Path, array: pa.Array, kind: Kind, said: str) -> None:
        with pytest.raises(InputError, match=said):
            parquet_column(tmp_path, array, kind)

    def test_all_columns_leave_nested_ones_out(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"time": [1], "x": [[1]], "y": [2]}), tmp_path / "x.parquet")
        assert list(read_events(tmp_path / "x.parquet", {}, all_columns=True).attributes) == ["y"]

    def test_no_rows(self, tmp_path: Path) -> None:
        pq.write_table(
            pa.table({"time": pa.array([], pa.float64()), "x": pa.array([], pa.string())}), tmp_path / "x.parquet"
        )
        events = read_events(tmp_path / "x.parquet", {"x": Kind.ANY})
        assert (len(events), values(events.attributes["x"])) == (0, [])


words = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
integers = st.none() | st.integers(-(2**70), 2**70) | st.integers(-5, 5)
floats = st.none() | st.floats(allow_nan=False, allow_infinity=False)
seconds = st.integers(-(10**12), 10**12) | st.integers(-3, 3)
decimals = st.integers(-(10**12), 10**12).map(lambda thousandths: thousandths / 1000)
rows_of = {
    time_type: st.lists(
        st.fixed_dictionaries({"time": time, "type": words, "name": words, "count": integers, "price": floats}),
        min_size=1,
        max_size=12,
    )
    for time_type, time in ((pa.int64(), seconds), (pa.float64(), decimals))
}


@given(st.sampled_from(list(rows_of)).flatmap(lambda kind: st.tuples(st.just(kind), rows_of[kind])), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_the_same_rows_in_every_format_are_the_same_events(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[pa.DataType, list[dict[str, Any]]], batch: int
) -> None:
    time_type, rows = drawn
    folder = tmp_path_factory.mktemp("same")
    fields = {"time": time_type, "type": pa.string(), "name": pa.string(), "count": pa.decimal128(38, 0)}
    schema = pa.schema({**fields, "price": pa.float64()})
    kinds = {"name": Kind.TEXT, "count": Kind.NUMBER, "price": Kind.ANY, "time": Kind.NUMBER}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_blocks, "BLOCK", 40 * batch)
        patch.setattr(jsonl_events, "BATCH", batch)
        patch.setattr(parquet_events, "BATCH", batch)
        first, *others = (
            read_events(write(folder / f"same.{suffix}", rows, schema), kinds) for suffix in ("csv", "jsonl", "parquet")
        )
    assert values(first.attributes["name"]) == [row["name"] for row in rows]
    assert values(first.attributes["count"]) == [row["count"] for row in rows]
    assert values(first.attributes["price"]) == [row["price"] for row in rows]
    assert values(first.attributes["time"]) == [row["time"] for row in rows]
    for other in others:
        assert other.time.tolist() == first.time.tolist()
        assert other.clock == first.clock
        assert [values(column) for column in other.types] == [values(column) for column in first.types]
        for name, column in first.attributes.items():
            assert values(other.attributes[name]) == values(column)
            if isinstance(column, Numbers) and not column.null.all():
                assert other.attributes[name].values.dtype == column.values.dtype  # type: ignore[union-attr]


@given(st.lists(st.sampled_from([b"1", b"a", b",", b'"', b"\n", b"\r", b"\xff", b"\xc3\xa9", b"1,A,2\n", b"{", b"}"])))
@settings(max_examples=150, deadline=None)
def test_any_bytes_give_events_or_a_message(tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("bytes") / "x.csv"
    path.write_bytes(b"time,type,x\n" + b"".join(pieces))
    events = read_events(path, {"x": Kind.NUMBER}, bad_rows="skip")
    assert len(events) == len(events.types[0]) == len(events.attributes["x"])
    if events.skipped:
        with pytest.raises(InputError, match="--bad-rows skip") as error:
            read_events(path, {"x": Kind.NUMBER})
        assert str(error.value).startswith(events.skipped_examples[0])
    for suffix in ("jsonl", "parquet"):
        other = path.with_suffix(f".{suffix}")
        other.write_bytes(b"".join(pieces))
        with pytest.raises(InputError):
            read_events(other, {})
