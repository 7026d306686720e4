"""Generated taxi rides, as ride events, as TLC's trip records in CSV and Parquet, and with medallions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.events import Array
from pipeline.sources.generator.files import Fault, Writer, as_text, choose, generator, parts

ZONE = "America/New_York"
RIDES_A_DRIVER = 8
TLC_HEADER = (
    b"VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,RatecodeID,store_and_fwd_flag,"
    b"PULocationID,DOLocationID,payment_type,fare_amount,extra,mta_tax,tip_amount,tolls_amount,improvement_surcharge,"
    b"total_amount,congestion_surcharge\n"
)
MEDALLION_HEADER = (
    b"medallion, hack_license, vendor_id, rate_code, store_and_fwd_flag, pickup_datetime, dropoff_datetime, "
    b"passenger_count, trip_time_in_secs, trip_distance, pickup_longitude, pickup_latitude, dropoff_longitude, "
    b"dropoff_latitude\n"
)

RIDE_FAULTS = (
    Fault("rideId", b"", "rideId: missing"),
    Fault("rideId", b"12a", "rideId: not a whole number"),
    Fault("event", b"PAUSE", "event: not one of its known values"),
    Fault("eventTime", b"2030-02-30 10:00:00", "eventTime: not a date and time"),
    Fault("eventTime", b"2030-03-10 02:30:00", "eventTime: no such time in New York"),
    Fault("startLon", b"-733.9", "startLon: out of range"),
    Fault("startLat", b"404.97812", "startLat: out of range"),
    Fault("endLon", b"west", "endLon: not a number"),
    Fault("endLat", b"Infinity", "endLat: not a number"),
    Fault("passengers", b"-1", "passengers: out of range"),
    Fault("driverId", b"", "driverId: missing"),
    Fault("driverId", b"7,8", "wrong number of columns"),
    Fault("driverId", b"\xc3\x28", "is not text in UTF-8"),
)
TLC_FAULTS = (
    Fault("pickup_datetime", b"", "pickup_datetime: missing"),
    Fault("pickup_datetime", b"15/01/2030 10:00", "pickup_datetime: not a date and time"),
    Fault("pickup_datetime", b"2030-03-10 02:15:00", "pickup_datetime: no such time in New York"),
    Fault("dropoff_datetime", b"2001-01-01 00:00:00", "dropoff before pickup"),
    Fault("passenger_count", b"1.5", "passenger_count: not a whole number"),
    Fault("trip_distance", b"-2.1", "trip_distance: out of range"),
    Fault("trip_distance", b"1d", "trip_distance: not a number"),
    Fault("pickup_location_id", b"900", "pickup_location_id: out of range"),
    Fault("fare_amount", b"-52.0", "fare_amount: out of range"),
    Fault("fare_amount", b"", "fare_amount: missing"),
    Fault("congestion_surcharge", b"0.0,1", "wrong number of columns"),
)
MEDALLION_FAULTS = (
    Fault("medallion", b"", "medallion: missing"),
    Fault("hack_license", b"", "hack_license: missing"),
    Fault("pickup_datetime", b"soon", "pickup_datetime: not a date and time"),
    Fault("dropoff_datetime", b"2001-01-01 00:00:00", "dropoff before pickup"),
    Fault("dropoff_datetime", b"2030-03-10 02:59:59", "dropoff_datetime: no such time in New York"),
    Fault("passenger_count", b"999", "passenger_count: out of range"),
    Fault("trip_time_in_secs", b"-10", "trip_time_in_secs: out of range"),
    Fault("pickup_longitude", b"0x1p3", "pickup_longitude: not a number"),
    Fault("dropoff_latitude", b"91", "dropoff_latitude: out of range"),
    Fault("dropoff_latitude", b"40.7,0", "wrong number of columns"),
)


@dataclass(frozen=True)
class _Rides:
    """Some rides of a day."""

    pickup: Array  # seconds since 1970, UTC
    dropoff: Array
    distance: Array  # miles
    driver: Array
    passengers: Array
    places: Array  # longitude and latitude of pickup and dropoff, a row each

    def __len__(self) -> int:
        return len(self.pickup)


def write_day(writer: Writer, seed: int, day: date, rows: int, late_day: date) -> None:
    """The files that land on a day; some rides of the ride events are of an earlier day."""
    late = round(rows * writer.shares.late) // 2 * 2
    events, records, table, medallions = parts(rows - late, (6, 2, 1, 1))
    _write_ride_events(writer, seed, day, day, events // 2)
    _write_tlc(writer, seed, day, records + events % 2)
    _write_parquet(writer, seed, day, table)
    _write_medallions(writer, seed, day, medallions)
    if late:
        _write_ride_events(writer, seed, day, late_day, late // 2)


def _rides(random: np.random.Generator, day: date, count: int) -> _Rides:
    midnight = datetime.combine(day, time(), ZoneInfo(ZONE))
    # The last ride ends before the day does, so that a file holds whole rides.
    length = (midnight + timedelta(days=1)).timestamp() - midnight.timestamp() - 7200
    pickup = int(midnight.timestamp()) + np.sort(random.random(count) ** 0.8 * length).astype(np.int64)
    seconds = np.clip(random.lognormal(6.5, 0.6, count), 30, 7000).astype(np.int64)
    miles = np.round(seconds / 3600 * random.uniform(6, 25, count), 2)
    # Few places have most of the rides; every fiftieth receiver has no position.
    places = np.array([[-73.98], [40.75], [-73.97], [40.76]]) + random.normal(0, 0.02, (4, count))
    places[:, random.random(count) < 0.02] = 0.0
    # In turn, so that hardly a driver has a ride before the last one ended.
    drivers = np.arange(count) % max(1, count // RIDES_A_DRIVER)
    return _Rides(pickup, pickup + seconds, miles, drivers, random.integers(1, 7, count), np.round(places, 6))


def _clock(seconds: Array) -> Any:
    """New York's clock at these times."""
    return pc.local_timestamp(pa.array(seconds, pa.timestamp("s")).cast(pa.timestamp("s", ZONE)))


