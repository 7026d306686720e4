"""A taxi ride becomes its Pickup, its Trip and its Dropoff, whichever format told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline.sources import spark_functions as F
from pipeline.sources.local_time import in_utc, not_before
from pipeline.sources.parsing import Wrong, derived

if TYPE_CHECKING:
    from pyspark.sql import Column

ZONE = "America/New_York"
EARTH_RADIUS = 3958.76  # miles

# The columns of an event of the taxi dataset, in order.
EVENT = (
    *("time", "ambiguous_time", "derived", "type", "ride", "driver", "rider", "medallion", "district", "speed"),
    *("fare", "passengers", "longitude", "latitude", "distance"),
)


def coordinates(longitude: Column, latitude: Column) -> tuple[Column, Column]:
    """A place, or nulls where the receiver had none, and then says 0, or where there is no such place."""
    known = (longitude != 0) & (latitude != 0) & longitude.between(-180, 180) & latitude.between(-90, 90)
    return F.when(known, longitude), F.when(known, latitude)


def cell(longitude: Column, latitude: Column) -> Column:
    """The district of a place for which only coordinates are known: its cell of 0.01 by 0.01 degrees."""
    south, west = (F.floor(degrees * 100).cast("int") / 100 for degrees in (latitude, longitude))
    return F.when(latitude.isNotNull() & longitude.isNotNull(), F.format_string("cell %.2f %.2f", south, west))


def miles(longitude: Column, latitude: Column, to_longitude: Column, to_latitude: Column) -> Column:
    """The distance as the crow flies (haversine)."""
    across = F.sin(F.radians(to_longitude - longitude) / 2)
    along = F.sin(F.radians(to_latitude - latitude) / 2)
    chord = along * along + F.cos(F.radians(latitude)) * F.cos(F.radians(to_latitude)) * across * across
    return 2 * EARTH_RADIUS * F.asin(F.sqrt(F.when(chord > 1, 1.0).otherwise(chord)))


def short_id(*parts: Column) -> Column:
    """A name for what a source does not name: the same for the same parts."""
    return F.left(F.md5(F.concat_ws("\x1f", *parts).cast("binary")), F.lit(16))


def times(pickup_clock: Column, dropoff_clock: Column) -> dict[str, Column]:
    """When a ride began and ended. A Dropoff's time that came twice is the first one after the Pickup."""
    pickup, dropoff = in_utc(pickup_clock, ZONE), in_utc(dropoff_clock, ZONE)
    end = not_before(pickup.first, dropoff)
    return {
        "pickup": pickup.first,
        "pickup_ambiguous": pickup.second.isNotNull(),
        "dropoff": end,
        # The second of the two is no guess: the first would have been before the Pickup.
        "dropoff_ambiguous": dropoff.second.isNotNull() & (end < dropoff.second),
    }


def time_wrongs(pickup_name: str, dropoff_name: str) -> tuple[Wrong, ...]:
    """What can be wrong with the `times` of a ride, whose fields have these names."""
    return (
        (F.col("dropoff").isNull(), f"{dropoff_name}: no such time in New York"),
        (F.col("pickup").isNull(), f"{pickup_name}: no such time in New York"),
        (F.col("dropoff") < F.col("pickup"), "dropoff before pickup"),
    )


def pickup(derivations: Mapping[str, Column]) -> Column:
    """The event at a ride's start; `derivations` has the conditions on which columns are derived."""
    return _event(
        "Pickup",
        derivations,
        time=F.col("pickup"),
        ambiguous_time=F.col("pickup_ambiguous"),
        longitude=F.col("pickup_longitude"),
        latitude=F.col("pickup_latitude"),
    )


def trip(derivations: Mapping[str, Column]) -> Column:
    """The event at the middle of a ride, with its mean speed."""
    start, end = F.unix_micros("pickup"), F.unix_micros("dropoff")
    middle = F.timestamp_micros(start + F.floor((end - start) / 2).cast("bigint"))
    speed = F.col("distance") / F.nullif((end - start) / 3.6e9, F.lit(0.0))
    return _event(
        "Trip",
        {"time": F.lit(True), **derivations, "speed": speed.isNotNull()},
        time=middle,
        ambiguous_time=F.col("pickup_ambiguous") | F.col("dropoff_ambiguous"),
        speed=speed,
        distance=F.col("distance"),
    )


def dropoff(derivations: Mapping[str, Column]) -> Column:
    """The event at a ride's end."""
    return _event(
        "Dropoff",
        derivations,
        time=F.col("dropoff"),
        ambiguous_time=F.col("dropoff_ambiguous"),
        fare=F.col("fare"),
        longitude=F.col("dropoff_longitude"),
        latitude=F.col("dropoff_latitude"),
        distance=F.col("distance"),
    )


def _event(type: str, derivations: Mapping[str, Column], **own: Column) -> Column:
    of_ride = {name: F.col(name) for name in ("ride", "driver", "rider", "medallion", "district", "passengers")}
    values = {"type": F.lit(type), **of_ride, **own}
    values["derived"] = derived(*(F.when(derivations[name], name) for name in derivations if name in values))
    nothing = F.lit(None).cast("double")
    return F.struct(*(values.get(name, nothing).alias(name) for name in EVENT))
