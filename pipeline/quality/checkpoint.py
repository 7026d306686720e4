"""A Great Expectations checkpoint on a Spark frame: one pass for all counts, and more only for what failed."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipeline.quality.report import EXAMPLES
from pipeline.quality.subject import Subject
from pipeline.quality.suites import Check, Suite, SuiteError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Counts alone come from a few bundled aggregates; values would cost a query for every expectation that holds.
COUNTS = {"result_format": "BASIC", "partial_unexpected_count": 0}
# Expectations about one number made of a column's values.
OF_VALUES = {
    f"expect_column_{aggregate}_to_be_between" for aggregate in ("max", "mean", "median", "min", "stdev", "sum")
}
NO_EXCEPTION = {"raised_exception": False, "exception_traceback": None, "exception_message": None}


@dataclass(frozen=True)
class Outcome:
    """What Great Expectations says of one check."""

    check: Check
    success: bool
    observed: str | None
    unexpected: int | None
    examples: tuple[str, ...]
    rendered: Any  # the ExpectationValidationResult


@dataclass(frozen=True)
class Validation:
    """The outcomes in the suite's order, and the whole result that Data Docs are rendered from."""

    outcomes: tuple[Outcome, ...]
    result: Any  # the ExpectationSuiteValidationResult


def run(
    frame: DataFrame, subject: Subject, suite: Suite, parameters: Mapping[str, float], checked_at: datetime
) -> Validation:
    """Run a suite on a frame whose sensitive values are masked. Parameters that are not given are no bound."""
    with quiet():
        runner = _Runner(frame, subject, parameters, checked_at)
        whole = runner.run(suite.checks, COUNTS)
        results = {result.expectation_config.meta["check"]: result for result in whole.results}
        failed = [check for check in suite.checks if _failing_rows(results[check.short_name])]
        if failed:
            results |= {
                result.expectation_config.meta["check"]: result
                for result in runner.run(failed, _examples_format(frame, suite, failed)).results
            }
        outcomes = tuple(_outcome(check, results[check.short_name], suite) for check in suite.checks)
        whole.results = [outcome.rendered for outcome in outcomes]
        whole.success = all(outcome.success for outcome in outcomes)
        whole.statistics = _statistics(outcomes)
        return Validation(outcomes, whole)


class _Runner:
    """A context of its own, which leaves no file anywhere."""

    def __init__(
        self, frame: DataFrame, subject: Subject, parameters: Mapping[str, float], checked_at: datetime
    ) -> None:
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig

        from pipeline.quality.engine import CountingEngine

        self._frame, self._subject, self._parameters = frame, subject, parameters
        self._run_id = gx.RunIdentifier(run_name=subject.run_id, run_time=checked_at)
        self._context = gx.get_context(mode="ephemeral")
        self._context.variables.progress_bars = ProgressBarsConfig(globally=False)
        # By default it would keep the whole frame in memory.
        source = self._context.data_sources.add_spark(subject.table_name, persist=False)
        type(source).execution_engine_override = CountingEngine
        self._batch = source.add_dataframe_asset(subject.table_name).add_batch_definition_whole_dataframe("staged")

    def run(self, checks: Sequence[Check], result_format: Mapping[str, Any]) -> Any:
        import great_expectations as gx

        name = f"{self._subject.table_name} {result_format['result_format']}"
        suite = self._context.suites.add(
            gx.ExpectationSuite(name=name, expectations=[self._expectation(check) for check in checks])
        )
        definition = gx.ValidationDefinition(name=name, data=self._batch, suite=suite)
        checkpoint = gx.Checkpoint(
            name=name,
            validation_definitions=[self._context.validation_definitions.add(definition)],
            result_format=dict(result_format),
        )
        found = checkpoint.run(
            batch_parameters={"dataframe": self._frame},
            expectation_parameters=dict(self._parameters),
            run_id=self._run_id,
        )
        (result,) = found.run_results.values()
        result.suite_name = self._subject.table_name
        return result

    def _expectation(self, check: Check) -> Any:
        from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

        unbounded = not check.parameters <= self._parameters.keys()
        kwargs = {
            key: None if unbounded and isinstance(value, dict) and "$PARAMETER" in value else value
            for key, value in check.configuration["kwargs"].items()
        }
        try:
            return ExpectationConfiguration(**{**check.configuration, "kwargs": kwargs}).to_domain_obj()
        except Exception as error:  # each kind of mistake has an exception of its own, of several libraries
            raise SuiteError(
                f"{check.file.name}: {check.short_name}: {_first_line(error)}\n"
                "hint: the expectations and their arguments are those of Great Expectations"
            ) from None


