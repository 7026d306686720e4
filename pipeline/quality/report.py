"""What a checkpoint found: one result a check, and whether the interval may go on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from pipeline.errors import TrendsError

EXAMPLES = 20  # failing rows that are named
SHOWN = 5  # of which so many are in a message


class QualityError(TrendsError):
    """Critical checks that failed and were not waived: the interval must not be published."""


@dataclass(frozen=True)
class Result:
    """One check on one table of one landing day: a row of ops.quality."""

    dataset: str
    landing_date: date
    table_name: str
    run_id: str
    checked_at: datetime
    expectation: str  # silver.stock.price_positive
    column_name: str | None
    severity: str
    success: bool
    observed: str | None
    unexpected: int | None  # rows that break it, where it is about rows
    examples: tuple[str, ...] = ()  # "file:line: value"
    waived_reason: str | None = None

    @property
    def state(self) -> str:
        """Passed, waived, or by its severity failed or warned."""
        if self.success:
            return "passed"
        if self.waived_reason is not None:
            return "waived"
        return "failed" if self.severity == "critical" else "warned"

    def __str__(self) -> str:
        found = f"{self.expectation} {self.state}"
        if self.unexpected:
            share = f", {self.observed}" if self.observed is not None else ""
            return f"{found}: {self.unexpected} row{'s' if self.unexpected > 1 else ''}{share}"
        return f"{found}: {self.observed}" if self.observed is not None else found


@dataclass(frozen=True)
class Report:
    """All results of one table and day in one run, and the page that shows them."""

    results: tuple[Result, ...]
    page: Path | None = None

    def of(self, state: str) -> tuple[Result, ...]:
        """The results in one state."""
        return tuple(result for result in self.results if result.state == state)

    @property
    def state(self) -> str:
        """The worst state there is."""
        return next((state for state in ("failed", "warned", "waived") if self.of(state)), "passed")

    @property
    def warnings(self) -> list[str]:
        """What is published nevertheless, a line each: for the interval's row."""
        waived = [f"{result} ({result.waived_reason})" for result in self.of("waived")]
        return [str(result) for result in self.of("warned")] + waived

    def raise_on_critical(self) -> None:
        """Stop the interval if a critical check failed and nobody waived it."""
        failed = self.of("failed")
        if not failed:
            return
        lines = [line for result in failed for line in _told(result)]
        first = failed[0]
        page = f"see {self.page}; " if self.page else ""
        raise QualityError(
            "\n".join(
                [
                    f"{first.dataset} {first.landing_date}: {first.table_name} is not published: "
                    f"{len(failed)} critical check{'s' if len(failed) > 1 else ''} failed",
                    *lines,
                    f"hint: {page}mend the files, or let the day through: "
                    f"trends quality waive {first.expectation} --date {first.landing_date} --reason '…'",
                ]
            )
        )


def _told(result: Result) -> Iterable[str]:
    yield f"  {result}"
    yield from (f"    {example}" for example in result.examples[:SHOWN])
    more = (result.unexpected or 0) - min(SHOWN, len(result.examples))
    if result.examples and more > 0:
        yield f"    … and {more} more"
