"""Gold as notebooks and SQL read it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from pipeline.approximate import Approximate
from pipeline.config import Config
from pipeline.errors import TrendsError
from pipeline.publish import gold
from pipeline.publish.read import read_gold, register_views
from tests.publish.samples import BY_SECTOR, MONDAY, TUESDAY, answers, made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZES = {(0, "B"): 2**70, (0, "A"): 5, (10, "A"): 10**38, (20, "A"): 2**65000, (30, "A"): 0}


def test_numbers_of_any_size(spark: SparkSession, config: Config) -> None:
    gold.prepare(spark, config, [BY_SECTOR])
    with pytest.raises(TrendsError, match=r"gold\.other: there is no such table in"):
        read_gold("other", config.lake)
    assert len(read_gold("trends-by-sector", config.lake)) == 0
    rounded = answers(spark, {(40, "A"): 1, (50, "A"): 2}).selectExpr(
        "window_start", "window_end", "sector", "if(count = '1', '2.0035e19728', '3.0000e21') AS count",
        "CAST(1 AS DOUBLE) AS count_log10", "mean", "false AS exact",
    )  # fmt: skip
    sized = answers(spark, SIZES)
    gold.publish(spark, config, BY_SECTOR, MONDAY, sized.unionByName(rounded), made("one", 1))
    gold.publish(spark, config, BY_SECTOR, TUESDAY, answers(spark, {(0, "A"): 7}, TUESDAY), made("one", 1))
    gold.publish(spark, config, BY_SECTOR, TUESDAY, answers(spark, {(0, "A"): 8}, TUESDAY), made("two", 2))

    frame = read_gold("queries/stock/trends-by-sector.query", config.lake)
    assert [*frame["count"][:5]] == [5, 2**70, 10**38, 2**65000, 0]
    assert str(frame["count"][5]) == "2.0035e19728"
    assert isinstance(frame["count"][6], Approximate)
    ordered = frame[frame["interval_date"] == MONDAY].sort_values("count")["window_start"]
    assert [time.minute for time in ordered] == [30, 0, 0, 50, 10, 20, 40]
    assert frame["window_start"][0] == datetime(2030, 1, 7, tzinfo=UTC)
    assert str(2**65000) in str(frame["count"].to_dict())
    assert frame["count"].iloc[-1] == 8
    assert read_gold("gold.trends_by_sector", config.lake, version=2)["count"].iloc[-1] == 7
    every = read_gold("trends_by_sector", config.lake, history=True)
    assert [*every[every["interval_date"] == TUESDAY][["count", "revision"]].itertuples(index=False)] == [
        (7, 1),
        (8, 2),
    ]

    register_views(spark, config, [BY_SECTOR])
    found = spark.sql(
        f"SELECT count_number FROM gold_trends_by_sector WHERE interval_date = '{MONDAY}' ORDER BY window_start, sector"
    ).collect()
    assert [row[0] for row in found] == [5, 2**70, None, None, 0, None, None]


def test_a_lake_elsewhere_is_said() -> None:
    with pytest.raises(TrendsError, match=r"hdfs://names/lake can be read with Spark alone\nhint: "):
        read_gold("q", "hdfs://names/lake")
