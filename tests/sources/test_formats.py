"""The events of each raw format, from rows as their publishers write them."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

from pipeline.datasets.activity import ACTIVITY
from pipeline.datasets.stock import STOCK
from pipeline.datasets.taxi import TAXI
from pipeline.sources.formats import detect
from tests.sources.bronze import bronze, events, from_text


def values(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of the events; of a bad row its reason alone."""
    return [tuple(row[name] for name in names) if row["reason"] is None else (row["reason"],) for row in rows]


def test_trade_ticks(spark: SparkSession, tmp_path: Path) -> None:
    text = "14400688,491800,300,P,2000,0\n14400688,491800,300,P,2000,0\n34200000,490050,1,Q,20002020,1"
    rows = from_text(spark, tmp_path, "aig_20131007_trade.csv", text, STOCK)
    names = ("time", "company", "sector", "price", "volume", "exchange", "condition", "suspicious", "derived")
    first = (datetime(2013, 10, 7, 8, 0, 0, 688_000), "AIG", "Finance", 49.18, 300, "P", "2000", False, None)
    assert values(rows, *names) == [
        first,
        first,
        (datetime(2013, 10, 7, 13, 30), "AIG", "Finance", 49.005, 1, "Q", "20002020", True, None),
    ]
    assert values(rows, "copy", "part", "open", "high", "low", "ambiguous_time")[1] == (1, 0, None, None, None, False)


def test_trade_ticks_of_a_company_that_the_table_lacks(spark: SparkSession, tmp_path: Path) -> None:
    rows = from_text(spark, tmp_path, "brk.b_20131007_trade.csv", "1,1,1,P,0,0", STOCK)
    assert values(rows, "company", "sector", "derived") == [("BRK.B", "Unknown", "sector")]


def test_trade_ticks_on_days_on_which_the_clock_is_changed(spark: SparkSession, tmp_path: Path) -> None:
    half_past_one, half_past_two = 90 * 60_000, 150 * 60_000
    text = "\n".join(f"{time},1,1,P,0,0" for time in (half_past_one, half_past_two))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    forward = from_text(spark, tmp_path / "a", "dell_20300310_trade.csv", text, STOCK, date(2030, 3, 10))
    assert values(forward, "time", "ambiguous_time") == [
        (datetime(2030, 3, 10, 6, 30), False),
        ("milliseconds: no such time in New York",),
    ]
    back = from_text(spark, tmp_path / "b", "dell_20301103_trade.csv", text, STOCK, date(2030, 11, 3))
    assert values(back, "time", "ambiguous_time") == [
        (datetime(2030, 11, 3, 5, 30), True),
        (datetime(2030, 11, 3, 7, 30), False),
    ]


def test_a_file_name_that_is_no_date(spark: SparkSession, tmp_path: Path) -> None:
    rows = from_text(spark, tmp_path, "aig_20131307_trade.csv", "1,1,1,P,0,0", STOCK)
    assert values(rows) == [("file name: not a date",)]


def test_minute_bars(spark: SparkSession, tmp_path: Path) -> None:
    text = "ticker,yyyyMMddHHmm,open,high,low,close,volume\nibm,203001070930,181.5,182,181.25,181.75,12300\n"
    rows = from_text(spark, tmp_path, "bars.csv", text, STOCK)
    names = ("time", "company", "sector", "price", "volume", "open", "high", "low", "exchange", "suspicious")
    assert values(rows, *names) == [
        (datetime(2030, 1, 7, 14, 30), "IBM", "Computer", 181.75, 12300, 181.5, 182.0, 181.25, None, None)
    ]


