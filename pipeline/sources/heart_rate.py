"""Heart-rate CSV: people of a stress study, a row a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F
from pipeline.sources.formats import Field
from pipeline.sources.parsing import cells, derived, first_wrong, number, one_event, whole, wrong_width, wrongs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEADER = "Participant,HR,respr,Time(sec),Label"

PARTICIPANT = Field("Participant", "whole number", "who, a number", minimum=0)
RATE = Field("HR", "number", "heart rate, empty where not measured", "beats/min", False, minimum=20, maximum=250)
BREATHS = Field(
    "respr", "number", "respiration, empty where not measured", "breaths/min", False, minimum=0, maximum=100
)
TIME = Field("Time(sec)", "whole number", "since 1970, UTC", "s", minimum=0, maximum=4_102_444_800)
LABEL = Field("Label", "text", "1 under stress, 0 before and after", values=("0", "1"))


class HeartRate:
    """`Participant,HR,respr,Time(sec),Label`; in the order of time within a participant only."""

    name = "heart rate"
    about = (
        "A participant's heart rate of one second each row (Stress-Predict); all sat, so the type passive is derived"
    )
    fields: tuple[Field, ...] = (PARTICIPANT, RATE, BREATHS, TIME, LABEL)

    def recognises(self, file_name: str, lines: Sequence[str]) -> bool:
        """By the header."""
        return bool(lines) and self.is_header(lines[0])

    def is_header(self, line: str) -> bool:
        """The names as published."""
        return line == HEADER

    def events(self, rows: DataFrame) -> DataFrame:
        """A second each."""
        cell = [F.get("cells", F.lit(column)) for column in range(len(self.fields))]
        typed = rows.withColumn("cells", cells(",")).withColumns(
            {
                "participant": whole(cell[0]),
                "rate": number(cell[1]),
                "respiration": number(cell[2]),
                "seconds": whole(cell[3], "bigint"),
            }
        )
        reason = first_wrong(
            (
                wrong_width(F.col("cells"), len(self.fields)),
                *wrongs(PARTICIPANT, cell[0], F.col("participant")),
                *wrongs(RATE, cell[1], F.col("rate")),
                *wrongs(BREATHS, cell[2], F.col("respiration")),
                *wrongs(TIME, cell[3], F.col("seconds")),
                *wrongs(LABEL, cell[4], cell[4]),
            )
        )
        stress = cell[4] == "1"
        return one_event(
            typed.withColumn("reason", reason),
            time=F.timestamp_seconds("seconds"),
            ambiguous_time=F.lit(False),
            derived=derived("type"),
            type=F.lit("passive"),
            activity=F.when(stress, "stress task").otherwise("baseline"),
            patient=F.concat(F.lit("participant"), F.col("participant").cast("string")),
            rate=F.col("rate"),
            respiration=F.col("respiration"),
            stress=stress,
        )


HEART_RATE = HeartRate()
