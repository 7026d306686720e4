"""Trips with medallion and hack licence: the taxi rides of 2013 as a freedom of information request gave them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F
from pipeline.sources.formats import Field
from pipeline.sources.headed import names_of
from pipeline.sources.parsing import cells, date_time, first_wrong, number, several_events, whole, wrong_width, wrongs
from pipeline.sources.rides import cell as grid_cell
from pipeline.sources.rides import coordinates, dropoff, pickup, short_id, time_wrongs, times, trip

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class MedallionTrips:
    """CSV with a header, whose names have a space before them."""

    name = "medallion trips"
    about = "A taxi ride each row, with taxi and driver under names of their own; New York's times (FOIL, 2013)"
    fields: tuple[Field, ...] = (
        Field("medallion", "text", "the taxi's licence"),
        Field("hack_license", "text", "the driver's licence"),
        Field("vendor_id", "text", "who made the meter", required=False),
        Field("rate_code", "text", "the tariff", required=False),
        Field("store_and_fwd_flag", "text", "whether the record was sent later", required=False),
        Field("pickup_datetime", "date and time", "when the meter was switched on"),
        Field("dropoff_datetime", "date and time", "when the meter was switched off"),
        Field("passenger_count", "whole number", "as the driver put it in", minimum=0, maximum=255),
        Field("trip_time_in_secs", "whole number", "by the meter", "s", minimum=0),
        Field("trip_distance", "number", "by the meter", "miles", minimum=0, maximum=1000),
        Field("pickup_longitude", "number", "0 is unknown", "degrees", False, minimum=-180, maximum=180),
        Field("pickup_latitude", "number", "0 is unknown", "degrees", False, minimum=-90, maximum=90),
        Field("dropoff_longitude", "number", "0 is unknown", "degrees", False, minimum=-180, maximum=180),
        Field("dropoff_latitude", "number", "0 is unknown", "degrees", False, minimum=-90, maximum=90),
    )

    def recognises(self, file_name: str, lines: Sequence[str]) -> bool:
        """By the header."""
        return bool(lines) and self.is_header(lines[0])

    def is_header(self, line: str) -> bool:
        """All names in this order."""
        return names_of(line) == [field.name for field in self.fields]

    def events(self, rows: DataFrame) -> DataFrame:
        """A Pickup, a Trip and a Dropoff each."""
        text = {field.name: F.trim(F.get("cells", F.lit(column))) for column, field in enumerate(self.fields)}
        read = {"text": lambda text: text, "date and time": date_time, "whole number": whole, "number": number}
        typed = rows.withColumn("cells", cells(",")).withColumns(
            {field.name: read[field.type](text[field.name]) for field in self.fields}
        )
        timed = typed.withColumns(times(F.col("pickup_datetime"), F.col("dropoff_datetime")))
        wrong = first_wrong(
            (
                wrong_width(F.col("cells"), len(self.fields)),
                *(wrong for field in self.fields for wrong in wrongs(field, text[field.name], F.col(field.name))),
                *time_wrongs("pickup_datetime", "dropoff_datetime"),
            )
        )
        from_place = coordinates(F.col("pickup_longitude"), F.col("pickup_latitude"))
        to_place = coordinates(F.col("dropoff_longitude"), F.col("dropoff_latitude"))
        ride = short_id(F.col("medallion"), F.col("hack_license"), text["pickup_datetime"])
        rides = timed.withColumn("reason", wrong).withColumns(
            {
                "ride": ride,
                "driver": F.col("hack_license"),
                "rider": F.concat(F.lit("rider-"), ride),
                "district": grid_cell(*from_place),
                "fare": F.lit(None).cast("double"),
                "passengers": F.col("passenger_count"),
                "distance": F.col("trip_distance"),
                **dict(zip(("pickup_longitude", "pickup_latitude"), from_place, strict=True)),
                **dict(zip(("dropoff_longitude", "dropoff_latitude"), to_place, strict=True)),
            }
        )
        derivations = {"ride": F.lit(True), "rider": F.lit(True), "district": F.col("district").isNotNull()}
        return several_events(rides, F.array(pickup(derivations), trip(derivations), dropoff(derivations)))


MEDALLION_TRIPS = MedallionTrips()