def test_ride_events(spark: SparkSession, tmp_path: Path) -> None:
    place = "-73.866135,40.771091,-73.961334,40.764912,6,2013000006,2013000007"
    text = (
        f"6,START,2013-01-01 00:00:00,1970-01-01 00:00:00,{place}\n"
        f"6,END,2013-01-01 00:20:01,2013-01-01 00:00:00,{place}\n"
        "8,END,2013-01-01 00:20:00,2013-01-01 00:20:00,0,0,-73.9,40.7,1,1,2\n"
        f"9,END,2013-01-01 00:20:00,2013-01-01 00:20:01,{place}\n"
    )
    rows = from_text(spark, tmp_path, "rides.csv", text, TAXI)
    who = ("6", "2013000007", "rider-6", "2013000006", "cell 40.77 -73.87")
    names = ("type", "part", "time", "ride", "driver", "rider", "medallion", "district", "derived")
    assert values(rows, *names) == [
        ("Pickup", 0, datetime(2013, 1, 1, 5), *who, "rider,district"),
        ("Trip", 0, datetime(2013, 1, 1, 5, 10, 0, 500_000), *who, "time,rider,district,distance,speed"),
        ("Dropoff", 1, datetime(2013, 1, 1, 5, 20, 1), *who, "rider,district,distance"),
        ("Trip", 0, datetime(2013, 1, 1, 5, 20), "8", "2", "rider-8", "1", None, "time,rider"),
        ("Dropoff", 1, datetime(2013, 1, 1, 5, 20), "8", "2", "rider-8", "1", None, "rider"),
        ("dropoff before pickup",),
    ]
    assert values(rows, "passengers", "longitude", "latitude", "fare")[:3] == [
        (6, -73.866135, 40.771091, None),
        (6, None, None, None),
        (6, -73.961334, 40.764912, None),
    ]
    _, trip, dropoff, still, *_ = rows
    assert trip["distance"] == dropoff["distance"] == pytest.approx(5.0, abs=0.05)  # 95 thousandths of a degree west
    assert trip["speed"] == pytest.approx(trip["distance"] * 3600 / 1201)
    assert still["speed"] is None


def test_a_ride_over_the_hour_that_comes_twice(spark: SparkSession, tmp_path: Path) -> None:
    """The dropoff is the first after the pickup: where the clock shows an earlier time, it has been put back."""
    place = "-73.9,40.7,-73.9,40.7,1,1,2"
    text = (
        f"1,START,2030-11-03 01:50:00,1970-01-01 00:00:00,{place}\n"
        f"1,END,2030-11-03 01:10:00,2030-11-03 01:50:00,{place}\n"
        f"2,END,2030-11-03 01:10:00,2030-11-03 00:50:00,{place}\n"
        f"3,END,2030-11-03 02:10:00,2030-11-03 01:50:00,{place}\n"
    )
    rows = from_text(spark, tmp_path, "rides.csv", text, TAXI)
    assert values(rows, "ride", "type", "time", "ambiguous_time") == [
        ("1", "Pickup", datetime(2030, 11, 3, 5, 50), True),
        ("1", "Trip", datetime(2030, 11, 3, 6), True),
        ("1", "Dropoff", datetime(2030, 11, 3, 6, 10), False),
        ("2", "Trip", datetime(2030, 11, 3, 5), True),
        ("2", "Dropoff", datetime(2030, 11, 3, 5, 10), True),
        ("3", "Trip", datetime(2030, 11, 3, 6, 30), True),
        ("3", "Dropoff", datetime(2030, 11, 3, 7, 10), False),
    ]


# The headers of the years, with a row of each.
TLC = {
    "2009": (
        "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Passenger_Count,Trip_Distance,Start_Lon,Start_Lat,"
        "Rate_Code,store_and_forward,End_Lon,End_Lat,Payment_Type,Fare_Amt,surcharge,mta_tax,Tip_Amt,Tolls_Amt,Total_Amt\n"
        "\n"
        "VTS,2030-01-04 02:52:00,2030-01-04 03:02:00,1,2.63,-73.991957,40.721567,,,-73.993803,40.695922,CASH,8.9,0.5,,"
        "0,0,9.4\n"
    ),
    "2014": (
        "vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance, pickup_longitude, "
        "pickup_latitude, rate_code, store_and_fwd_flag, dropoff_longitude, dropoff_latitude, payment_type, "
        "fare_amount, surcharge, mta_tax, tip_amount, tolls_amount, total_amount\n"
        "CMT,2030-01-04 02:52:00,2030-01-04 03:02:00,1,2.63,-73.991957,40.721567,1,N,-73.993803,40.695922,CSH,8.9,0.5,"
        "0.5,0,0,9.9\n"
    ),
    "2015, in quotes": (
        '"VendorID","tpep_pickup_datetime","tpep_dropoff_datetime","passenger_count","trip_distance",'
        '"pickup_longitude","pickup_latitude","dropoff_longitude","dropoff_latitude","fare_amount"\n'
        '"2, Inc.","2030-01-04 02:52:00","2030-01-04 03:02:00","1","2.63","-73.991957","40.721567",'
        '"-73.9","40.7","8.9"\n'
    ),
    "2016, with commas at the end": (
        "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,PULocationID,fare_amount\n"
        "2,2030-01-04 02:52:00,2030-01-04 03:02:00,1,2.63,230,8.9,,\n"
    ),
    "2019": (
        "vendor_id,pickup_datetime,dropoff_datetime,passenger_count,trip_distance,pickup_location_id,"
        "dropoff_location_id,fare_amount\n"
        "1,2030-01-04 02:52:00,2030-01-04 03:02:00,1,2.63,230,48,8.9\n"
    ),
}


