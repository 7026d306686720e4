"""Check a staged table before readers see it: compute, mask, run the suite, keep the results, write the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config import Config
from pipeline.quality.checkpoint import Outcome, run
from pipeline.quality.columns import with_computed
from pipeline.quality.history import GREATEST, LEAST, REACH, observed_range
from pipeline.quality.mask import with_masks
from pipeline.quality.pages import write_page
from pipeline.quality.report import Report, Result
from pipeline.quality.results import latest, stored, with_reasons, write
from pipeline.quality.subject import Subject
from pipeline.quality.suites import FOLDER, Suite, SuiteError, load
from pipeline.quality.waivers import reasons

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.datasets.declaration import Dataset


def pages(config: Config) -> Path:
    """Where the pages of the checks go."""
    return Path(config.site) / "quality"


def check(
    spark: SparkSession,
    config: Config,
    dataset: Dataset,
    day: date,
    table_name: str,
    frame: DataFrame,
    run_id: str,
    *,
    formats: Mapping[str, str] | None = None,
    source_rows: int = 0,
    quarantined: int = 0,
    also: Sequence[Result] = (),
    sensitive: Sequence[str] = (),
    suites: Path = FOLDER,
) -> Report:
    """Run a table's suite on its staged frame; the caller decides what a critical failure stops.

    `formats` says for each file which format it has, `source_rows` and `quarantined` count the day's rows; `also` are
    results of checks that the caller made; `sensitive` are columns to mask beside the dataset's own. The frame is
    read several times: it should be cheap to read, such as a staged table.
    """
    subject = Subject(dataset, day, table_name, run_id, formats or {}, source_rows, quarantined)
    suite = load(table_name, suites)
    past = stored(spark, config, dataset.name, day - timedelta(days=REACH), day)
    waived = reasons(spark, config)
    usual = observed_range(with_reasons(latest(past), waived), subject, suite)
    parameters = {"least_rows": subject.least_rows, **usual}
    _check_parameters(suite, parameters)
    checked_at = datetime.now(UTC)
    masked = frame.transform(with_computed, subject, suite).transform(with_masks, dataset, *sensitive)
    validation = run(masked, subject, suite, parameters, checked_at)
    results = tuple(
        _result(subject, checked_at, outcome, waived.get((day, outcome.check.name))) for outcome in validation.outcomes
    )
    # What was checked together has one time, by which the latest is known.
    theirs = (replace(one, checked_at=checked_at, waived_reason=_reason(waived, day, one)) for one in also)
    results = (*theirs, *results)
    is_again = any((old.landing_date, old.table_name, old.run_id) == (day, table_name, run_id) for old in past)
    write(spark, config, results, again=is_again)
    return Report(results, write_page(pages(config), subject, validation, results, Report(results).state))


def _reason(waived: Mapping[tuple[date, str], str], day: date, result: Result) -> str | None:
    return None if result.success else waived.get((day, result.expectation))


def _check_parameters(suite: Suite, parameters: Mapping[str, float]) -> None:
    names = {check.short_name for check in suite.checks}
    known = {*parameters, *(name + suffix for name in names for suffix in (LEAST, GREATEST))}
    for each in suite.checks:
        if unknown := sorted(each.parameters - known):
            raise SuiteError(
                f"{each.file.name}: {each.short_name}: no parameter {unknown[0]!r}\n"
                "hint: least_rows, or the name of a check with _least or _greatest"
            )


def _result(subject: Subject, checked_at: datetime, outcome: Outcome, reason: str | None) -> Result:
    return Result(
        dataset=subject.dataset.name,
        landing_date=subject.day,
        table_name=subject.table_name,
        run_id=subject.run_id,
        checked_at=checked_at,
        expectation=outcome.check.name,
        column_name=outcome.check.configuration["kwargs"].get("column"),
        severity=outcome.check.severity,
        success=outcome.success,
        observed=outcome.observed,
        unexpected=outcome.unexpected,
        examples=outcome.examples,
        waived_reason=None if outcome.success else reason,
    )
