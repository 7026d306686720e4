"""What people are told, in the log and by a webhook: a task that failed, a deadline that was missed, the digest."""

from __future__ import annotations

import json
import logging
import os
import urllib.request
from collections.abc import Mapping
from typing import Any

CONNECTION = "trends_webhook"
SECONDS = 10
log = logging.getLogger(__name__)


def webhook() -> str | None:
    """Where to post: the host of the connection `trends_webhook`, a whole address, or `TRENDS_WEBHOOK`."""
    from airflow.sdk import Connection

    try:
        found = Connection.get(CONNECTION)
    except Exception:  # there is none, or whoever calls may not ask for one
        return os.environ.get("TRENDS_WEBHOOK") or None
    address = found.host or ""
    # An address may hold a secret, which is the password then: https://example.org/hooks/{password}
    return address.replace("{password}", found.password or "") or None


def tell(text: str, **facts: Any) -> None:
    """Log it, and post it as JSON: `text`, as chat programs want it, and the facts; what goes wrong is only logged."""
    log.warning("%s", text)
    address = webhook()
    if address is None:
        return
    body = json.dumps({"text": text, **facts}, default=str).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS):
            log.info("posted to the webhook")
    except (OSError, ValueError) as error:
        log.error("the webhook did not take it: %s", error)


def on_failure(context: Mapping[str, Any]) -> None:
    """Tell of a task that failed and is not tried again."""
    ti = context["task_instance"]
    error = str(context.get("exception") or "no reason given")
    label = getattr(ti, "rendered_map_index", None)
    name = f"{ti.dag_id}.{ti.task_id}" + (f" [{label}]" if label else "")
    tell(
        f"{name} failed in {ti.run_id}:\n{error}",
        kind="task failed",
        dag=ti.dag_id,
        task=ti.task_id,
        label=label,
        run=ti.run_id,
        error=error,
        log=getattr(ti, "log_url", None),
    )