@pytest.mark.parametrize("text", TLC.values(), ids=TLC)
def test_tlc_trips_of_all_years(spark: SparkSession, tmp_path: Path, text: str) -> None:
    rows = from_text(spark, tmp_path, "trips.csv", text, TAXI)
    in_zone = "location" in text.lower()
    district, derived = ("zone 230", "") if in_zone else ("cell 40.72 -74.00", ",district")
    names = ("type", "time", "district", "fare", "passengers", "distance", "derived", "medallion")
    assert values(rows, *names) == [
        ("Pickup", datetime(2030, 1, 4, 7, 52), district, None, 1, None, f"ride,driver,rider{derived}", None),
        ("Trip", datetime(2030, 1, 4, 7, 57), district, None, 1, 2.63, f"time,ride,driver,rider{derived},speed", None),
        ("Dropoff", datetime(2030, 1, 4, 8, 2), district, 8.9, 1, 2.63, f"ride,driver,rider{derived}", None),
    ]
    assert rows[1]["speed"] == pytest.approx(2.63 * 6)
    assert [row["longitude"] for row in rows] == ([None] * 3 if in_zone else [-73.991957, None, rows[2]["longitude"]])
    assert len({row["ride"] for row in rows}) == len({(row["driver"], row["rider"]) for row in rows}) == 1


def test_tlc_trips_with_too_much_or_too_little(spark: SparkSession, tmp_path: Path) -> None:
    header, row = TLC["2019"].splitlines()
    text = "\n".join([header, f"{row},9", row.rpartition(",")[0], row.replace("230", "264"), row.replace("2.63", '"2')])
    rows = from_text(spark, tmp_path, "trips.csv", text, TAXI)
    wide = ("wrong number of columns",)
    assert values(rows, "type", "district") == [wide, wide, ("Pickup", None), ("Trip", None), ("Dropoff", None), wide]


def test_equal_trips_are_one_ride(spark: SparkSession, tmp_path: Path) -> None:
    header, row = TLC["2019"].splitlines()
    rows = from_text(spark, tmp_path, "trips.csv", "\n".join([header, row, row, row.replace("8.9", "9")]), TAXI)
    rides = [row["ride"] for row in rows if row["type"] == "Pickup"]
    assert rides[0] == rides[1] != rides[2]


def test_tlc_trips_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    time = datetime(2030, 1, 4, 2, 52)
    table = pa.table(
        {
            "VendorID": [1, 2],
            "tpep_pickup_datetime": pa.array([time, time], pa.timestamp("us")),
            "tpep_dropoff_datetime": pa.array([time.replace(minute=58), time.replace(hour=1)], pa.timestamp("us")),
            "passenger_count": [2.0, None],
            "trip_distance": [1.5, 1.5],
            "PULocationID": pa.array([230, 1], pa.int32()),
            "fare_amount": [7.5, 10],
        }
    )
    pq.write_table(table, tmp_path / "trips.parquet")
    rows = events(bronze(spark, tmp_path, ["trips.parquet"], TAXI), TAXI).orderBy("line", "part").collect()
    assert values(rows, "line", "type", "time", "passengers") == [
        (1, "Pickup", datetime(2030, 1, 4, 7, 52), 2),
        (1, "Trip", datetime(2030, 1, 4, 7, 55), 2),
        (1, "Dropoff", datetime(2030, 1, 4, 7, 58), 2),
        ("dropoff before pickup",),
    ]


