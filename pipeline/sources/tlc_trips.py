"""TLC trip records: a taxi ride each row, as New York's Taxi and Limousine Commission publishes them since 2009."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F
from pipeline.sources.formats import Field
from pipeline.sources.headed import find, header_of, names_of, texts
from pipeline.sources.parsing import date_time, first_wrong, number, quoted_cells, several_events, wrongs
from pipeline.sources.rides import cell, coordinates, dropoff, pickup, short_id, time_wrongs, times, trip

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PATTERN = "yyyy-MM-dd HH:mm:ss[.SSSSSS]"  # the fraction is what Arrow writes of Parquet's times
UNKNOWN_ZONE = 264

# What each field was called: now, in the sample sets of other projects, until 2016, and in 2009.
NAMES = {
    "pickup_datetime": ("pickup_datetime", "tpep_pickup_datetime", "lpep_pickup_datetime", "trip_pickup_datetime"),
    "dropoff_datetime": ("dropoff_datetime", "tpep_dropoff_datetime", "lpep_dropoff_datetime", "trip_dropoff_datetime"),
    "passenger_count": ("passenger_count",),
    "trip_distance": ("trip_distance",),
    "pickup_location_id": ("pickup_location_id", "pulocationid"),
    "pickup_longitude": ("pickup_longitude", "start_lon"),
    "pickup_latitude": ("pickup_latitude", "start_lat"),
    "dropoff_longitude": ("dropoff_longitude", "end_lon"),
    "dropoff_latitude": ("dropoff_latitude", "end_lat"),
    "fare_amount": ("fare_amount", "fare_amt"),
}


class TlcTrips:
    """CSV or Parquet with a header; which columns there are, and under which names, changed over the years."""

    name = "TLC trips"
    about = (
        "A taxi ride each row, in no order; New York's times. Places are zones since the middle of 2016, coordinates "
        "before. No row says who drove or rode. Columns that are not listed are kept as they came, in bronze alone"
    )
    fields: tuple[Field, ...] = (
        Field("pickup_datetime", "date and time", "when the meter was switched on"),
        Field("dropoff_datetime", "date and time", "when the meter was switched off"),
        Field("passenger_count", "whole number", "as the driver put it in", required=False, minimum=0, maximum=255),
        Field("trip_distance", "number", "by the meter", "miles", minimum=0, maximum=1000),
        Field(
            "pickup_location_id", "whole number", "taxi zone; 264 is unknown", required=False, minimum=1, maximum=265
        ),
        Field("pickup_longitude", "number", "0 is unknown", "degrees", required=False, minimum=-180, maximum=180),
        Field("pickup_latitude", "number", "0 is unknown", "degrees", required=False, minimum=-90, maximum=90),
        Field("dropoff_longitude", "number", "0 is unknown", "degrees", required=False, minimum=-180, maximum=180),
        Field("dropoff_latitude", "number", "0 is unknown", "degrees", required=False, minimum=-90, maximum=90),
        # A refund repeats the trip with its amounts below zero: as a trip it would count twice.
        Field("fare_amount", "number", "by the meter, without tip, tolls and extras", "$", minimum=0, maximum=10_000),
    )

    def recognises(self, file_name: str, lines: Sequence[str]) -> bool:
        """By the names in the header; those of trips with medallions are another format."""
        if not lines:
            return False
        names = names_of(lines[0])
        found = find(names, NAMES)
        needed = ("pickup_datetime", "dropoff_datetime", "trip_distance", "fare_amount")
        return all(name in found for name in needed) and "medallion" not in names

    def is_header(self, line: str) -> bool:
        """The first line always is."""
        return True

    def events(self, rows: DataFrame) -> DataFrame:
        """A Pickup, a Trip and a Dropoff each."""
        names = names_of(header_of(rows))
        text = texts(find(names, NAMES))
        read: dict[str, Callable[[Column], Column]] = {
            "date and time": lambda text: date_time(text, PATTERN),
            "number": number,
            "whole number": number,
        }
        nothing = F.lit(None).cast("double")
        typed = rows.withColumn("cells", quoted_cells()).withColumns(
            {field.name: read[field.type](text[field.name]) if field.name in text else nothing for field in self.fields}
        )
        # Some months' rows end in commas that the header does not have.
        more = F.exists(F.slice("cells", len(names) + 1, F.size("cells")), lambda extra: extra != "")
        part = [F.col(name) % 1 != 0 for name in ("passenger_count", "pickup_location_id")]
        wrong = first_wrong(
            (
                ((F.size("cells") < len(names)) | more, "wrong number of columns"),
                *(
                    wrong
                    for field in self.fields
                    if field.name in text
                    for wrong in wrongs(field, text[field.name], F.col(field.name))
                ),
                (part[0], "passenger_count: not a whole number"),
                (part[1], "pickup_location_id: not a whole number"),
                *time_wrongs("pickup_datetime", "dropoff_datetime"),
            )
        )
        timed = typed.withColumns(times(F.col("pickup_datetime"), F.col("dropoff_datetime")))
        from_place = coordinates(F.col("pickup_longitude"), F.col("pickup_latitude"))
        to_place = coordinates(F.col("dropoff_longitude"), F.col("dropoff_latitude"))
        zone = F.col("pickup_location_id").try_cast("int")
        in_zone = F.concat(F.lit("zone "), F.when(zone != UNKNOWN_ZONE, zone.cast("string")))
        ride = short_id(F.col("raw"))
        rides = timed.withColumn("reason", wrong).withColumns(
            {
                "ride": ride,
                "driver": F.concat(F.lit("driver-"), ride),
                "rider": F.concat(F.lit("rider-"), ride),
                "medallion": F.lit(None).cast("string"),
                "district": F.coalesce(in_zone, cell(*from_place)),
                "fare": F.col("fare_amount"),
                "passengers": F.col("passenger_count").try_cast("int"),
                "distance": F.col("trip_distance"),
                **dict(zip(("pickup_longitude", "pickup_latitude"), from_place, strict=True)),
                **dict(zip(("dropoff_longitude", "dropoff_latitude"), to_place, strict=True)),
            }
        )
        sure = F.lit(True)
        in_cell = F.col("district").startswith("cell")
        derivations = {"ride": sure, "driver": sure, "rider": sure, "district": in_cell}
        return several_events(rides, F.array(pickup(derivations), trip(derivations), dropoff(derivations)))


TLC_TRIPS = TlcTrips()
