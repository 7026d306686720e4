"""A lake of some hundred events over three days, and three queries over it, for whole backfills."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline import answers, delta
from pipeline.backfill import backfill, to_do
from pipeline.compare import Comparison
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.datasets.declaration import Dataset
from pipeline.publish.gold import prepare
from pipeline.publish.publications import Publication
from pipeline.quality.report import Report
from pipeline.questions import Question, ask
from pipeline.tables import OPS_PUBLICATIONS, gold_history, silver
from tests.conftest import SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
MONDAY, TUESDAY, WEDNESDAY = (date(2030, 1, day) for day in (7, 8, 9))
DAYS = (MONDAY, TUESDAY, WEDNESDAY)
STOCK, TAXI = DATASETS["stock"], DATASETS["taxi"]
SECTORS = {"DELL": "Computer", "IBM": "Computer", "AMAT": "Chip"}
QUERIES = {
    "stock/falling.query": """
        RETURN sector, COUNT(*), MIN(S.price) AS least PATTERN Stock S+ FROM stock
        WHERE [company] AND S.price > NEXT(S).price GROUP-BY sector WITHIN 10 minutes SLIDE 5 minutes
    """,
    "stock/whole-days.query": """
        RETURN company, COUNT(*) PATTERN Stock S+ FROM stock WHERE [company] GROUP-BY company WITHIN 1 day SLIDE 1 day
    """,
    "taxi/rides.query": """
        RETURN district, COUNT(*), AVG(T.speed) PATTERN SEQ(Pickup P, Trip T+, Dropoff D) FROM taxi
        SEMANTICS skip-till-next-match WHERE [driver] GROUP-BY district WITHIN 2 hours SLIDE 1 hour
    """,
}
QUESTIONS = {question.name: question for question in (ask(text, f"queries/{name}") for name, text in QUERIES.items())}
FALLING, WHOLE_DAYS, RIDES = QUESTIONS.values()
LATE = "stock/2030-01-09/late.csv"
STAMPS = ("run_id", "published_at", "superseded_by", "superseded_at")  # who, and when

Event = Mapping[str, Any]


def kept(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made once for all processes of a test run."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            making = folder.with_suffix(".making")
            shutil.rmtree(making, ignore_errors=True)
            make(making)
            making.rename(folder)
    return folder


def fill(spark: SparkSession, config: Config) -> None:
    """Silver with the events of three days, and queries beside the lake."""
    for name, text in QUERIES.items():
        file = Path(config.lake).parent / "queries" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    add(spark, config, STOCK, _stocks())
    add(spark, config, TAXI, _rides())


def add_late(spark: SparkSession, config: Config) -> None:
    """An event of Tuesday, in a file of Wednesday: one window of each question over stock has it."""
    time = datetime(2030, 1, 8, 12, 2, tzinfo=UTC)
    add(spark, config, STOCK, [_stock("late", time, "DELL", 0.25, LATE, WEDNESDAY)])


def add(spark: SparkSession, config: Config, dataset: Dataset, events: Iterable[Event]) -> None:
    """Append events to silver."""
    table = silver(dataset)
    delta.create(spark, config, table)
    rows = [tuple(event.get(column.name) for column in table.columns) for event in events]
    schema = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    delta.append(spark, config, table, spark.createDataFrame(rows, schema).coalesce(1))


def copy(lake: Path, config: Config) -> Config:
    """A copy of a lake and its queries, in the place of a test's own."""
    home = Path(config.lake).parent
    shutil.copytree(lake, home, dirs_exist_ok=True)
    return replace(config, lake=str(home / "lake"))


def run(
    spark: SparkSession,
    config: Config,
    run_id: str,
    questions: Sequence[Question],
    *,
    first: date = TUESDAY,
    changed: bool = False,
) -> list[Publication]:
    """A backfill up to Tuesday, without errors."""
    prepare(spark, config, questions)
    work = to_do(spark, config, questions, first, TUESDAY, changed=changed)
    done = [outcome for _, outcome in backfill(spark, config, work, run_id)]
    return [outcome if isinstance(outcome, Publication) else pytest.fail(str(outcome)) for outcome in done]


