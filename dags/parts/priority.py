"""Which task gets a free Spark slot first: one of tonight, before any of a backfill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.plugins_manager import AirflowPlugin
from airflow.task.priority_strategy import PriorityWeightStrategy

if TYPE_CHECKING:
    from airflow.models.taskinstance import TaskInstance

BACKFILL = "backfill__"  # how the ids of a backfill's runs begin
NIGHT = 1000


class NightsFirst(PriorityWeightStrategy):
    """A task's own weight, and more in a night.

    Airflow takes the oldest interval first where weights are equal: without this, a year's backfill would come before
    tonight. A night waits for the tasks that run already, and for no other.
    """

    def get_weight(self, ti: TaskInstance) -> int:
        """More in a night than in a backfill."""
        weight = ti.task.priority_weight if ti.task else 1
        return weight if ti.run_id.startswith(BACKFILL) else weight + NIGHT


class Trendmill(AirflowPlugin):
    """Makes the strategy known to the scheduler, by the package's entry point."""

    name = "trendmill"
    priority_weight_strategies = [NightsFirst]  # noqa: RUF012 -- as Airflow declares it
