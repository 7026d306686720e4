"""What a task works on: the lake's settings, Spark by its connection, and the interval of its run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.services.airflow import CONNECTION

if TYPE_CHECKING:
    from pipeline.datasets.declaration import Dataset

WHOLE = re.compile(r"local\b|yarn$|\w+://")  # a master that is written out
SCHEMES = {"sc": "sc", "spark_connect": "sc", "spark": "spark", "generic": "sc"}


def settings() -> Config:
    """The settings of the environment, with the Spark that the connection `trends_spark` names, if there is one."""
    config = Config.from_environment()
    try:
        found = Connection.get(CONNECTION)
    except AirflowNotFoundException:
        return config
    extra = found.extra_dejson
    conf = {key: str(value) for key, value in extra.items() if key.startswith("spark.")}
    return replace(config, master=master(found), spark_conf={**config.spark_conf, **conf})


def master(found: Connection) -> str:
    """The Spark master of a connection: `master` in its extra, a host that is one, or its type, host and port."""
    if written := found.extra_dejson.get("master"):
        return str(written)
    host = found.host or ""
    port = f":{found.port}" if found.port else ""
    if WHOLE.match(host):
        return host + port
    scheme = SCHEMES.get(found.conn_type or "", "")
    if not host or not scheme:
        raise TrendsError(
            f"connection {CONNECTION}: type {found.conn_type!r} and host {host!r} name no Spark\n"
            "hint: sc://127.0.0.1:15002 as its host, spark://host:7077, or local[2]"
        )
    return f"{scheme}://{host}{port}"


def interval_of(context: Mapping[str, Any]) -> date:
    """The interval of a run: what a manual run says, or its data interval."""
    if said := context["params"].get("interval"):
        return date.fromisoformat(said)
    start = context.get("data_interval_start")
    if start is None:
        raise TrendsError("the run has no data interval\nhint: trigger it with the parameter interval: 2013-10-07")
    return date(start.year, start.month, start.day)


def work(context: Mapping[str, Any], dataset: Dataset) -> tuple[Config, Dataset, date, str]:
    """What every step of a dataset's night is given."""
    return settings(), dataset, interval_of(context), str(context["run_id"])
