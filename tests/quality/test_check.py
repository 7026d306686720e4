"""A whole check: results in the lake, pages, waivers, history, masks; in this process and through Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline import answers, delta
from pipeline.aggregate.differences import Difference
from pipeline.compare import Comparison
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.quality.check import check
from pipeline.quality.checkpoint import run
from pipeline.quality.pages import KEPT, write_page
from pipeline.quality.report import QualityError, Report, Result
from pipeline.quality.results import results
from pipeline.quality.suites import FOLDER, load
from pipeline.quality.waivers import WaiverError, waive
from pipeline.tables import OPS_QUALITY
from tests.quality import samples
from tests.small_lake import RIDES

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

NEGATIVE = "silver.taxi.fare_not_negative"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


def checked(
    spark: SparkSession,
    config: Config,
    rows: samples.Rows,
    table_name: str = "silver.taxi",
    run_id: str = "run 1",
    day: date = samples.DAY,
    **options: Any,
) -> Report:
    """A check of these rows, landed on one day."""
    name = table_name.partition(".")[2]
    frame = samples.frame_of(spark, table_name, rows)
    facts = {"formats": {samples.file_of(name): samples.FILES[name]}, "source_rows": len(rows)} | options
    return check(spark, config, DATASETS[name], day, table_name, frame, run_id, **facts)


def bad_fares(count: int = 30) -> samples.Rows:
    """Good rides but for some fares."""
    rows = samples.good_rows("silver.taxi")
    for row in rows[:count]:
        row["fare"] = -1.0
    return rows


def few_checks(folder: Path, table_name: str, *names: str) -> Path:
    """A folder of suites that has only these checks of a table's own suite, for tests of what is around them."""
    suite = json.loads((FOLDER / f"{table_name}.json").read_text())
    suite["expectations"] = [each for each in suite["expectations"] if each["meta"]["check"] in names]
    suite["meta"]["computed"] = []
    folder.mkdir(exist_ok=True)
    (folder / f"{table_name}.json").write_text(json.dumps(suite))
    return folder


def test_failure_waiver_and_rerun(any_spark: SparkSession, config: Config, tmp_path: Path) -> None:
    spark = any_spark
    few = few_checks(tmp_path / "suites", "silver.taxi", "fare_not_negative", "ride_present")
    report = checked(spark, config, bad_fares(), suites=few)
    with pytest.raises(QualityError) as told:
        report.raise_on_critical()
    assert str(told.value).splitlines()[:3] == [
        "taxi 2019-01-15: silver.taxi is not published: 1 critical check failed",
        f"  {NEGATIVE} failed: 30 rows, 75 % of 40",
        "    taxi/2019-01-15/taxi.csv:1: -1.0",
    ]
    assert "    … and 25 more\nhint: " in str(told.value)
    assert f"trends quality waive {NEGATIVE} --date 2019-01-15" in str(told.value)

    # The same run again replaces its rows, and only these.
    checked(spark, config, bad_fares(), suites=few)
    next_day = samples.DAY + timedelta(days=1)
    checked(spark, config, samples.good_rows("silver.taxi"), run_id="run 2", day=next_day, suites=few)
    stored = {(row["landing_date"], row["run_id"], row["expectation"]) for row in _stored(spark, config)}
    assert len(stored) == len(_stored(spark, config)) == 2 * len(report.results)

    with pytest.raises(WaiverError, match=f"no check 'silver.taxi.fare_not_negativ'\nhint: did you mean {NEGATIVE}"):
        waive(spark, config, "silver.taxi.fare_not_negativ", samples.DAY, "free rides")
    with pytest.raises(WaiverError, match="did not fail on 2019-01-16\nhint: it failed on 2019-01-15"):
        waive(spark, config, NEGATIVE, date(2019, 1, 16), "free rides")
    with pytest.raises(WaiverError, match="did not fail on 2019-01-15\nhint: it has not failed on any day; on"):
        waive(spark, config, "silver.taxi.ride_present", samples.DAY, "free rides")
    with pytest.raises(WaiverError, match="needs a reason"):
        waive(spark, config, NEGATIVE, samples.DAY, " ")
    waive(spark, config, NEGATIVE, samples.DAY, "first reason", "ann")
    assert waive(spark, config, NEGATIVE, samples.DAY, "free rides", "ann") == ["taxi"]
    assert [(result.expectation, result.waived_reason) for result in results(spark, config) if not result.success] == [
        (NEGATIVE, "free rides")
    ]

    again = checked(spark, config, bad_fares(), run_id="run 3", suites=few)
    again.raise_on_critical()
    assert again.state == "waived"
    assert again.warnings == [f"{NEGATIVE} waived: 30 rows, 75 % of 40 (free rides)"]
    assert again.page is not None
    assert "Waived: free rides" in again.page.read_text()
    assert {result.run_id for result in results(spark, config, "taxi", until=samples.DAY)} == {"run 3"}
    assert {result.run_id for result in results(spark, config, every_run=True)} == {"run 1", "run 2", "run 3"}
    assert results(spark, config, "stock") == []
    assert results(spark, config, since=date(2019, 1, 17)) == []


