"""A lake for the report, written without a JVM: two days of stock and taxi, a late file, and all that can go wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from pipeline.aggregate.partials import ARROW
from pipeline.config import Config
from pipeline.datasets import DATASETS
from pipeline.questions import Question, ask
from pipeline.tables import (
    ENGINE_RUNS,
    OPS_INTERVALS,
    OPS_PUBLICATIONS,
    OPS_QUALITY,
    OPS_WAIVERS,
    Table,
    gold_history,
    quarantine,
    silver,
)

MONDAY, TUESDAY = date(2030, 1, 7), date(2030, 1, 8)
NOW = datetime(2030, 1, 10, 12, tzinfo=UTC)  # Wednesday's files should have come, and have not
MINUTE = timedelta(minutes=1)
HUGE = 2**2000
FALLING = """\
-- Prices that only fall, by sector.
RETURN    sector, COUNT(*)
PATTERN   Stock S+
FROM      stock
WHERE     [company] AND S.price > NEXT(S).price
GROUP-BY  sector
WITHIN    10 minutes SLIDE 10 minutes
"""
DRIVERS = """\
RETURN    driver, COUNT(*), AVG(T.speed)
PATTERN   SEQ(Pickup P, Trip T+, Dropoff D)
FROM      taxi
WHERE     [driver]
GROUP-BY  driver
WITHIN    1 hour SLIDE 1 hour
"""
BROKEN = "RETURN COUNT(*)\nPATERN Stock S\nFROM stock\nWITHIN 1 hour SLIDE 1 hour\n"
UNPUBLISHED = "RETURN COUNT(*) PATTERN SEQ(DELL D, !IBM, AMAT A) FROM stock WITHIN 1 hour SLIDE 1 hour"
QUERIES = {
    "stock/falling.query": FALLING,
    "stock/broken.query": BROKEN,
    "stock/unpublished.query": UNPUBLISHED,
    "taxi/drivers.query": DRIVERS,
}
TYPES = ARROW | {
    "array<string>": pa.list_(pa.string()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "array<struct<file:string,hash:string,format:string,rows:bigint,bytes:bigint>>": pa.list_(
        pa.struct(
            {"file": pa.string(), "hash": pa.string(), "format": pa.string(), "rows": pa.int64(), "bytes": pa.int64()}
        )
    ),
}
Row = Mapping[str, Any]


def question(name: str) -> Question:
    """One of the queries."""
    return ask(QUERIES[name], f"queries/{name}")


def at(day: date, hour: int = 12, minute: int = 0) -> datetime:
    """A time of a day."""
    return datetime.combine(day, time(hour, minute), UTC)


def write(config: Config, table: Table, rows: Iterable[Row], mode: str = "append") -> None:
    """Rows of a table of the catalogue, as another program would write them; what a row leaves out is null."""
    schema = pa.schema([pa.field(c.name, TYPES[c.type], nullable=not c.required) for c in table.columns])
    data = pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
    write_deltalake(table.path(config), data, partition_by=[*table.partition], mode=mode)  # type: ignore[call-overload]


def fill(config: Config) -> Path:
    """The lake; returns the folder of its queries."""
    queries = Path(config.lake).parent / "queries"
    for name, text in QUERIES.items():
        (queries / name).parent.mkdir(parents=True, exist_ok=True)
        (queries / name).write_text(text)
    _silver(config)
    _falling(config)
    _drivers(config)
    _records(config)
    return queries


# --------------------------------------------------------------------------------------------------------------- silver


def stock_event(event_id: str, when: datetime, company: str, price: float, file: str, day: date) -> Row:
    """An event of silver.stock."""
    sector = {"DELL": "Computer", "IBM": "Computer", "AMAT": "Chip"}[company]
    given = {"company": company, "sector": sector, "price": price, "volume": 1}
    return given | _row(event_id, when, f"stock/{day}/{file}", day)


def ride_event(ride: str, kind: str, when: datetime, driver: str) -> Row:
    """An event of silver.taxi."""
    given = {"type": kind, "ride": ride, "driver": driver, "rider": f"rider of {ride}", "district": "1"}
    return given | {"speed": 30.0} | _row(f"{ride} {kind}", when, "taxi/a.csv", when.date())


def _row(event_id: str, when: datetime, file: str, day: date) -> dict[str, Any]:
    common = {"ambiguous_time": False, "late": False, "line": 1, "landing_date": day, "file": file}
    return common | {"event_id": event_id, "time": when, "event_date": when.date()}


def _silver(config: Config) -> None:
    """Version 0 has both days; version 1 a late file, with an event of each."""
    events = []
    for day in (MONDAY, TUESDAY):
        events += [
            stock_event(f"{day} 0", at(day), "DELL", 10.0, "a.csv", day),
            stock_event(f"{day} 1", at(day) + MINUTE, "DELL", 9.0, "a.csv", day),
            stock_event(f"{day} 2", at(day) + 2 * MINUTE, "AMAT", 5.0, "a.csv", day),
        ]
    write(config, silver(DATASETS["stock"]), events)
    late = [
        stock_event("late 0", at(MONDAY) + 5 * MINUTE, "DELL", 8.0, "late.csv", TUESDAY),
        stock_event("late 1", at(TUESDAY) + 5 * MINUTE, "DELL", 8.0, "late.csv", TUESDAY),
    ]
    write(config, silver(DATASETS["stock"]), late)
    rides = [
        ride_event(f"ride {number}", kind, at(MONDAY, 8 + number, step), f"driver {number}")
        for number in range(2)
        for step, kind in enumerate(("Pickup", "Trip", "Dropoff"))
    ]
    write(config, silver(DATASETS["taxi"]), rides)


# ----------------------------------------------------------------------------------------------------------------- gold


def answer(
    asked: Question, start: datetime, group: Row, counts: Row, version: int = 0, revision: int = 1
) -> dict[str, Any]:
    """A row of gold; counts are whole numbers, what else is given stays as it is."""
    values: dict[str, Any] = {}
    for name, value in counts.items():
        is_count = any(column.name == f"{name}_log10" for column in asked.table.columns)
        values |= {name: str(value), f"{name}_log10": math.log10(value)} if is_count else {name: value}
    within = timedelta(microseconds=asked.reach.within)
    stamps = {"exact": True, "engine": "pane", "run_id": f"run {revision}", "revision": revision}
    stamps |= {
        "query_version": asked.version,
        "silver_version": version,
        "published_at": NOW - timedelta(hours=3 - revision),
    }
    window = {"interval_date": start.date(), "window_start": start, "window_end": start + within}
    return {**window, **group, **values, **stamps}


def _falling(config: Config) -> None:
    asked = question("stock/falling.query")
    computer, chip = {"sector": "Computer"}, {"sector": "Chip"}
    # With the late event 10 > 9 > 8: 7 trends, where 10 > 9 had 3.
    old = answer(asked, at(MONDAY), computer, {"count": 3})
    rows = [
        answer(asked, at(MONDAY), computer, {"count": 7}, version=1, revision=2),
        answer(asked, at(MONDAY), chip, {"count": 1}),
        answer(asked, at(MONDAY, 13), computer, {"count": 2**100}),
        answer(asked, at(MONDAY, 13, 10), computer, {"count": HUGE}) | {"exact": False},
        answer(asked, at(TUESDAY), computer, {"count": 3}),
        answer(asked, at(TUESDAY), chip, {"count": 1}),
    ]
    write(config, asked.table, rows)
    superseded = {"superseded_by": "run 2", "superseded_silver": 1, "superseded_at": rows[0]["published_at"]}
    gone = answer(asked, at(TUESDAY, 14), chip, {"count": 12}) | superseded
    write(config, gold_history(asked.table), [old | superseded, gone])


def _drivers(config: Config) -> None:
    asked = question("taxi/drivers.query")
    write(
        config,
        asked.table,
        [
            answer(asked, at(MONDAY, 8 + number), {"driver": f"driver {number}"}, {"count": 1, "avg_t_speed": 30.0})
            for number in range(2)
        ],
    )
    write(config, gold_history(asked.table), [])


# -------------------------------------------------------------------------------------------------------------- records


def publication(asked: Question, day: date, version: int, rows: int) -> Row:
    """A row of ops.publications."""
    return {
        "query": asked.name, "interval_date": day, "dataset": asked.dataset.name, "run_id": "run 1",
        "query_version": asked.version, "engine": "pane", "silver_version": version, "gold_version": 0, "rows": rows,
        "changed": rows, "events": 6, "files": [], "warnings": [], "published_at": NOW - timedelta(hours=1),
    }  # fmt: skip


def result(table: str, day: date, check: str, state: str = "passed", examples: Sequence[str] = ()) -> Row:
    """A row of ops.quality."""
    return {
        "dataset": table.partition(".")[2], "landing_date": day, "table_name": table, "run_id": "run 1",
        "checked_at": NOW, "expectation": f"{table}.{check}",
        "severity": "critical" if state == "failed" else "warning",
        "success": state == "passed", "observed": "3 rows", "unexpected": len(examples), "examples": list(examples),
    }  # fmt: skip


def engine_run(asked: Question, engine: str, size: int, status: str = "finished", **more: Any) -> Row:
    """A row of gold.engine_runs."""
    finished = status == "finished"
    return {
        "query": asked.name, "interval_date": MONDAY, "run_id": "run 1", "purpose": "comparison", "engine": engine,
        "status": status, "query_version": asked.version, "silver_version": 0, "events": 6 * size, "windows": 6,
        "events_a_window": size, "rows": 6, "log10_trends": float(size) / 3, "wall_seconds": size / 1000,
        "events_per_second": 6000.0 if finished else None, "peak_stored": size * 3, "peak_memory": 10**8,
        "compared": 6, "agrees": True if finished else None, "at": NOW,
    } | more  # fmt: skip


def _records(config: Config) -> None:
    falling, drivers = question("stock/falling.query"), question("taxi/drivers.query")
    write(
        config,
        OPS_PUBLICATIONS,
        [publication(falling, MONDAY, 1, 4), publication(falling, TUESDAY, 0, 2), publication(drivers, MONDAY, 0, 2)],
    )
    common = {"run_id": "run 1", "completed_at": NOW, "files": [], "warnings": [], "source_rows": 10, "silver_rows": 7}
    common |= {"events": 7, "quarantined": 3, "duplicates": 0, "late": 1, "silver_version": 0}
    reasons = {"price is no number": 2, "2 fields, not 3": 1}
    days = [("stock", MONDAY, "complete"), ("stock", TUESDAY, "complete"), ("taxi", MONDAY, "complete")]
    intervals = [
        common | {"dataset": name, "landing_date": day, "status": status, "reasons": list(reasons.items())}
        for name, day, status in [*days, ("taxi", TUESDAY, "failed")]
    ]
    write(config, OPS_INTERVALS, intervals)
    write(
        config,
        quarantine(DATASETS["stock"]),
        [
            {"landing_date": MONDAY, "file": "stock/2030-01-07/a.csv", "file_hash": "0", "line": line,
             "run_id": "run 1", "raw": f"secret line {line}", "reason": "price is no number", "resolved": False}
            for line in (4, 9)
        ],
    )  # fmt: skip
    bad = ["stock/2030-01-08/a.csv:17: -3.5"]
    write(
        config,
        OPS_QUALITY,
        [
            result("silver.stock", MONDAY, "price_positive"),
            result("silver.stock", TUESDAY, "price_positive", "failed", bad),
            result("silver.stock", TUESDAY, "volume_usual", "warned", ["stock/2030-01-08/a.csv:18: 9"]),
            result("silver.taxi", MONDAY, "speed_usual", "failed"),
        ],
    )
    waiver = {"dataset": "taxi", "landing_date": MONDAY, "expectation": "silver.taxi.speed_usual"}
    write(config, OPS_WAIVERS, [waiver | {"reason": "a parade", "by": "me", "at": NOW}])
    runs = [engine_run(falling, engine, size) for engine in ("sase", "pane", "cogra") for size in (8, 16)]
    runs += [engine_run(falling, engine, 32) for engine in ("pane", "cogra")]
    runs.append(
        engine_run(falling, "sase", 32, "did not finish", wall_seconds=12.0, reason="did not finish in 2 seconds")
    )
    runs.append(engine_run(falling, "sase", 64, "did not finish", wall_seconds=0.0, reason="not tried", peak_stored=0))
    runs.append(engine_run(falling, "aseq", 8, "cannot run", wall_seconds=None, peak_stored=None, reason="WHERE: no"))
    write(config, ENGINE_RUNS, runs)


def _point(program: str, x: int, seconds: float | None) -> dict[str, object]:
    if seconds is None:
        return {"program": program, "x": x, "events": x, "lost": "did not finish in 15 seconds"}
    return {
        "program": program, "x": x, "events": x, "lost": None, "seconds": seconds, "memory": 2**20, "stored": 3,
        "log10": 12.5,
    }  # fmt: skip


BENCHMARKS = {
    "cogra-5": {
        "title": "events a window, any-match", "source": "Figure 5", "x": "events", "at": "2030-01-01",
        "query": "RETURN COUNT(*) PATTERN A+ WITHIN 1 s", "machine": "2 cores", "seconds": 15.0,
        "programs": ["flink cep", "pane"],
        "points": [_point("flink cep", 1000, 1.5), _point("pane", 1000, 0.002), _point("flink cep", 2000, None),
                   _point("pane", 2000, 0.004)],
    },
    "jobs": {"title": "jobs", "figures": []},
}  # fmt: skip
