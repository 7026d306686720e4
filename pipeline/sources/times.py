"""Times of any style become integer ticks, exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.errors import InputError
from pipeline.events import Array, Clock, Numbers, TimeStyle
from pipeline.sources.columns import Bad
from pipeline.sources.numbers import INTEGER, NUMBER, cast, fill, letters, null_mask, shorten

LIMIT = 2**63 - 1
MOST_DECIMALS = 18  # 10**19 ticks a second would leave no room for a single second
YEAR_1, YEAR_10000 = -62135596800, 253402300800
DECIMALS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
ISO_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


@dataclass(frozen=True)
class Times:
    """Times in ticks of 10**-decimals seconds."""

    ticks: Array
    decimals: int
    style: TimeStyle

    @property
    def iso(self) -> bool:
        """Whether these are dates rather than numbers."""
        return self.style is TimeStyle.ISO


NO_TIMES = Times(np.empty(0, np.int64), 0, TimeStyle.INTEGER)


class TimeColumn:
    """The `time` column of a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._chunks: list[Times] = []

    def read(self, raw: Any) -> tuple[Times, Bad]:
        """A batch's times, from text, numbers, timestamps or dates."""
        null = null_mask(raw)
        if null.any():
            return NO_TIMES, dict.fromkeys(np.flatnonzero(null).tolist(), "the time is missing")
        iso = self._chunks[0].iso if self._chunks else None
        times = fast_times(raw)
        if times is None or (iso is not None and iso != times.iso):
            return times_one_by_one(raw if pa.types.is_string(raw.type) else raw.cast(pa.string()), iso)
        return times, {}

    def add(self, chunk: Times) -> None:
        """Keep a batch's times."""
        if len(chunk.ticks):
            self._chunks.append(chunk)

    def finish(self) -> tuple[Array, Clock]:
        """All times in the coarsest ticks that hold each exactly."""
        decimals = max((chunk.decimals for chunk in self._chunks), default=0)
        for chunk in self._chunks:
            most = max(-int(chunk.ticks.min()), int(chunk.ticks.max()))
            if most * 10 ** (decimals - chunk.decimals) > LIMIT:
                raise InputError(
                    f"{self._path}: time: times to {decimals} decimals and times as large as "
                    f"{Decimal(most).scaleb(-chunk.decimals):f} do not fit together in 64 bits\n"
                    "hint: give the times fewer decimals, or count them from a later start"
                )
        styles = {chunk.style for chunk in self._chunks}
        style = next((style for style in (TimeStyle.ISO, TimeStyle.DECIMAL) if style in styles), TimeStyle.INTEGER)
        ticks = np.empty(sum(len(chunk.ticks) for chunk in self._chunks), np.int64)
        for part, chunk in fill(ticks, self._chunks, lambda chunk: len(chunk.ticks)):
            np.multiply(chunk.ticks, 10 ** (decimals - chunk.decimals), out=part)
        return ticks, Clock(10**decimals, style)


def fast_times(raw: Any) -> Times | None:
    """A whole array of times of one style, or None if that takes a closer look."""
    kind = raw.type
    if pa.types.is_integer(kind):
        return None if (whole := cast(raw, pa.int64())) is None else Times(whole.to_numpy(), 0, TimeStyle.INTEGER)
    if pa.types.is_timestamp(kind):
        return _in_years(raw.cast(pa.int64()).to_numpy(), DECIMALS[kind.unit])
    if pa.types.is_date(kind):
        return _in_years(raw.cast(pa.timestamp("ms")).cast(pa.int64()).to_numpy(), 3)
    if not pa.types.is_string(kind):
        exact = raw.cast(pa.string())  # a float's shortest text, a decimal's own
        times = fast_times(exact)
        return times and Times(times.ticks, times.decimals, TimeStyle.DECIMAL)
    found = letters(raw)
    if found <= set(b"-") and (whole := cast(raw, pa.int64())) is not None:
        return Times(whole.to_numpy(), 0, TimeStyle.INTEGER)
    if found <= set(b"+-.eE") and (decimal := cast(raw, pa.decimal128(38, 9))) is not None:
        return _from_decimal(decimal, TimeStyle.DECIMAL if found & set(b".eE") else TimeStyle.INTEGER)
    for zone in ("UTC",) if found & set(b"Z+") else (None, "UTC"):
        for unit in ("ms", "us", "ns") if b"."[0] in found else ("s",):
            if (stamps := cast(raw, pa.timestamp(unit, zone))) is not None:
                return _in_years(stamps.cast(pa.int64()).to_numpy(), DECIMALS[unit])
    return None


def _from_decimal(raw: Any, style: TimeStyle) -> Times | None:
    """Arrow's 128-bit decimals as 64-bit integers, if they fit."""
    words = np.frombuffer(raw.buffers()[1], np.int64)[2 * raw.offset : 2 * (raw.offset + len(raw))]
    low, high = words[0::2], words[1::2]
    if not np.array_equal(high, low >> 63):
        return None
    return _coarsest(low.copy(), 9, style)


