"""A task that does not end by itself, and whose child has a session of its own; its run has a deadline."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import dag, task

from dags.parts.deadlines import deadline


@dag(schedule=None, deadline=deadline("endless ends", timedelta(seconds=1), "not done a second after it was queued"))
def endless() -> None:
    @task
    def wait() -> None:
        import subprocess
        from pathlib import Path

        child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
        Path("child.new").write_text(str(child.pid))
        Path("child.new").rename("child")
        child.wait()

    wait()


endless()
