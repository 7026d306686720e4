"""Every check of every suite passes on good data and fails on bad data."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline import answers
from pipeline.datasets import DATASETS
from pipeline.quality.checkpoint import Outcome, run
from pipeline.quality.columns import with_computed
from pipeline.quality.mask import masked, with_masks
from pipeline.quality.subject import Subject
from pipeline.quality.suites import FOLDER, SuiteError, load
from pipeline.questions import ask
from tests.quality import samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = [f"{layer}.{name}" for layer in ("bronze", "silver") for name in DATASETS]
SPARK_TYPES = {
    "string": "StringType",
    "double": "DoubleType",
    "bigint": "LongType",
    "int": "IntegerType",
    "boolean": "BooleanType",
}


def outcomes(frame: DataFrame, subject: Subject, *, computed: bool = True, **parameters: float) -> dict[str, Outcome]:
    """What each check of the table's suite says of a frame."""
    suite = load(subject.table_name)
    if computed:
        frame = with_computed(frame, subject, suite)
    hidden = with_masks(frame, subject.dataset)
    found = run(hidden, subject, suite, {"least_rows": subject.least_rows, **parameters}, datetime.now(UTC))
    return {outcome.check.short_name: outcome for outcome in found.outcomes}


def failed(found: dict[str, Outcome]) -> set[str]:
    return {name for name, outcome in found.items() if not outcome.success}


@pytest.mark.parametrize("table_name", TABLES)
def test_good_rows_pass_every_check(spark: SparkSession, table_name: str) -> None:
    frame = samples.frame_of(spark, table_name, samples.good_rows(table_name))
    assert failed(outcomes(frame, samples.subject_of(table_name))) == set()


# The suites of bronze differ only in the names of formats.
@pytest.mark.parametrize("table_name", ["bronze.taxi", *(f"silver.{name}" for name in DATASETS)])
def test_every_check_fails_on_what_it_is_for_and_names_the_rows(spark: SparkSession, table_name: str) -> None:
    checks = load(table_name).checks
    usual = {name: 1000.0 for check in checks for name in check.parameters if name.endswith(("_least", "_greatest"))}
    rows, positions = samples.rows_each_bad(table_name)
    full = samples.subject_of(table_name, source_rows=len(rows), quarantined=len(rows) - 1)
    found = outcomes(samples.frame_of(spark, table_name, rows), full, **usual)
    for check, bad in positions.items():
        places = {f"{rows[n].get('file')}:{rows[n].get('line')}" for n in bad}
        assert not found[check].success, check
        assert samples.COPIES <= (found[check].unexpected or 0) <= 3 * samples.COPIES, check
        assert places <= {example.partition(": ")[0] for example in found[check].examples}, check
    seen = failed(found)

    good = samples.frame_of(spark, table_name, samples.good_rows(table_name))
    types = {check.configuration["kwargs"]["column"] for check in checks if check.short_name.endswith("_type")}
    bad = samples.frame_of(spark, table_name, samples.rows_all_bad(table_name))
    seen |= failed(outcomes(bad, samples.subject_of(table_name))) & samples.lenient(table_name)
    seen |= failed(outcomes(good.limit(0), samples.subject_of(table_name))) & {"arrived", "has_events"}
    if types:
        other = good.selectExpr(*(f"array({name}) {name}" if name in types else name for name in good.columns))
        # Without computed columns: these cannot be computed from other types.
        outcome = outcomes(other, samples.subject_of(table_name), computed=False)
        seen |= {name for name in failed(outcome) if name.endswith("_type")}
    assert seen == {check.short_name for check in checks}


def test_every_check_of_gold_fails_on_what_it_is_for(spark: SparkSession) -> None:
    schema = "window_start timestamp, window_end timestamp, answer string, is_owned boolean, exact boolean"
    start, end = datetime(2030, 1, 7, 14, tzinfo=UTC), datetime(2030, 1, 7, 15, tzinfo=UTC)
    good = [(start, end, "a", True, True), (start, end, "b", True, True)]
    bad = {
        "answer_unique": (start, end, "a", True, True),
        "window_in_order": (end, start, "c", True, True),
        "window_of_interval": (start, end, "d", False, True),
        "all_exact": (start, end, "e", True, False),
    }
    subject = Subject(DATASETS["stock"], start.date(), "gold.trends", "run")
    usual = {"usual_answers_least": 2.0, "usual_answers_greatest": 2.0}
    assert failed(outcomes(spark.createDataFrame(good, schema), subject, **usual)) == set()
    found = outcomes(spark.createDataFrame([*good, *bad.values()], schema), subject, **usual)
    assert failed(found) == {*bad, "usual_answers"} == {check.short_name for check in load("gold.trends").checks}
    # Of the same answer twice, both are shown.
    assert {name: found[name].unexpected for name in bad} == dict.fromkeys(bad, 1) | {"answer_unique": 2}


