"""PAMAP2: people with motion sensors and a heart-rate monitor, a hundred rows a second."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F
from pipeline.sources.formats import Field, base_name, mostly
from pipeline.sources.parsing import cells, derived, first_wrong, number, one_event, whole, wrong_width, wrongs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WIDTH = 54
FILE_NAME = re.compile(r"subject[0-9]+\.dat\b.*")
ACTIVITIES = {
    0: "transient",
    1: "lying",
    2: "sitting",
    3: "standing",
    4: "walking",
    5: "running",
    6: "cycling",
    7: "Nordic walking",
    9: "watching TV",
    10: "computer work",
    11: "car driving",
    12: "ascending stairs",
    13: "descending stairs",
    16: "vacuum cleaning",
    17: "ironing",
    18: "folding laundry",
    19: "house cleaning",
    20: "playing soccer",
    24: "rope jumping",
}
TRANSIENT = 0
PASSIVE = (1, 2, 3, 9, 10, 11)

TIME = Field("timestamp", "number", "since the recording began", "s", minimum=0, maximum=86_400)
ACTIVITY = Field("activityID", "whole number", "what the person is doing; 0 between two activities")
RATE = Field("heart rate", "number", "NaN between two measurements", "beats/min", minimum=20, maximum=250)


class Pamap2:
    """54 columns between spaces, no header; the file is `subject<number>.dat`."""

    name = "PAMAP2"
    about = (
        "A reading of one person's sensors each row, at 100 Hz (heart rate about 9 Hz). The 51 columns of the motion "
        "sensors are kept in bronze alone. The time is counted from the start of the landing day, and so derived"
    )
    fields: tuple[Field, ...] = (TIME, ACTIVITY, RATE)

    def recognises(self, file_name: str, lines: Sequence[str]) -> bool:
        """By the name, without which a row has no person, and by 54 columns."""
        named = bool(FILE_NAME.fullmatch(base_name(file_name)))
        return named and mostly(lines, lambda line: line.count(" ") == WIDTH - 1)

    def is_header(self, line: str) -> bool:
        """These files have none."""
        return False

    def events(self, rows: DataFrame) -> DataFrame:
        """A reading each, whether it has a heart rate or not."""
        cell = [F.get("cells", F.lit(column)) for column in range(len(self.fields))]
        rate = F.when(cell[2] == "NaN", "").otherwise(cell[2])
        typed = rows.withColumn("cells", cells(" ")).withColumns(
            {"seconds": number(cell[0]), "id": whole(cell[1]), "rate_text": rate, "rate": number(rate)}
        )
        reason = first_wrong(
            (
                wrong_width(F.col("cells"), WIDTH),
                *wrongs(TIME, cell[0], F.col("seconds")),
                *wrongs(ACTIVITY, cell[1], F.col("id")),
                (~F.col("id").isin(*ACTIVITIES), "activityID: not a known activity"),
                (cell[2] == "", "heart rate: missing"),
                *wrongs(RATE, F.nullif("rate_text", F.lit("")), F.col("rate")),
            )
        )
        midnight = F.unix_date("landing_date").cast("bigint") * 86_400_000_000
        activity = F.when(F.col("id") == TRANSIENT, ACTIVITIES[TRANSIENT])
        for number_, name in ACTIVITIES.items():
            activity = activity.when(F.col("id") == number_, name)
        transient = F.col("id") == TRANSIENT
        subject = F.regexp_extract("file", r"(subject[0-9]+)\.dat[^/!]*$", 1)
        return one_event(
            typed.withColumn("reason", reason),
            time=F.timestamp_micros(midnight + F.round(F.col("seconds") * 1e6).cast("bigint")),
            ambiguous_time=F.lit(False),
            derived=derived("time", F.when(transient, "type")),
            type=F.when(F.col("id").isin(*PASSIVE), "passive").otherwise("active"),
            activity=activity,
            patient=subject,
            rate=F.col("rate"),
            respiration=F.lit(None).cast("double"),
            stress=F.lit(None).cast("boolean"),
        )


PAMAP2 = Pamap2()
