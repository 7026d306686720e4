"""What silver's change feed says: events that a question reads and that came or went between two versions.

A landing day that is written again shows every row as deleted and inserted. So changes are netted by event id and
content, and content is what the question reads: times, types and the attributes that it names.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.config import Config
from pipeline.questions import Question
from pipeline.tables import silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

# What Spark and Delta say of files, and of versions, that are no longer there.
GONE = re.compile(r"FILE_NOT_EXIST|FILE_NOT_FOUND|FileNotFoundException|DELTA_(VERSION_NOT_FOUND|CANNOT_FIND_VERSION)")
MICROS, VERSION, SIGN, NET = "_micros", "_version", "_sign", "_net"


@dataclass(frozen=True)
class FileChange:
    """How many events of a landing file were added and removed; an event with other content is both."""

    file: str
    added: int
    removed: int


def content(question: Question) -> list[str]:
    """The event's id, and the columns of silver that the question reads."""
    read = {"time", *question.dataset.types, *question.query.uses, *question.query.group_by}
    return ["event_id", *(column.name for column in silver(question.dataset).columns if column.name in read)]


def changes(spark: SparkSession, config: Config, question: Question, after: int, upto: int) -> DataFrame:
    """The events that the versions after one and up to another added (`_sign` 1) or removed (−1), before netting."""
    from pyspark.sql import functions as F

    feed = spark.read.format("delta").options(readChangeFeed="true", startingVersion=after + 1, endingVersion=upto)
    is_added = F.col("_change_type").isin("insert", "update_postimage")
    return feed.load(silver(question.dataset).path(config)).select(
        "file",
        *content(question),
        F.unix_micros("time").alias(MICROS),
        F.col("_commit_version").alias(VERSION),
        F.when(is_added, 1).otherwise(-1).alias(SIGN),
    )


def netted(rows: DataFrame, question: Question, *by: str) -> DataFrame:
    """What is left of changes, by some columns more: `_net` is 1 for an event that came, −1 for one that went."""
    from pyspark.sql import functions as F

    return rows.groupBy(*by, "file", *content(question)).agg(F.sum(SIGN).alias(NET)).where(F.col(NET) != 0)


def collect_kept(versions: Iterable[int], changed: Callable[[int], DataFrame]) -> tuple[int, list[Row]]:
    """The rows of `changed(version)` for the first version since which all changes are kept, and that version.

    What VACUUM removed shows only when it is read.
    """
    known = sorted(set(versions))

    def rows(version: int) -> list[Row] | None:
        try:
            return changed(version).collect()
        except Exception as error:  # py4j's and gRPC's have no base of their own
            if not GONE.search(str(error)):
                raise
            return None

    if (found := rows(known[0])) is not None:
        return known[0], found
    first = bisect_left(known, True, lo=1, key=lambda version: rows(version) is not None)
    if first == len(known):
        return known[-1] + 1, []
    return known[first], rows(known[first]) or []