def _write_ride_events(writer: Writer, seed: int, landing_day: date, day: date, count: int) -> None:
    late = day != landing_day
    random = generator(seed, landing_day, "late ride events" if late else "ride events")
    rides = _rides(random, day, count)
    number = landing_day.toordinal() * 10_000_000 + np.arange(count) + (5_000_000 if late else 0)
    times = np.concatenate([rides.pickup, rides.dropoff])
    order = np.argsort(times, kind="stable")
    ride, ends = order % max(count, 1), order >= count
    other = np.where(ends, rides.pickup[ride], 0)
    nothing = pa.scalar(datetime(1970, 1, 1), pa.timestamp("s"))
    columns = {
        "rideId": number[ride],
        "event": pa.array(["START", "END"]).take(pa.array(ends.astype(np.int8))),
        "eventTime": _clock(times[order]),
        "otherTime": pc.if_else(pa.array(ends), _clock(other), nothing),
        **{name: rides.places[row][ride] for row, name in enumerate(("startLon", "startLat", "endLon", "endLat"))},
        "passengers": rides.passengers[ride],
        "taxiId": rides.driver[ride] // 2 + 2_013_000_000,
        "driverId": rides.driver[ride] + 2_013_000_000,
    }
    with writer.gzipped(f"ride_events_{day}{'_late' if late else ''}.csv.gz") as file:
        file.write(writer.text(random, columns, ",", RIDE_FAULTS, repeats=True, late=late))


def _trip_columns(random: np.random.Generator, rides: _Rides) -> dict[str, Any]:
    """The columns of a trip record, by TLC's later names."""
    count = len(rides)
    fare = np.round(2.5 + 2.5 * rides.distance, 2)
    tip = np.round(fare * random.choice([0, 0.15, 0.2], count), 2)
    empty = random.random(count) < 0.01
    return {
        "vendor": random.integers(1, 3, count),
        "pickup_datetime": _clock(rides.pickup),
        "dropoff_datetime": _clock(rides.dropoff),
        "passenger_count": pa.array(rides.passengers, mask=empty),
        "trip_distance": rides.distance,
        "rate": np.ones(count, np.int64),
        "flag": choose(random, ("N", "Y"), count, (99, 1)),
        "pickup_location_id": random.integers(1, 266, count),
        "dropoff_location_id": random.integers(1, 266, count),
        "payment_type": random.integers(1, 3, count),
        "fare_amount": fare,
        "extra": random.choice([0, 0.5, 1], count),
        "mta_tax": np.full(count, 0.5),
        "tip_amount": tip,
        "tolls_amount": np.zeros(count),
        "improvement_surcharge": np.full(count, 0.3),
        "total_amount": np.round(fare + tip + 0.8, 2),
        "congestion_surcharge": pa.nulls(count, pa.float64()),
    }


def _write_tlc(writer: Writer, seed: int, day: date, count: int) -> None:
    random = generator(seed, day, "TLC trips")
    columns = _trip_columns(random, _rides(random, day, count))
    shuffled = pa.array(random.permutation(count))
    cells = {name: pc.fill_null(as_text(column), b"").take(shuffled) for name, column in columns.items()}
    with writer.gzipped(f"yellow_tripdata_{day}.csv.gz") as file:
        file.write(TLC_HEADER)
        file.write(writer.text(random, cells, ",", TLC_FAULTS, repeats=True))


def _write_parquet(writer: Writer, seed: int, day: date, count: int) -> None:
    random = generator(seed, day, "TLC trips in Parquet")
    columns = _trip_columns(random, _rides(random, day, count))
    names = TLC_HEADER.decode().strip().split(",")
    with writer.create(f"yellow_tripdata_{day}.parquet") as file:
        pq.write_table(pa.table([pa.array(column) for column in columns.values()], names), file)
    writer.rows(count)


def _write_medallions(writer: Writer, seed: int, day: date, count: int) -> None:
    random = generator(seed, day, "medallion trips")
    rides = _rides(random, day, count)
    names = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
    codes = pa.array([f"{random.integers(0, 2**63):032X}" for _ in range(max(1, count // RIDES_A_DRIVER))])
    driver = codes.take(pa.array(rides.driver))
    columns = {
        "medallion": pc.utf8_reverse(driver),
        "hack_license": driver,
        "vendor": choose(random, ("CMT", "VTS"), count),
        "rate": np.ones(count, np.int64),
        "flag": choose(random, ("N", ""), count),
        "pickup_datetime": _clock(rides.pickup),
        "dropoff_datetime": _clock(rides.dropoff),
        "passenger_count": rides.passengers,
        "trip_time_in_secs": rides.dropoff - rides.pickup,
        "trip_distance": rides.distance,
        **{name: rides.places[row] for row, name in enumerate(names)},
    }
    with writer.gzipped(f"trip_data_{day}.csv.gz") as file:
        file.write(MEDALLION_HEADER)
        file.write(writer.text(random, columns, ",", MEDALLION_FAULTS, repeats=True))
