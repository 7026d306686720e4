"""Links from a task to its page of the report site, and to Spark's own pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink, XComArg

from pipeline.config import Config

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


def site(page: str) -> str:
    """The address of a page: below `TRENDS_SITE_URL`, or the file itself."""
    base = os.environ.get("TRENDS_SITE_URL", "").rstrip("/")
    return f"{base}/{page}" if base else (Path(Config.from_environment().site) / page).as_uri()


class QueryPage(BaseOperatorLink):
    """The query's page."""

    name = "Report"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """By the name that the mapped task was given."""
        from pipeline.questions import table_name

        given: dict[str, Any] = getattr(operator, "op_kwargs", {})
        return site(f"queries/{table_name(str(given.get('name')))}.html") if given.get("name") else site("index.html")


class QualityPage(BaseOperatorLink):
    """What the data checks found."""

    name = "Data checks"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The index of all checks."""
        return site("quality/index.html")


class SparkPage(BaseOperatorLink):
    """Spark's pages, where `TRENDS_SPARK_UI` says where they are."""

    name = "Spark"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address that is configured; Airflow shows no link that is empty."""
        return os.environ.get("TRENDS_SPARK_UI", "")


def linked(task: Any, *links: BaseOperatorLink) -> Any:
    """The same task with links."""
    operator = task.operator if isinstance(task, XComArg) else task
    operator.operator_extra_links = links
    return task