def _in_years(ticks: Array, decimals: int) -> Times | None:
    """Dates of the years 1 to 9999, which are those that results can write."""
    if len(ticks) and not YEAR_1 <= int(ticks.min()) / 10**decimals <= int(ticks.max()) / 10**decimals < YEAR_10000:
        return None
    return _coarsest(ticks, decimals, TimeStyle.ISO)


def _coarsest(ticks: Array, decimals: int, style: TimeStyle) -> Times:
    while decimals and not (ticks % 10).any():
        ticks, decimals = ticks // 10, decimals - 1
    return Times(ticks, decimals, style)


def times_one_by_one(raw: Any, iso: bool | None) -> tuple[Times, Bad]:
    """Times that no cast takes as a whole; the first good one decides between dates and numbers if `iso` is None."""
    encoded = raw.dictionary_encode()
    parsed = [parse_time(word) for word in encoded.dictionary.to_pylist()]
    bad: Bad = {}
    good: list[tuple[int, int]] = []
    style = TimeStyle.INTEGER
    for row, code in enumerate(encoded.indices.to_pylist()):
        time = parsed[code]
        if isinstance(time, str):
            bad[row] = time
            continue
        value, decimals, its_style = time
        is_date = its_style is TimeStyle.ISO
        iso = is_date if iso is None else iso
        if is_date != iso:
            mixed = ("a date", "numbers") if is_date else ("a number", "dates")
            bad[row] = (
                f"{shorten(encoded.dictionary[code].as_py())} is {mixed[0]}, but the times before it are {mixed[1]}"
            )
            continue
        style = style if its_style is TimeStyle.INTEGER else its_style
        good.append((value, decimals))
    finest = max((decimals for _, decimals in good), default=0)
    ticks = [value * 10 ** (finest - decimals) for value, decimals in good]
    # Python's integers where 64 bits do not do: `finish` says so, as it does of two batches that do not fit together.
    fits = all(abs(tick) <= LIMIT for tick in ticks)
    return Times(np.array(ticks, np.int64 if fits else object), finest, style), bad


def parse_time(word: str) -> tuple[int, int, TimeStyle] | str:
    """One time as a number, its decimals and its style, or what is wrong with it.

    >>> parse_time("12.50"), parse_time("1970-01-01T01:00:00.5+01:00")
    ((125, 1, <TimeStyle.DECIMAL: 'decimal seconds'>), (5, 1, <TimeStyle.ISO: 'ISO 8601'>))
    """
    text = word.strip()
    if NUMBER.fullmatch(text):
        return _parse_seconds(text)
    if parts := ISO_TIME.fullmatch(text):
        date, hour, minute, second, fraction, zone = parts.groups()
        try:
            stamp = datetime.fromisoformat(f"{date}T{hour or '00'}:{minute or '00'}:{second or '00'}")
            stamp -= timedelta(minutes=_offset(zone or "Z"))
        except (ValueError, OverflowError):
            return f"{shorten(word)} is not a time: no such date or time of day"
        digits = (fraction or "").rstrip("0")
        seconds = (stamp - datetime(1970, 1, 1)) // timedelta(seconds=1)
        return seconds * 10 ** len(digits) + int(digits or 0), len(digits), TimeStyle.ISO
    return f"{shorten(word)} is not a time: write seconds or ISO 8601, such as 2024-05-31T09:30:00Z"


def _parse_seconds(text: str) -> tuple[int, int, TimeStyle] | str:
    style = TimeStyle.INTEGER if INTEGER.fullmatch(text) else TimeStyle.DECIMAL
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent beyond what Decimal has
        return f"{shorten(text)} is no usable time"
    if not number:
        return 0, 0, style
    # Looked at before any power of ten is taken: 1e999999999 is a short text.
    if number.adjusted() > 18:
        return f"{shorten(text)} is too large a time"
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    kept = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(kept)
    if -exponent > MOST_DECIMALS:
        return f"{shorten(text)} has more than {MOST_DECIMALS} decimals"
    value = int(kept) * 10 ** max(exponent, 0) * (-1 if sign else 1)
    if abs(value) > LIMIT:
        return f"{shorten(text)} does not fit in 64 bits"
    return value, max(-exponent, 0), style


def _offset(zone: str) -> int:
    """Minutes east of UTC."""
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    return (hours * 60 + minutes) * (-1 if zone[0] == "-" else 1)


def seconds_of(ticks: Array, clock: Clock) -> Numbers:
    """Times as an attribute: seconds, as integers if all are whole, else the nearest floats."""
    null = np.zeros(len(ticks), np.bool_)
    if clock.ticks_per_second == 1:
        return Numbers(ticks, null)
    if len(ticks) and max(-int(ticks.min()), int(ticks.max())) > 2**53:
        # Python rounds a quotient of integers once; NumPy would round the integer first.
        return Numbers(np.array([tick / clock.ticks_per_second for tick in ticks.tolist()], np.float64), null)
    return Numbers(ticks / clock.ticks_per_second, null)