def run_unchecked(
    spark: SparkSession, config: Config, run_id: str, questions: Sequence[Question], **how: Any
) -> list[Publication]:
    """The same without checks."""
    with pytest.MonkeyPatch.context() as patch:
        leave_checks_out(patch)
        return run(spark, config, run_id, questions, **how)


def leave_checks_out(patch: pytest.MonkeyPatch) -> None:
    """Great Expectations and other engines take most of a small interval's time."""

    def agreement(_: object, __: object, question: Question, day: date, *___: object, **____: object) -> Comparison:
        return Comparison(question, day, (), (), 0, 0)

    patch.setattr(answers, "check", lambda *_, **__: Report(()))
    patch.setattr(answers, "agreement", agreement)


def tables(spark: SparkSession, config: Config) -> dict[str, list[str]]:
    """All that is published of one question, without who did it and when."""
    found = {
        table.full_name: delta.read(spark, config, table) for table in (FALLING.table, gold_history(FALLING.table))
    }
    found["ops.publications"] = delta.read(spark, config, OPS_PUBLICATIONS).where(f"query = '{FALLING.name}'")
    return {name: sorted(str(row) for row in frame.drop(*STAMPS).collect()) for name, frame in found.items()}


def versions(config: Config) -> dict[str, int]:
    """How many commits each table has."""
    logs = sorted(Path(config.lake).glob("*/*/_delta_log"))
    return {"/".join(log.parts[-3:-1]): len([*log.glob("*.json")]) for log in logs}


def start(config: Config, program: str, *arguments: str, master: str = "local[2]", **settings: str) -> Any:
    """A Python program beside the lake, with a session of its own: Python and its JVM can be killed together."""
    environment = os.environ | {
        "TRENDS_LAKE": config.lake,
        "TRENDS_LANDING": config.landing,
        "TRENDS_SPARK": master,
        "TRENDS_SPARK_CONF": "\n".join(f"{key}={value}" for key, value in (SMALL | settings).items()),
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",
    }
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=Path(config.lake).parent,
        env=environment,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# The same in another process.
UNCHECKED = """
import sys
from pytest import MonkeyPatch
from pipeline.cli import main
from tests.small_lake import leave_checks_out

leave_checks_out(MonkeyPatch())
"""


def _stocks() -> list[Event]:
    chance = random.Random(5)
    made = []
    for day in DAYS:
        noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        # Around noon, and around the midnight that two intervals share.
        seconds = [chance.randrange(1200) for _ in range(50)] + [
            12 * 3600 + chance.randrange(-400, 400) for _ in range(10)
        ]
        for number, after in enumerate(sorted(seconds)):
            company = chance.choice([*SECTORS])
            price, time = chance.randrange(4, 80) / 4, noon + timedelta(seconds=after)
            made.append(_stock(f"{day} {number}", time, company, price, f"stock/{day}/a.csv", day))
    return made


def _rides() -> list[Event]:
    made = []
    for day in DAYS:
        for number in range(40):
            start = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=30 * number)
            for step, kind in enumerate(("Pickup", "Trip", "Dropoff")):
                given = {"type": kind, "ride": f"{day} {number}", "driver": f"d{number % 3}", "rider": f"r{number}"}
                given |= {"district": f"{number % 2}", "speed": float(number) if kind == "Trip" else None}
                time = start + timedelta(minutes=10 * step)
                made.append(given | _row(f"{day} {number} {kind}", time, f"taxi/{day}/a.csv", day))
    return made


def _stock(event_id: str, time: datetime, company: str, price: float, file: str, day: date) -> Event:
    given = {"company": company, "sector": SECTORS[company], "price": price, "volume": 1}
    return given | _row(event_id, time, file, day)


def _row(event_id: str, time: datetime, file: str, day: date) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "time": time,
        "event_date": time.date(),
        "ambiguous_time": False,
        "late": False,
        "file": file,
        "line": 1,
        "landing_date": day,
    }
