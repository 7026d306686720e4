"""A small daily DAG: each run counts its day's rows with Spark, and leaves a file in the project's folder."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.sdk import CronDataIntervalTimetable, dag, task

FIRST = datetime(2026, 1, 1, tzinfo=UTC)  # no run before it has tasks, not even a backfill's


@dag(schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"), start_date=FIRST, catchup=False)
def daily_count() -> None:
    @task(pool="trends_spark")
    def count(data_interval_start: datetime | None = None) -> None:
        from pathlib import Path

        from airflow.sdk import BaseHook

        from pipeline.config import Config
        from pipeline.spark import session

        assert data_interval_start is not None
        at = BaseHook.get_connection("trends_spark")
        spark = session(Config(master=f"sc://{at.host}:{at.port}"))
        rows = spark.range(data_interval_start.day).count()
        Path("counted").mkdir(exist_ok=True)
        Path("counted", f"{data_interval_start:%Y-%m-%d}").write_text(str(rows))

    count()


daily_count()
