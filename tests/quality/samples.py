"""Rows of each table that every check is content with, and rows in which each check finds something wrong."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pipeline.datasets import DATASETS
from pipeline.quality.subject import Subject
from pipeline.tables import Table, bronze, silver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = date(2019, 1, 15)
FILES = {"stock": "trade ticks", "taxi": "ride events", "activity": "heart rate"}
ROWS = 40
SECRET = "5296319"  # whoever this is: no report may show it

Rows = list[dict[str, Any]]


def file_of(dataset: str) -> str:
    """The one file of the day."""
    return f"{dataset}/{DAY}/{dataset}.csv"


def table_of(table_name: str) -> Table:
    """The declaration of a table."""
    layer, _, name = table_name.partition(".")
    return {"bronze": bronze, "silver": silver}[layer](DATASETS[name])


def subject_of(table_name: str, **changes: Any) -> Subject:
    """A day of one file."""
    name = table_name.partition(".")[2]
    facts = {"formats": {file_of(name): FILES[name]}, "source_rows": ROWS, "quarantined": 0} | changes
    return Subject(DATASETS[name], DAY, table_name, "run 1", **facts)


def frame_of(spark: SparkSession, table_name: str, rows: Rows) -> DataFrame:
    """The rows as a frame of the table's types; what a row does not say is null."""
    columns = table_of(table_name).columns
    schema = ", ".join(f"`{column.name}` {column.type}" for column in columns)
    return spark.createDataFrame([tuple(row.get(column.name) for column in columns) for row in rows], schema)


def good_rows(table_name: str) -> Rows:
    """Rows that pass every check."""
    layer, _, name = table_name.partition(".")
    place = {"file": file_of(name), "landing_date": DAY}
    if layer == "bronze":
        own = {"file_hash": "0" * 64, "format": FILES[name], "copy": 0, "arrived_at": datetime(2019, 1, 16)}
        return [{**place, **own, "line": line, "raw": f"{SECRET},{line}"} for line in range(1, ROWS + 1)]
    start = datetime(2019, 1, 15, 15)
    return [
        {
            **place,
            **event,
            "event_id": f"{name}-{line}",
            "time": start + timedelta(seconds=line),
            "event_date": start.date(),
            "ambiguous_time": False,
            "late": False,
            "line": line,
        }
        for line, event in enumerate((GOOD[name](number) for number in range(ROWS)), 1)
    ]


def _stock(number: int) -> dict[str, Any]:
    trade = {"company": "IBM", "sector": "Computer", "price": 180.0 + number, "volume": 100, "suspicious": False}
    return trade | {"exchange": "N", "condition": "0", "open": 180.0, "high": 300.0, "low": 170.0}


def _taxi(number: int) -> dict[str, Any]:
    people = {"driver": f"d{SECRET}", "rider": f"r{SECRET}", "medallion": f"m{SECRET}"}
    place = {"district": "zone 230", "longitude": -73.9, "latitude": 40.7, "passengers": 1}
    type = ("Pickup", "Trip", "Dropoff")[number % 3]
    return people | place | {"type": type, "ride": f"{number // 3}", "speed": 12.0, "fare": 9.5, "distance": 2.0}


def _activity(number: int) -> dict[str, Any]:
    event = {"type": "passive", "activity": "resting", "patient": f"p{SECRET}", "rate": 60.0 + number % 5}
    return event | {"respiration": 14.0, "stress": False}


GOOD = {"stock": _stock, "taxi": _taxi, "activity": _activity}