def _examples_format(frame: DataFrame, suite: Suite, failed: Sequence[Check]) -> dict[str, Any]:
    """Some failing rows, each with what names it and with the values that its checks show."""
    shown = dict.fromkeys([*suite.rows, *(name for check in failed for name in check.shows)])
    names = [name for name in shown if name in frame.columns]
    return {
        "result_format": "SUMMARY",
        "partial_unexpected_count": EXAMPLES,
        "return_unexpected_index_query": False,
    } | ({"unexpected_index_column_names": names} if names else {})


def _failing_rows(result: Any) -> bool:
    return not result.success and bool(result.result.get("unexpected_count"))


def _outcome(check: Check, result: Any, suite: Suite) -> Outcome:
    raised = _exception(result)
    if raised:
        # The traceback is of no use to who reads the page, and Spark's messages may hold a row's values.
        result.exception_info = {"raised_exception": True, "exception_traceback": "", "exception_message": raised}
        return Outcome(check, False, raised, None, (), result)
    result.exception_info = NO_EXCEPTION
    found = result.result
    if check.configuration["type"] in OF_VALUES and found.get("observed_value") is None:
        # As with conditions on rows, what is said of all values holds where there are none.
        result.success = True
        return Outcome(check, True, "no values", None, (), result)
    if "element_count" in found:
        share = found.get("unexpected_percent")
        asked = found["element_count"] - found.get("missing_count", 0)
        observed = None if share is None else f"{share:.4g} % of {asked}"
        rows = found.get("partial_unexpected_index_list") or []
        return Outcome(
            check,
            bool(result.success),
            observed,
            found["unexpected_count"],
            tuple(_example(check, row, suite) for row in rows),
            result,
        )
    observed, unexpected = found.get("observed_value"), found.get("unexpected_count")
    return Outcome(check, bool(result.success), None if observed is None else str(observed), unexpected, (), result)


def _example(check: Check, row: Mapping[str, Any], suite: Suite) -> str:
    """A failing row as "file:line: value"."""
    arguments = check.configuration["kwargs"].items()
    columns = check.shows or [value for key, value in arguments if key in ("column", "column_A", "column_B")]
    place = ":".join(str(row[name]) for name in suite.rows if name in row)
    return f"{place}: {', '.join(str(row.get(name)) for name in columns)}"


def _exception(result: Any) -> str | None:
    """What a check stumbled over, if it did; there is one entry a metric, or one for all."""
    info = result.exception_info or {}
    entries = [info] if "raised_exception" in info else list(info.values())
    messages = [entry.get("exception_message") for entry in entries if entry.get("raised_exception")]
    return _first_line(messages[0]) if messages else None


def _first_line(error: object) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    condition = re.search(r"\[([A-Z][A-Z0-9_.]{5,})\]", str(error))
    return f"Spark: {condition[1]}" if condition else next(iter(lines), type(error).__name__)


def _statistics(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    good = sum(outcome.success for outcome in outcomes)
    return {
        "evaluated_expectations": len(outcomes),
        "successful_expectations": good,
        "unsuccessful_expectations": len(outcomes) - good,
        "success_percent": 100 * good / len(outcomes) if outcomes else None,
    }


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Great Expectations without its reports home, its warnings about itself, and its log of what is in the results."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logger = logging.getLogger("great_expectations")
        level = logger.level
        logger.setLevel(logging.CRITICAL)  # what importing it says, too
        import great_expectations  # noqa: F401 -- sets up its own logging

        logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            logger.setLevel(level)
