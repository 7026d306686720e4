"""A task that does not end by itself, and whose child has a session of its own."""

from __future__ import annotations

from airflow.sdk import dag, task


@dag(schedule=None)
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
