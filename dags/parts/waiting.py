"""The tasks that wait, deferred: until a landing day's files are expected, or its events are in silver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, TriggerEvent

from dags.parts.night import interval_of, work
from pipeline.datasets import DATASETS

LOOKED_EVERY = 10.0  # seconds


class LandingCheck(BaseOperator):
    """Waits until a landing day's files are expected, then fails where none is there."""

    ui_color = "#e8f0d8"

    def __init__(self, *, dataset: str, **options: Any) -> None:
        super().__init__(**options)
        self.dataset = dataset

    def execute(self, context: Mapping[str, Any]) -> None:
        """Defer until the hour that the dataset declares, in its own zone."""
        due = DATASETS[self.dataset].expected_at(interval_of(context)).astimezone(UTC)
        if due > datetime.now(UTC):
            self.log.info("files are expected by %s", due)
            self.defer(trigger=DateTimeTrigger(moment=due), method_name="look")
        self.look(context)

    def look(self, context: Mapping[str, Any], event: object = None) -> None:
        """Look for the files."""
        from pipeline import nights

        nights.check_landing(*work(context, DATASETS[self.dataset]))


class EventsComplete(BaseOperator):
    """Waits until every landing day that can hold events of the interval's windows is complete by `ops.intervals`."""

    ui_color = "#e8f0d8"

    def __init__(self, *, dataset: str, **options: Any) -> None:
        super().__init__(**options)
        self.dataset = dataset

    def execute(self, context: Mapping[str, Any]) -> None:
        """Defer while a day is missing."""
        from pipeline import nights, ready

        config, dataset, day, _ = work(context, DATASETS[self.dataset])
        params = context["params"]
        days = nights.needed_days(config, dataset, day, nights.query_names(config, dataset))
        left = ready.incomplete(config, dataset, days)
        self.log.info("landing days that can hold events: %s", ", ".join(map(str, days)) or "none")
        if not left:
            return
        self.log.info("not complete: %s", left)
        if params["partial"]:
            self.log.info("answered nevertheless, with what is there")
            return
        until = max(dataset.expected_at(max(left)).astimezone(UTC), datetime.now(UTC))
        until += timedelta(hours=params["patience"])
        trigger = LandingDays(config.lake, self.dataset, [str(one) for one in days], until.isoformat())
        self.defer(trigger=trigger, method_name="look", kwargs={"days": [str(one) for one in days]})

    def look(self, context: Mapping[str, Any], days: Sequence[str] | None = None, event: object = None) -> None:
        """Fail where days are still missing."""
        from pipeline import nights, ready

        config, dataset, day, _ = work(context, DATASETS[self.dataset])
        needed = nights.needed_days(config, dataset, day, nights.query_names(config, dataset))
        ready.check_ready(config, dataset, day, needed)


class LandingDays(BaseTrigger):
    """Fires when the landing days are complete by `ops.intervals`, or it is too late; it needs no JVM."""

    def __init__(self, lake: str, dataset: str, days: Sequence[str], until: str, every: float = LOOKED_EVERY) -> None:
        super().__init__()
        self.lake, self.dataset, self.days, self.until, self.every = lake, dataset, days, until, every

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again."""
        names = ("lake", "dataset", "days", "until", "every")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look now and then."""
        until = datetime.fromisoformat(self.until)
        while True:
            left = await asyncio.to_thread(self._left)
            if not left or datetime.now(UTC) >= until:
                yield TriggerEvent({"left": left})
                return
            await asyncio.sleep(self.every)

    def _left(self) -> list[str]:
        from pipeline import ready
        from pipeline.config import Config

        days = [date.fromisoformat(day) for day in self.days]
        return [str(day) for day in ready.incomplete(Config(lake=self.lake), DATASETS[self.dataset], days)]
