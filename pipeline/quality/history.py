"""What earlier days observed: the bounds of checks that compare a day with those before it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pipeline.config import Config
from pipeline.quality.results import results
from pipeline.quality.subject import Subject
from pipeline.quality.suites import Suite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 7  # days with results that a day is compared with
REACH = 60  # days back in which these are looked for: weekends and holidays have none
LEAST, GREATEST = "_least", "_greatest"


def observed_range(spark: SparkSession, config: Config, subject: Subject, suite: Suite) -> dict[str, float]:
    """`<check>_least` and `<check>_greatest` of the last days, for each check that the suite's parameters name.

    A day counts with its latest run, unless that stopped the interval. Without earlier days there are no bounds.
    """
    names = {name.removesuffix(suffix) for name in suite.parameters for suffix in (LEAST, GREATEST) if suffix in name}
    if not names:
        return {}
    earlier = [
        result
        for result in results(
            spark, config, subject.dataset.name, subject.day - timedelta(days=REACH), subject.day - timedelta(days=1)
        )
        if result.table_name == subject.table_name
    ]
    stopped = {result.landing_date for result in earlier if result.state == "failed"}
    bounds: dict[str, float] = {}
    for name in names:
        values = {
            result.landing_date: number
            for result in earlier
            if result.expectation == f"{subject.table_name}.{name}"
            and result.landing_date not in stopped
            and (number := _number(result.observed)) is not None
        }
        last = [values[day] for day in sorted(values)[-DAYS:]]
        if last:
            bounds |= {name + LEAST: min(last), name + GREATEST: max(last)}
    return bounds


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
