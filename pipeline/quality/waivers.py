"""Waivers: a known failure of one check on one day that a person lets through, and why."""

from __future__ import annotations

import getpass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from pipeline import delta
from pipeline.config import Config
from pipeline.errors import TrendsError, nearest
from pipeline.tables import OPS_WAIVERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class WaiverError(TrendsError):
    """A waiver of something that did not fail."""


def waive(
    spark: SparkSession, config: Config, expectation: str, day: date, reason: str, by: str | None = None
) -> list[str]:
    """Let a check that failed on a day through, from its next run on; the datasets that must run again.

    A second waiver of the same failure replaces the reason.
    """
    from pipeline.quality.results import results

    if not reason.strip():
        raise WaiverError(f"{expectation}: a waiver needs a reason\nhint: --reason 'the exchange closed early'")
    known = results(spark, config)
    of_name = [result for result in known if result.expectation == expectation]
    if not of_name:
        near = nearest(expectation, {result.expectation for result in known})
        hint = f"did you mean {near}?" if near else "trends quality lists the checks that have run"
        raise WaiverError(f"there is no check {expectation!r}\nhint: {hint}")
    failures = [result for result in of_name if result.landing_date == day and not result.success]
    if not failures:
        failed = sorted({str(result.landing_date) for result in of_name if not result.success})
        that_day = sorted({result.expectation for result in known if result.landing_date == day and not result.success})
        hint = f"it failed on {', '.join(failed[-5:])}" if failed else "it has not failed on any day"
        if that_day:
            hint += f"; on {day} failed {', '.join(that_day)}"
        raise WaiverError(f"{expectation} did not fail on {day}\nhint: {hint}")
    if not delta.exists(spark, config, OPS_WAIVERS):
        delta.create(spark, config, OPS_WAIVERS)
    schema = delta.read(spark, config, OPS_WAIVERS).schema
    datasets = sorted({result.dataset for result in failures})
    for dataset in datasets:
        values = {
            "dataset": dataset,
            "landing_date": day,
            "expectation": expectation,
            "reason": reason.strip(),
            "by": by or getpass.getuser(),
            "at": datetime.now(UTC),
        }
        frame = spark.createDataFrame([tuple(values[name] for name in schema.names)], schema)
        where: delta.Where = {"dataset": dataset, "landing_date": day, "expectation": expectation}
        delta.replace(spark, config, OPS_WAIVERS, frame, where)
    return datasets


def reasons(spark: SparkSession, config: Config) -> dict[tuple[date, str], str]:
    """The reason of every waived (day, check)."""
    rows = delta.rows(spark, config, OPS_WAIVERS)
    return {(row["landing_date"], row["expectation"]): row["reason"] for row in rows}