def test_medallion_trips(spark: SparkSession, tmp_path: Path) -> None:
    text = (
        "medallion, hack_license, vendor_id, rate_code, store_and_fwd_flag, pickup_datetime, dropoff_datetime, "
        "passenger_count, trip_time_in_secs, trip_distance, pickup_longitude, pickup_latitude, dropoff_longitude, "
        "dropoff_latitude\n"
        "89D227B655E5C82AECF13C3F540D4CF4,BA96DE419E711691B9445D6A6307C170,CMT,1,N,2013-01-01 15:11:48,"
        "2013-01-01 15:18:10,4,382,1.00,-73.978165,40.757977,-73.989838,40.751171\n"
    )
    rows = from_text(spark, tmp_path, "trip_data_1.csv", text, TAXI)
    names = ("type", "time", "driver", "medallion", "district", "longitude", "derived")
    who = ("BA96DE419E711691B9445D6A6307C170", "89D227B655E5C82AECF13C3F540D4CF4", "cell 40.75 -73.98")
    assert values(rows, *names) == [
        ("Pickup", datetime(2013, 1, 1, 20, 11, 48), *who, -73.978165, "ride,rider,district"),
        ("Trip", datetime(2013, 1, 1, 20, 14, 59), *who, None, "time,ride,rider,district,speed"),
        ("Dropoff", datetime(2013, 1, 1, 20, 18, 10), *who, -73.989838, "ride,rider,district"),
    ]


def test_heart_rate(spark: SparkSession, tmp_path: Path) -> None:
    text = "Participant,HR,respr,Time(sec),Label\n2,118,12.1276927,1644227583,0\n2,,12,1644227584,1\n"
    rows = from_text(spark, tmp_path, "rates.csv", text, ACTIVITY)
    names = ("time", "type", "activity", "patient", "rate", "respiration", "stress", "derived")
    assert values(rows, *names) == [
        (datetime(2022, 2, 7, 9, 53, 3), "passive", "baseline", "participant2", 118.0, 12.1276927, False, "type"),
        (datetime(2022, 2, 7, 9, 53, 4), "passive", "stress task", "participant2", None, 12.0, True, "type"),
    ]


def test_pamap2(spark: SparkSession, tmp_path: Path) -> None:
    sensors = " ".join(["30.375", *["NaN"] * 50])
    text = "\n".join(
        f"{start} {sensors}"
        for start in ("8.38 0 104", "8.39 1 NaN", "5000.07 24 180.5", "8.4 8 NaN", "8.41 1 infinity", "8.42 1")
    )
    rows = from_text(spark, tmp_path, "subject101.dat", text, ACTIVITY, date(2030, 1, 7))
    assert values(rows, "time", "type", "activity", "patient", "rate", "derived") == [
        (datetime(2030, 1, 7, 0, 0, 8, 380_000), "active", "transient", "subject101", 104.0, "time,type"),
        (datetime(2030, 1, 7, 0, 0, 8, 390_000), "passive", "lying", "subject101", None, "time"),
        (datetime(2030, 1, 7, 1, 23, 20, 70_000), "active", "rope jumping", "subject101", 180.5, "time"),
        ("activityID: not a known activity",),
        ("heart rate: not a number",),
        ("wrong number of columns",),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "1,2,3",
        ",,,,,",
        "9" * 400 + ",1,1,P,0,0",
        "1e400,1,1,P,0,0",
        "-1,-1,-1,P,0,0",
        '"1","1","1",P,0,0',
        "\0,\0,1,P,0,0",
    ],
)
def test_no_row_ends_the_run(spark: SparkSession, tmp_path: Path, text: str) -> None:
    good = "1,1,1,P,0,0\n" * 3
    rows = from_text(spark, tmp_path, "dell_20300107_trade.csv", f"{good}{text}\n", STOCK)
    assert [row["reason"] is None for row in rows] == [True] * 3 + [False]


def test_detection_survives_a_bad_start() -> None:
    lines = ["?", "1,1,1,P,0,0", "2,1,1,P,0,0"]
    found = detect(STOCK.formats, "stock/2030-01-07/dell_20300107_trade.csv.gz", lines)
    assert found is not None
    assert found.name == "trade ticks"
    assert detect(STOCK.formats, "stock/2030-01-07/dell.csv.gz", lines) is None
    assert detect(ACTIVITY.formats, "subject101.dat", lines) is None


def test_a_filter_on_the_reason_does_not_parse_rows_again(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dell_20300107_trade.csv").write_text("1,1,1,P,0,0")
    rows = events(bronze(spark, tmp_path, ["dell_20300107_trade.csv"], STOCK), STOCK)
    rows.where("reason is null").explain()
    assert capsys.readouterr().out.count("isnotnull(problem") == 1
