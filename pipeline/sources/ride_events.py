"""Ride events: the start and the end of a taxi ride as rows of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F
from pipeline.sources.formats import Field, mostly
from pipeline.sources.parsing import cells, date_time, first_wrong, number, several_events, whole, wrong_width, wrongs
from pipeline.sources.rides import cell as grid_cell
from pipeline.sources.rides import coordinates, dropoff, miles, pickup, time_wrongs, times, trip

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RideEvents:
    """`rideId,START|END,eventTime,otherTime,startLon,startLat,endLon,endLat,passengers,taxiId,driverId`.

    The first time is the event's own. Of an END, the other is that of the START; of a START it is 1970-01-01, since
    the end is not known yet. Both rows have both places, so that all events of a ride lie in one district.
    """

    name = "ride events"
    about = (
        "A START or an END of a taxi ride each row, in the order of time (Flink's training data, from TLC's of 2013)"
    )
    fields: tuple[Field, ...] = (
        Field("rideId", "whole number", "the ride, the same in its START and END", minimum=0),
        Field("event", "text", "which of the two it is", values=("START", "END")),
        Field("eventTime", "date and time", "when it happened, New York's time"),
        Field("otherTime", "date and time", "of an END: when the ride started"),
        Field("startLon", "number", "where the ride starts; 0 is unknown", "degrees", minimum=-180, maximum=180),
        Field("startLat", "number", "where the ride starts; 0 is unknown", "degrees", minimum=-90, maximum=90),
        Field("endLon", "number", "where the ride ends; 0 is unknown", "degrees", minimum=-180, maximum=180),
        Field("endLat", "number", "where the ride ends; 0 is unknown", "degrees", minimum=-90, maximum=90),
        Field("passengers", "whole number", "how many ride", minimum=0),
        Field("taxiId", "text", "the taxi's licence"),
        Field("driverId", "text", "the driver's licence"),
    )

    def recognises(self, file_name: str, lines: Sequence[str]) -> bool:
        """By START or END in the second of eleven columns."""
        return mostly(lines, re.compile(r"[^,]*,(START|END)(,[^,]*){9}").fullmatch)

    def is_header(self, line: str) -> bool:
        """These files have none."""
        return False

    def events(self, rows: DataFrame) -> DataFrame:
        """A START is a Pickup; an END is a Trip and a Dropoff."""
        cell = [F.get("cells", F.lit(column)) for column in range(len(self.fields))]
        start = F.col("event") == "START"
        typed = rows.withColumn("cells", cells(",")).withColumns(
            {
                "rideId": whole(cell[0], "bigint"),
                "event": cell[1],
                "eventTime": date_time(cell[2]),
                "otherTime": date_time(cell[3]),
                **{self.fields[column].name: number(cell[column]) for column in range(4, 8)},
                "passengers": whole(cell[8]),
                "taxiId": cell[9],
                "driverId": cell[10],
            }
        )
        # A START is as yet a ride of no length: what is wrong with its time is said of eventTime.
        timed = typed.withColumns(
            times(F.when(start, F.col("eventTime")).otherwise(F.col("otherTime")), F.col("eventTime"))
        )
        wrong = first_wrong(
            (
                wrong_width(F.col("cells"), len(self.fields)),
                *(
                    wrong
                    for text, field in zip(cell, self.fields, strict=True)
                    for wrong in wrongs(field, text, F.col(field.name))
                ),
                *time_wrongs("otherTime", "eventTime"),
            )
        )
        from_place = coordinates(F.col("startLon"), F.col("startLat"))
        to_place = coordinates(F.col("endLon"), F.col("endLat"))
        rides = timed.withColumn("reason", wrong).withColumns(
            {
                "ride": F.col("rideId").cast("string"),
                "driver": F.col("driverId"),
                "rider": F.concat(F.lit("rider-"), F.col("rideId").cast("string")),
                "medallion": F.col("taxiId"),
                "district": grid_cell(*from_place),
                "fare": F.lit(None).cast("double"),
                "distance": miles(*from_place, *to_place),
                **dict(zip(("pickup_longitude", "pickup_latitude"), from_place, strict=True)),
                **dict(zip(("dropoff_longitude", "dropoff_latitude"), to_place, strict=True)),
            }
        )
        derivations = {
            "rider": F.lit(True),
            "district": F.col("district").isNotNull(),
            "distance": F.col("distance").isNotNull(),
        }
        return several_events(
            rides,
            F.when(start, F.array(pickup(derivations))).otherwise(F.array(trip(derivations), dropoff(derivations))),
        )


RIDE_EVENTS = RideEvents()