@pytest.mark.parametrize("name", DATASETS)
def test_suites_know_every_column_and_format_of_the_declaration(name: str) -> None:
    dataset = DATASETS[name]
    kwargs = [check.configuration["kwargs"] for check in load(f"silver.{name}").checks]
    types = {each["column"]: each["type_"] for each in kwargs if "type_" in each}
    assert {column.name: SPARK_TYPES[column.type] for column in dataset.columns}.items() <= types.items()
    required = {column.name for column in dataset.columns if column.required}
    not_null = {
        check.configuration["kwargs"]["column"]
        for check in load(f"silver.{name}").checks
        if check.configuration["type"] == "expect_column_values_to_not_be_null"
    }
    assert required <= not_null
    declared = {check.short_name: check for check in load(f"bronze.{name}").checks}["format_declared"]
    assert set(declared.configuration["kwargs"]["value_set"]) == {known.name for known in dataset.formats} | {"unknown"}
    formats = {known.name for known in dataset.formats}
    for options in load(f"silver.{name}").computed:
        assert set(options.get("formats", {})) <= formats


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_suite_is_named_after_its_file_and_says_what_each_check_is_for(path: Path) -> None:
    content = json.loads(path.read_text())
    assert content["name"] == path.stem
    for expectation in content["expectations"]:
        assert expectation["description"].endswith("."), expectation["meta"]["check"]


def test_a_suite_runs_through_spark_connect(connect: SparkSession) -> None:
    rows, positions = samples.rows_each_bad("silver.taxi")
    found = outcomes(samples.frame_of(connect, "silver.taxi", rows), samples.subject_of("silver.taxi"))
    assert set(positions) <= failed(found)
    assert found["event_id_unique"].examples[0].endswith(": twice")


def test_spark_is_not_asked_for_values_where_all_is_well(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine

    asked: list[str] = []
    resolve = SparkDFExecutionEngine.resolve_metrics

    def recorded(engine: SparkDFExecutionEngine, metrics: list[Any], *others: Any) -> Any:
        asked.extend(metric.metric_name for metric in metrics)
        return resolve(engine, metrics, *others)

    monkeypatch.setattr(SparkDFExecutionEngine, "resolve_metrics", recorded)
    rows = samples.good_rows("bronze.taxi")
    outcomes(samples.frame_of(spark, "bronze.taxi", rows), samples.subject_of("bronze.taxi"))
    assert "column_values.nonnull.unexpected_count.aggregate_fn" in asked
    assert not [name for name in asked if name.endswith("unexpected_values")]


def write(folder: Path, name: str, text: str) -> Path:
    (folder / f"{name}.json").write_text(text)
    return folder


def test_any_table_may_have_a_suite(spark: SparkSession, tmp_path: Path) -> None:
    rows = '{"name": "gold.q", "meta": {"rows": ["window_start"]}, "expectations": [{"severity": "critical", '
    rows += (
        '"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "count"}, "meta": {"check": "counted"}}]}'
    )
    suite = load("gold.q", write(tmp_path, "gold.q", rows))
    frame = spark.createDataFrame([(1, "5"), (2, None)], "window_start int, count string")
    subject = Subject(DATASETS["stock"], samples.DAY, "gold.q", "run 1")
    (outcome,) = run(frame, subject, suite, {}, datetime.now(UTC)).outcomes
    assert (outcome.success, outcome.examples) == (False, ("2: None",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"expectations": [}', "gold.q.json:1:19: Expecting value"),
        ("[]", "gold.q.json: no suite"),
        ('{"expectations": []}', "gold.q.json: the suite is empty"),
        ('{"expectations": [{"type": "expect"}]}', "gold.q.json: expectation 1 has no name"),
        ('{"expectations": [{"meta": {"check": "a"}}]}', "gold.q.json: a: severity is missing or unknown"),
        (
            '{"expectations": [{"meta": {"check": "a"}, "severity": "critical", "kwargs": {}}]}',
            "gold.q.json: a: no expectation",
        ),
        (
            '{"expectations": [{"meta": {"check": "a"}, "severity": "warning", "type": "t", "kwargs": {}}, '
            '{"meta": {"check": "a"}, "severity": "warning", "type": "t", "kwargs": {}}]}',
            "gold.q.json: the check a is in gold.q.json already",
        ),
    ],
)
def test_a_mistake_in_a_suite_is_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SuiteError, match="^" + message.replace(".", r"\.")) as told:
        load("gold.q", write(tmp_path, "gold.q", text))
    assert "\nhint: " in str(told.value)


def test_a_table_without_a_suite_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="no suite says what must hold"):
        load("gold.q", tmp_path)


def test_answers_are_named_without_saying_who_they_are_about(spark: SparkSession) -> None:
    """Neither by what names a row, nor under the name that a query gives the column."""
    text = "RETURN patient AS who, COUNT(*) PATTERN activity A+ FROM activity GROUP-BY patient WITHIN 1 day SLIDE 1 day"
    question = ask(text, "queries/activity/by-patient.query")
    window = "timestamp'2030-01-07' AS window_start, timestamp'2030-01-08' AS window_end"
    rows = spark.sql(f"SELECT {window}, '105' AS patient, '105' AS who")
    named = answers._with_facts(rows, question, date(2030, 1, 7))
    shown = with_masks(named, question.dataset, *question.table.sensitive).collect()[0]
    assert shown["answer"] == f"2030-01-07 00:00:00 2030-01-08 00:00:00 {masked('patient', '105')}"
    assert shown["patient"] == masked("patient", "105")
    assert shown["who"] == masked("who", "105")