# What is wrong, by check, in each row in turn; where several rows must agree, each has its own dictionary.
HOUR_EARLIER = {"time": datetime(2019, 1, 15, 14)}
BAD_ROWS: dict[str, dict[str, dict[str, Any]]] = {
    "bronze": {
        "file_named": {"file": None},
        "file_hashed": {"file_hash": None},
        "line_numbered": {"line": 0},
        "line_present": {"line": None},
        "format_known": {"format": "unknown"},
        "mostly_recognised": {"format": "unknown"},
        "format_present": {"format": None},
        "format_declared": {"format": "parish register"},
        "readable": {"problem": "is not text in UTF-8"},
    },
    "silver": {
        "event_id_present": {"event_id": None},
        "event_id_unique": {"event_id": "twice"},
        "time_present": {"time": None},
        "date_matches_time": {"event_date": date(2019, 1, 14)},
        "file_named": {"file": None},
        "line_present": {"line": None},
        "landing_date_present": {"landing_date": None},
        "few_late": {"late": True},
        "time_in_order": HOUR_EARLIER,
    },
    "silver.stock": {
        "company_present": {"company": None},
        "sector_present": {"sector": None},
        "sector_known": {"sector": "Unknown"},
        "price_present": {"price": None},
        "price_not_negative": {"price": -1.0},
        "price_plausible": {"price": 1e7},
        "volume_present": {"volume": None},
        "volume_not_negative": {"volume": -1},
        "exchange_is_letter": {"exchange": "NYSE"},
        "few_suspicious": {"suspicious": True},
        "bar_consistent": {"low": 310.0},
    },
    "silver.taxi": {
        "type_known": {"type": "Crash"},
        "type_present": {"type": None},
        "ride_present": {"ride": None},
        "driver_present": {"driver": None},
        "rider_present": {"rider": None},
        "dropoff_has_pickup": {"type": "Dropoff", "ride": "over midnight"},
        "speed_not_negative": {"speed": -1.0},
        "speed_plausible": {"speed": 200.0},
        "fare_not_negative": {"fare": -1.0},
        "fare_plausible": {"fare": 5000.0},
        "passengers_plausible": {"passengers": 50},
        "longitude_plausible": {"longitude": 2.3},
        "latitude_plausible": {"latitude": 48.8},
        "distance_plausible": {"distance": 3000.0},
    },
    "silver.activity": {
        "type_known": {"type": "asleep"},
        "type_present": {"type": None},
        "activity_present": {"activity": None},
        "patient_present": {"patient": None},
        "rate_possible": {"rate": 400.0},
        "rate_measured": {"rate": None},
        "respiration_possible": {"respiration": 200.0},
    },
}
# Checks that allow for some bad rows: all rows are bad for all of them at once.
LENIENT = {
    "bronze": ("mostly_recognised",),
    "silver": ("few_late",),
    "silver.stock": ("sector_known", "few_suspicious"),
    "silver.taxi": (
        "dropoff_has_pickup",
        "speed_plausible",
        "fare_plausible",
        "passengers_plausible",
        "longitude_plausible",
        "latitude_plausible",
        "distance_plausible",
    ),
    "silver.activity": ("rate_measured",),
}
COPIES = 3  # bad rows a check


def bad_values(table_name: str) -> dict[str, dict[str, Any]]:
    """How a check's bad row differs from a good one, by check."""
    return {**BAD_ROWS[table_name.partition(".")[0]], **BAD_ROWS.get(table_name, {})}


def lenient(table_name: str) -> set[str]:
    """The checks that some bad rows do not break."""
    return {*LENIENT[table_name.partition(".")[0]], *LENIENT.get(table_name, ())}


def rows_all_bad(table_name: str) -> Rows:
    """Rows that are bad for every lenient check."""
    rows = good_rows(table_name)
    for row in rows:
        for check in lenient(table_name):
            row |= bad_values(table_name)[check]
    return rows


def rows_each_bad(table_name: str) -> tuple[Rows, dict[str, list[int]]]:
    """Good rows and then, for each strict check, some that only it complains of; and these rows' positions."""
    rows, positions = good_rows(table_name), {}
    for check, values in bad_values(table_name).items():
        if check not in lenient(table_name):
            positions[check] = list(range(len(rows), len(rows) + COPIES))
            rows += [{**good_rows(table_name)[-1], "line": len(rows) + 1 + n} for n in range(COPIES)]
            for n in positions[check]:
                rows[n] |= {"event_id": f"bad-{n}"} | values
    return rows, positions
