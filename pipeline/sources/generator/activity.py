"""Generated activity: heart rates that go from too slow to too fast at rest, and PAMAP2's hundred rows a second."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.events import Array
from pipeline.sources.generator.files import Fault, Writer, as_text, generator, member, parts
from pipeline.sources.heart_rate import HEADER

SUBJECTS = (101, 102, 103)
PEOPLE = 12
SENSORS = 51
READINGS = 499  # different readings of the motion sensors, used again and again
BEAT = 11  # of so many rows one has a heart rate
# What a person does in turn, with the rate it starts and ends at; resting people's rates rise too.
ROUTINE = (
    (1, 66, 52),
    (2, 52, 118),
    (3, 118, 70),
    (0, 70, 90),
    (4, 90, 125),
    (5, 125, 165),
    (0, 165, 75),
    (10, 75, 66),
)

HEART_FAULTS = (
    Fault("Participant", b"", "Participant: missing"),
    Fault("Participant", b"two", "Participant: not a whole number"),
    Fault("HR", b"999", "HR: out of range"),
    Fault("HR", b"high", "HR: not a number"),
    Fault("respr", b"-3", "respr: out of range"),
    Fault("Time(sec)", b"", "Time(sec): missing"),
    Fault("Time(sec)", b"1644227583.5", "Time(sec): not a whole number"),
    Fault("Time(sec)", b"9223372036854775807", "Time(sec): out of range"),
    Fault("Label", b"7", "Label: not one of its known values"),
    Fault("Label", b"0,0", "wrong number of columns"),
)
PAMAP2_FAULTS = (
    Fault("timestamp", b"-1", "timestamp: out of range"),
    Fault("timestamp", b"8:30", "timestamp: not a number"),
    Fault("activityID", b"8", "activityID: not a known activity"),
    Fault("activityID", b"walk", "activityID: not a whole number"),
    Fault("rate", b"400", "heart rate: out of range"),
    Fault("rate", b"1 2", "wrong number of columns"),
)


def write_day(writer: Writer, seed: int, day: date, rows: int, late_day: date) -> None:
    """The files that land on a day; some heart rates are of an earlier day."""
    late = round(rows * writer.shares.late)
    rates, readings = parts(rows - late, (7, 3))
    _write_heart_rates(writer, seed, day, rates, late=False)
    _write_pamap2(writer, seed, day, readings)
    if late:
        _write_heart_rates(writer, seed, late_day, late, late=True)


def _rates(random: np.random.Generator, count: int, period: int) -> tuple[Array, Array]:
    """What a person does in each row, and the heart rate, over as many periods as it takes."""
    step = np.arange(count) + random.integers(0, period)
    turn, part = step // period % len(ROUTINE), step % period / period
    activity, start, end = np.array(ROUTINE).T
    rate = start[turn] + (end - start)[turn] * part + random.normal(0, 1.5, count)
    return activity[turn], np.round(np.clip(rate, 35, 200), 2)


def _write_heart_rates(writer: Writer, seed: int, day: date, count: int, *, late: bool) -> None:
    random = generator(seed, day, "late heart rates" if late else "heart rates")
    midnight = int(datetime.combine(day, time(), UTC).timestamp())
    # Who comes late came on no other day: else an earlier file might have the same seconds.
    first = 900 if late else 2
    people = parts(count, [1] * PEOPLE)
    # A person has a row a second, and more people are there on a day with more seconds than a day has.
    sizes = [size for share in people for size in parts(share, [1] * (1 + share // 40_000))]
    columns: dict[str, list[Any]] = {name: [] for name in HEADER.split(",")}
    for person, size in enumerate(sizes):
        activity, rate = _rates(random, size, 120)
        empty = random.random(size) < 0.004
        columns["Participant"].append(np.full(size, first + person))
        columns["HR"].append(pc.if_else(pa.array(empty), b"", as_text(rate)))
        columns["respr"].append(np.round(random.normal(14, 2, size).clip(5, 30), 6))
        columns["Time(sec)"].append(midnight + 28_800 + random.integers(0, 3600) + np.arange(size))
        columns["Label"].append((rate > 90).astype(np.int8) * (activity != 0))
    cells = {
        name: pa.concat_arrays([as_text(values) if isinstance(values, np.ndarray) else values for values in chunks])
        for name, chunks in columns.items()
    }
    with writer.gzipped(f"heart_rate_{day}.csv.gz") as file:
        file.write(HEADER.encode() + b"\n")
        file.write(writer.text(random, cells, ",", HEART_FAULTS, repeats=True, late=late))


def _write_pamap2(writer: Writer, seed: int, day: date, count: int) -> None:
    sensors = generator(seed, date.min, "sensors").normal(0, 5, (READINGS, SENSORS)).round(6)
    texts = pa.array([" ".join(map(str, reading)) for reading in sensors.tolist()])
    with writer.zipped("pamap2.zip") as archive:
        for subject, size in zip(SUBJECTS, parts(count, [1] * len(SUBJECTS)), strict=True):
            random = generator(seed, day, str(subject))
            activity, rate = _rates(random, size, 3000)
            unmeasured = pa.array(np.arange(size) % BEAT != 0)
            columns = {
                "timestamp": np.round(8.38 + np.arange(size) / 100, 2),
                "activityID": activity,
                "rate": pc.if_else(unmeasured, b"NaN", as_text(rate)),
                "sensors": texts.take(pa.array(random.integers(0, READINGS, size))),
            }
            text = writer.text(random, columns, " ", PAMAP2_FAULTS, repeats=True)
            member(archive, f"Protocol/subject{subject}.dat", text)