def test_engines_that_disagree_on_a_known_bad_day(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    few = few_checks(tmp_path / "suites", "silver.taxi", "ride_present")
    unlike = Difference(0, 1, (), "COUNT(*)", ("pane", "sase"), ("1", "2"))
    found = Comparison(RIDES, samples.DAY, (), (unlike,), 1, 1)

    def report(run_id: str) -> Report:
        rows = samples.good_rows("silver.taxi")
        return checked(spark, config, rows, run_id=run_id, suites=few, also=[found.result(run_id)])

    with pytest.raises(QualityError, match=r"gold\.rides\.engines_agree failed"):
        report("run 1").raise_on_critical()
    with pytest.raises(QualityError, match="engines disagree"):
        answers.raise_on_difference(spark, config, found)
    waive(spark, config, "gold.rides.engines_agree", samples.DAY, "we know")
    answers.raise_on_difference(spark, config, found)
    again = report("run 2")
    again.raise_on_critical()
    assert [warning.rpartition(" (")[2] for warning in again.warnings] == ["we know)"]
    with pytest.raises(QualityError):
        answers.raise_on_difference(spark, config, replace(found, day=samples.DAY + timedelta(days=1)))


def _stored(spark: SparkSession, config: Config) -> list[Any]:
    return delta.read(spark, config, OPS_QUALITY).collect()


def test_a_day_is_compared_with_those_before_it(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    few = few_checks(tmp_path / "suites", "silver.activity", "usual_rate", "rate_possible")
    rows = samples.good_rows("silver.activity")
    first = checked(spark, config, rows, "silver.activity", suites=few)
    assert first.state == "passed"  # there is no history yet
    # A day that was stopped is no history.
    stopped = [row | {"rate": 300.0} for row in rows]
    checked(spark, config, stopped, "silver.activity", day=samples.DAY + timedelta(days=1), suites=few)
    fast = [row | {"rate": 150.0} for row in rows]
    report = checked(spark, config, fast, "silver.activity", day=samples.DAY + timedelta(days=3), suites=few)
    report.raise_on_critical()
    assert report.warnings == ["silver.activity.usual_rate warned: 150.0"]
    # What was published with a warning is history too: the same again is usual.
    later = checked(spark, config, fast, "silver.activity", day=samples.DAY + timedelta(days=4), suites=few)
    assert later.state == "passed"


def test_no_output_shows_who_it_was(spark: SparkSession, config: Config, site: Path, tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    suites.mkdir()
    columns = ("driver", "rider", "medallion")
    (suites / "silver.taxi.json").write_text(_suite(*(_short(name) for name in columns), _distinct("driver")))
    (suites / "bronze.taxi.json").write_text(_suite(_short("raw")))
    reports = [
        checked(spark, config, samples.good_rows("silver.taxi"), suites=suites),
        checked(spark, config, samples.good_rows("bronze.taxi"), "bronze.taxi", suites=suites),
        checked(spark, config, samples.good_rows("silver.activity")[:1], "silver.activity"),
    ]
    assert [result.success for result in reports[0].results + reports[1].results] == [False] * 5
    messages = []
    for report in reports[:2]:
        with pytest.raises(QualityError) as told:
            report.raise_on_critical()
        messages.append(str(told.value))
    example = reports[0].results[0].examples[0]
    assert example.startswith("taxi/2019-01-15/taxi.csv:1: driver-")
    shown = [str(reports), *messages, str(_stored(spark, config)), str(results(spark, config))]
    files = [path for root in (site, Path(config.lake)) for path in root.rglob("*") if path.is_file()]
    assert any(path.suffix == ".html" for path in files)
    shown += [path.read_bytes().decode("utf-8", "replace") for path in files if path.suffix != ".parquet"]
    assert "driver-" in "".join(shown)
    assert not [text for text in shown if samples.SECRET in text]


def _suite(*expectations: str) -> str:
    return '{"name": "test", "expectations": [' + ", ".join(expectations) + "]}"


def _short(column: str) -> str:
    # Every row fails: a mask is longer than any value.
    return (
        f'{{"type": "expect_column_value_lengths_to_be_between", "kwargs": {{"column": "{column}", "max_value": 2}}, '
        f'"severity": "critical", "meta": {{"check": "{column}_short"}}}}'
    )


def _distinct(column: str) -> str:
    return (
        f'{{"type": "expect_column_distinct_values_to_be_in_set", "kwargs": {{"column": "{column}", '
        f'"value_set": ["x"]}}, "severity": "critical", "meta": {{"check": "{column}_distinct"}}}}'
    )


def test_pages_are_kept_apart_and_bounded(spark: SparkSession, site: Path, tmp_path: Path) -> None:
    (tmp_path / "silver.stock.json").write_text(_suite(_short("company")))
    suite, subject = load("silver.stock", tmp_path), samples.subject_of("silver.stock")
    row = samples.good_rows("silver.stock")[0] | {"company": "<script>alert(1)</script>"}
    start = datetime(2019, 1, 16, tzinfo=UTC)
    found = run(samples.frame_of(spark, "silver.stock", [row]), subject, suite, {}, start)
    (outcome,) = found.outcomes
    pages = []
    for n in range(KEPT + 2):
        again = replace(subject, run_id=f"manual__2019-01-16T00:00:00+00:00 {n}")
        at = start + timedelta(minutes=n)
        result = Result("stock", samples.DAY, "silver.stock", again.run_id, at, "c", None, "critical", False, None, 1)
        pages.append(write_page(site, again, found, (replace(result, examples=outcome.examples),), "failed"))
    assert [page for page in pages if page.exists()] == pages[2:]
    index = (site / "index.html").read_text()
    assert index.count("<tr data-dataset=") == KEPT
    for page in pages[2:]:
        assert page.relative_to(site).as_posix() in index
        text = page.read_text()
        assert "&lt;script&gt;alert" in text
        assert "<script>alert" not in text
        assert "http" not in text
    assert "http" not in index + (site / "quality.css").read_text() + (site / "quality.js").read_text()


def test_pages_fit_a_phone(spark: SparkSession, config: Config, browser: Browser, tmp_path: Path) -> None:
    few = few_checks(tmp_path / "suites", "silver.taxi", "fare_not_negative", "ride_present")
    report = checked(spark, config, bad_fares(), run_id="scheduled__2019-01-16T00:00:00+00:00", suites=few)
    assert report.page is not None
    for file in (report.page, Path(config.site) / "quality" / "index.html"):
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, file


def test_a_missing_column_or_a_wrong_suite_is_told(spark: SparkSession, config: Config) -> None:
    frame = samples.frame_of(spark, "silver.stock", samples.good_rows("silver.stock")).drop("volume")
    report = check(spark, config, DATASETS["stock"], samples.DAY, "silver.stock", frame, "run 1")
    found = {result.expectation: result for result in report.results}["silver.stock.volume_present"]
    assert (found.state, found.observed) == ("failed", 'Error: The column "volume" in BatchData does not exist.')
    assert report.page is not None
    assert "Traceback" not in report.page.read_text()


def test_nothing_is_printed_or_left_in_the_home_folder(tmp_path: Path) -> None:
    code = (
        "from pipeline.quality.checkpoint import quiet\n"
        "with quiet():\n  import great_expectations as gx\n  gx.get_context(mode='ephemeral')"
    )
    home = tmp_path / "home"
    home.mkdir()
    environment = os.environ | {"HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr, list(home.iterdir())) == ("", "", [])
