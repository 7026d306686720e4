"""Generated files: the same seed, the same bytes; all of them readable; bad rows set aside for the reason they have."""

from __future__ import annotations

import zipfile
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipeline.datasets import DATASETS
from pipeline.errors import InputError
from pipeline.sources.generator import generate
from pipeline.sources.generator.files import Shares
from tests.sources.bronze import DAY, bronze, events, table

ALL = pytest.mark.parametrize("name", DATASETS)


def content(landing: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path.relative_to(landing)): path.read_bytes() for path in landing.rglob("*") if path.is_file()}


@ALL
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    days = [DAY, DAY + timedelta(days=1)]
    first = generate(DATASETS[name], tmp_path / "a", days, 3000, seed=5)
    again = generate(DATASETS[name], tmp_path / "b", days, 3000, seed=5)
    assert first == again
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert {*content(tmp_path / "a")} == {*first.files}  # and no temporary file
    for file in first.files:  # nor the time of day, which both would share if they are made within a second
        if file.endswith(".gz"):
            assert (tmp_path / "a" / file).read_bytes()[4:8] == bytes(4)
        if file.endswith(".zip"):
            with zipfile.ZipFile(tmp_path / "a" / file) as archive:
                assert {info.date_time[0] for info in archive.infolist()} == {1980}
    generate(DATASETS[name], tmp_path / "c", [days[1]], 3000, seed=5)
    later = {file: text for file, text in content(tmp_path / "a").items() if str(days[1]) in file.split("/")[1]}
    assert content(tmp_path / "c") == later
    generate(DATASETS[name], tmp_path / "d", days, 3000, seed=6)
    assert content(tmp_path / "d") != content(tmp_path / "a")


@ALL
def test_ten_thousand_bad_rows(tmp_path: Path, spark: SparkSession, name: str) -> None:
    """Each is set aside with its reason, and nothing else is."""
    dataset = DATASETS[name]
    manifest = generate(dataset, tmp_path, [DAY], 40_000, shares=Shares(bad=0.3, duplicate=0.02, late=0.05))
    assert sum(manifest.bad.values()) >= 10_000
    rows = bronze(spark, tmp_path, manifest.files, dataset)
    assert rows.count() == manifest.rows
    found = events(rows, dataset).cache()
    reasons = found.where("reason is not null").groupBy("reason").count().collect()
    assert {row["reason"]: row["count"] for row in reasons} == dict(manifest.bad)
    assert found.where("reason is not null and part != 0").isEmpty()
    assert found.select("file", "line").distinct().count() == manifest.rows

    assert found.columns == [
        *("file", "file_hash", "line", "copy", "raw", "landing_date", "part", "reason"),
        *("time", "ambiguous_time", "derived", *(column.name for column in dataset.columns)),
    ]
    kinds = dict(found.dtypes)
    assert {column.name: kinds[column.name] for column in dataset.columns} == {
        column.name: column.type for column in dataset.columns
    }
    good = found.where("reason is null")
    always = ("time", "ambiguous_time", *(column.name for column in dataset.columns if column.required))
    assert good.where(" or ".join(f"{column} is null" for column in always)).isEmpty()
    for column in dataset.columns:
        if column.minimum is not None:
            assert good.where(F.col(column.name) < column.minimum).isEmpty()
        if column.maximum is not None:
            assert good.where(F.col(column.name) > column.maximum).isEmpty()
        if column.values:
            assert good.where(~F.col(column.name).isin(*column.values)).isEmpty()

    late = good.where(F.to_date("time") < F.date_sub("landing_date", dataset.lag)).select("file", "line").distinct()
    bad_and_late = found.where("reason is not null").where(found.file.isin(*late_files(manifest.files, name)))
    assert late.count() + bad_and_late.count() == manifest.late > 0
    if dataset.keys:
        repeated = good.groupBy(*dataset.keys).count().where("count > 1")
        events_each = good.groupBy("file", "line").count().agg(F.max("count")).first()[0]
        assert manifest.duplicates <= repeated.count() <= manifest.duplicates * events_each
    found.unpersist()


def late_files(files: list[str], name: str) -> list[str]:
    """The files of earlier days."""
    mark = {"stock": ".late.", "taxi": "_late", "activity": "heart_rate_2029"}[name]
    return [file for file in files if mark in file]


@ALL
def test_days_of_many_small_files_have_their_bad_rows_too(tmp_path: Path, name: str) -> None:
    """A thousandth of a file of 70 rows is no row; of all files it is three, and not the same mistake three times."""
    manifest = generate(DATASETS[name], tmp_path, [DAY], 3000)
    assert sum(manifest.bad.values()) == pytest.approx(3, abs=1)
    assert len(+manifest.bad) == sum(manifest.bad.values())
    assert generate(DATASETS[name], tmp_path, [DAY], 3000, shares=Shares(bad=0.02)).bad.total() == pytest.approx(
        60, 0.1
    )


@ALL
def test_no_file_comes_twice(tmp_path: Path, name: str) -> None:
    """Late rows neither: those of a Friday that land on Monday are others than those that land on Tuesday."""
    generate(DATASETS[name], tmp_path, [DAY, DAY + timedelta(days=1)], 3000)
    files = [*content(tmp_path).values()]
    assert len({*files}) == len(files)


def test_weekends_have_no_stock(tmp_path: Path) -> None:
    week = [DAY + timedelta(days=day) for day in range(7)]
    manifest = generate(DATASETS["stock"], tmp_path, week, 1000)
    assert {file.split("/")[1] for file in manifest.files} == {str(day) for day in week[:5]}
    assert manifest.rows == 5000


def test_split_executions(tmp_path: Path) -> None:
    """Trades in one millisecond, equal ones too, as the real files have them."""
    manifest = generate(DATASETS["stock"], tmp_path, [DAY], 5000, shares=Shares(0, 0, 0))
    file = next(file for file in manifest.files if "dell" in file)
    rows = table(tmp_path, file, DATASETS["stock"].formats)
    times = Counter(raw.split(",")[0] for raw in rows["raw"].to_pylist())
    assert max(times.values()) >= 4
    assert max(rows["copy"].to_pylist()) >= 2


@pytest.mark.parametrize("day", [date(2030, 3, 10), date(2030, 11, 3)], ids=["forward", "back"])
def test_rides_on_days_on_which_the_clock_is_changed(tmp_path: Path, spark: SparkSession, day: date) -> None:
    manifest = generate(DATASETS["taxi"], tmp_path, [day], 8000, shares=Shares(0, 0, 0))
    found = events(bronze(spark, tmp_path, manifest.files, DATASETS["taxi"], day), DATASETS["taxi"]).cache()
    back = day.month == 11
    # A ride over the end of the hour that comes twice may seem to end before it began, and then is taken for a later
    # one; nothing else is wrong.
    assert found.where("reason is not null").isEmpty()
    assert found.where("ambiguous_time").isEmpty() != back
    # A ride that was read an hour too early ends as much too early, or lasts an hour longer: never less than nothing.
    rides = found.groupBy("ride").pivot("type", ["Pickup", "Dropoff"]).agg(F.min("time"))
    assert rides.where("Dropoff < Pickup").isEmpty()


def test_shares_are_checked() -> None:
    with pytest.raises(ValueError, match="the bad share is 1"):
        Shares(bad=1)


def test_a_dataset_without_generator(tmp_path: Path) -> None:
    from dataclasses import replace

    with pytest.raises(InputError, match="no generator for the dataset 'weather'"):
        generate(replace(DATASETS["taxi"], name="weather"), tmp_path, [DAY], 10)
