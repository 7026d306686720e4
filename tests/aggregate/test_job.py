"""The job on real Spark and Delta: days one by one equal one run over all of them, however the work is cut."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from pipeline import delta
from pipeline.aggregate import cut
from pipeline.aggregate.cut import Strategy
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.questions import Question, ask
from pipeline.tables import silver
from tests.aggregate.whole import ALWAYS, by_job, in_one_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOCK = DATASETS["stock"]
DAYS = [date(2030, 1, day) for day in range(6, 12)]
COMPANIES = {"DELL": "Computer", "IBM": "Computer", "AMAT": "Chips", "IPIX": "Chips"}

QUESTIONS = {
    "tumbling": "PATTERN Stock S+ FROM stock WHERE [company] GROUP-BY sector WITHIN 1 hour SLIDE 1 hour",
    "several_days": "PATTERN SEQ(DELL, IBM+) FROM stock WITHIN 36 hours SLIDE 6 hours",
    "seconds": "PATTERN Stock S+ FROM stock WHERE [company] AND S.price > NEXT(S).price "
    "WITHIN 90 seconds SLIDE 10 seconds",
    "next": "PATTERN SEQ(DELL, IBM) FROM stock SEMANTICS skip-till-next-match WITHIN 2 hours SLIDE 30 minutes",
    "contiguous": "PATTERN Stock S+ FROM stock SEMANTICS contiguous WHERE [company] GROUP-BY company "
    "WITHIN 1 hour SLIDE 20 minutes",
    "moving": "PATTERN SEQ(DELL D, IBM I) FROM stock WHERE D.price < I.price WITHIN 5 minutes",
    "trailing": "PATTERN SEQ(DELL, IBM, !AMAT) FROM stock WITHIN 5 minutes",
    "leading": "PATTERN SEQ(!AMAT, DELL, IBM) FROM stock WITHIN 5 minutes",
}  # fmt: skip


def question(name: str) -> Question:
    groups = {"tumbling": "sector, ", "contiguous": "company, "}.get(name, "")
    items = ", AVG(S.price) AS mean, SUM(S.volume), MIN(S.price)" if " S+ " in QUESTIONS[name] else ""
    return ask(f"RETURN {groups}COUNT(*){items} {QUESTIONS[name]}", f"{name}.query")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Three days of trades, dense around midnights, with ties; the files of two landing days overlap in time."""
    folder = tmp_path_factory.mktemp("lake")
    config = Config(str(folder / "lake"), str(folder / "landing"), "local[2]")
    table = silver(STOCK)
    delta.create(spark, config, table)
    random = Random(5)
    midnights = [datetime(2030, 1, day, tzinfo=UTC) for day in (7, 8, 9)]
    times = [at + timedelta(seconds=random.randint(-400, 400)) for at in midnights for _ in range(60)]
    times += [at - timedelta(hours=random.randint(1, 23)) for at in midnights for _ in range(15)]
    for landing in (date(2030, 1, 7), date(2030, 1, 8)):
        rows = [row for number, at in enumerate(times) if (row := trade(random, number, at, landing))]
        frame = spark.createDataFrame(rows, delta.read(spark, config, table).schema)
        delta.append(spark, config, table, frame.repartition(3).sortWithinPartitions("time"))
    return config


def trade(random: Random, number: int, at: datetime, landing: date) -> dict[str, Any] | None:
    if (number % 2 == 0) == (landing == date(2030, 1, 7)):
        return None
    company = random.choice(list(COMPANIES))
    return {
        **{column.name: None for column in silver(STOCK).columns},
        "event_id": f"{number:020}",
        "time": at,
        "event_date": at.date(),
        "company": company,
        "sector": COMPANIES[company],
        "price": random.randint(1, 8) / 2,
        "volume": random.randint(1, 100),
        "ambiguous_time": False,
        "late": False,
        "file": "a.csv",
        "line": number + 1,
        "landing_date": landing,
    }


@pytest.fixture
def several_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "FEW_EVENTS", 10)


@pytest.mark.usefixtures("several_tasks")
def test_days_one_by_one_are_one_run(spark: SparkSession, lake: Config) -> None:
    asked = [question(name) for name in QUESTIONS]
    found: dict[str, list[Any]] = {one.name: [] for one in asked}
    for day in DAYS:
        for one, rows in zip(asked, by_job(spark, lake, [(one, one.reach.ends(day)) for one in asked]), strict=True):
            assert all(one.reach.owner(as_micros_of(row[1])) == day for row in rows)
            found[one.name] += rows
    for one in asked:
        expected = in_one_run(lake, one)
        assert expected, one.name
        assert sorted(found[one.name]) == sorted(expected), one.name


def as_micros_of(time: datetime) -> int:
    return round((time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 10**6)


@pytest.mark.usefixtures("several_tasks")
@pytest.mark.parametrize("way", [*Strategy, "Spark"])
def test_every_way_gives_the_same(spark: SparkSession, lake: Config, way: Strategy | str) -> None:
    names = ["tumbling", "several_days", "next", "contiguous"]
    names += [] if way is Strategy.PANES else ["seconds", "trailing"]
    asked = [(question(name), ALWAYS) for name in names]
    options: dict[str, Any] = {"by_spark": True} if isinstance(way, str) else {"strategy": way}
    for (one, _), rows in zip(asked, by_job(spark, lake, asked, **options), strict=True):
        assert sorted(rows) == sorted(in_one_run(lake, one)), one.name


@pytest.mark.usefixtures("several_tasks")
@pytest.mark.parametrize("engine", ["cogra", "sase"])
def test_other_engines_run_as_jobs(spark: SparkSession, lake: Config, engine: str) -> None:
    asked = [(question(name), question(name).reach.ends(DAYS[1])) for name in ("seconds", "next")]
    for (one, ends), rows in zip(asked, by_job(spark, lake, asked, engine=engine), strict=True):
        owned = [row for row in in_one_run(lake, one) if ends[0] <= as_micros_of(row[1]) < ends[1]]
        assert owned
        assert sorted(rows) == sorted(owned)


def test_through_spark_connect(connect: SparkSession, connect_url: str, lake: Config) -> None:
    config = Config(lake.lake, lake.landing, connect_url)
    one = question("tumbling")
    assert sorted(by_job(connect, config, [(one, ALWAYS)])[0]) == sorted(in_one_run(lake, one))
