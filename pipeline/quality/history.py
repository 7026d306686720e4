"""What earlier days observed: the bounds of checks that compare a day with those before it."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.quality.report import Result
from pipeline.quality.subject import Subject
from pipeline.quality.suites import Suite

DAYS = 7  # days with results that a day is compared with
REACH = 60  # days back in which these are looked for: weekends and holidays have none
LEAST, GREATEST = "_least", "_greatest"


def observed_range(results: Iterable[Result], subject: Subject, suite: Suite) -> dict[str, float]:
    """`<check>_least` and `<check>_greatest` of the last days, for each check that the suite's parameters name.

    `results` are those of each day's latest run; a day that this stopped does not count. Without earlier days there are
    no bounds.
    """
    names = {
        name.removesuffix(suffix) for name in suite.parameters for suffix in (LEAST, GREATEST) if name.endswith(suffix)
    }
    earlier = [
        result for result in results if result.table_name == subject.table_name and result.landing_date < subject.day
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
