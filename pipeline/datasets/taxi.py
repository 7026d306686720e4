"""Taxi: pickups, trips and dropoffs in New York."""

from __future__ import annotations

from datetime import date

from pipeline.datasets.declaration import EVERY_DAY, Column, Dataset
from pipeline.sources.medallion_trips import MEDALLION_TRIPS
from pipeline.sources.ride_events import RIDE_EVENTS
from pipeline.sources.tlc_trips import TLC_TRIPS

TAXI = Dataset(
    name="taxi",
    about="Rides of New York's taxis: a Pickup, a Trip at the middle of the ride, and a Dropoff",
    formats=(RIDE_EVENTS, TLC_TRIPS, MEDALLION_TRIPS),
    columns=(
        Column("type", "string", "what happened", required=True, values=("Pickup", "Trip", "Dropoff")),
        Column("ride", "string", "which ride it is part of", required=True),
        Column("driver", "string", "who drove; made from the ride where the source does not say", True, sensitive=True),
        Column("rider", "string", "who rode; made from the ride", required=True, sensitive=True),
        Column("medallion", "string", "the taxi's licence", sensitive=True),
        Column("district", "string", "where the ride began: a taxi zone, or a cell of 0.01 by 0.01 degrees"),
        Column("speed", "double", "miles an hour over the whole ride; of a Trip", minimum=0),
        Column("fare", "double", "dollars, without tip and extras; of a Dropoff", minimum=0),
        Column("passengers", "int", "how many rode, as the driver put it in", minimum=0),
        Column("longitude", "double", "degrees east; of a Pickup or a Dropoff", minimum=-180, maximum=180),
        Column("latitude", "double", "degrees north; of a Pickup or a Dropoff", minimum=-90, maximum=90),
        Column("distance", "double", "miles of the whole ride; of a Trip or a Dropoff", minimum=0),
    ),
    types=("type",),
    keys=("ride", "type"),
    zone="America/New_York",
    calendar=EVERY_DAY,
    first_day=date(2013, 1, 1),
    expected_by=30,
    lag=31,  # trip records are published a month at a time
    retention=30,
)
