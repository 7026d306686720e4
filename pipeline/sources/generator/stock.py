"""Generated stock: ticks whose prices wander with trends, split executions, and bars of some companies."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa

from pipeline.events import Array
from pipeline.sources.generator.files import Fault, Writer, as_text, choose, generator, parts
from pipeline.sources.sectors import sectors

OPEN, CLOSE = 34_200_000, 57_600_000  # half past nine to four, in milliseconds since midnight
CHUNK = 1_000_000
MINUTES = 390
# Not in the table of sectors, as new companies are not.
NEWCOMER = "ZVZZT"
BARS_ONLY = ("COP", "PEP", "UPS", "VZ")
EXCHANGES = ("D", "Q", "P", "Z", "K", "B", "J", "Y", "N", "X")
CONDITIONS = ("1", "20000020", "20", "20002020", "2000")

TICK_FAULTS = (
    Fault("suspicious", b"0,0", "wrong number of columns"),
    Fault("milliseconds", b"noon", "milliseconds: not a whole number"),
    Fault("milliseconds", b"86400000", "milliseconds: out of range"),
    Fault("price", b"", "price: missing"),
    Fault("price", b"41.5", "price: not a whole number"),
    Fault("price", b"99999999999999999999", "price: not a whole number"),
    Fault("price", b"-10000", "price: out of range"),
    Fault("shares", b"0", "shares: out of range"),
    Fault("exchange", b"", "exchange: missing"),
    Fault("exchange", b"\xff", "is not text in UTF-8"),
    Fault("condition", b"@F I", "condition: not a hexadecimal number"),
    Fault("suspicious", b"maybe", "suspicious: not one of its known values"),
)
BAR_FAULTS = (
    Fault("ticker", b"", "ticker: missing"),
    Fault("minute", b"203002300930", "minute: not a date and time"),
    Fault("minute", b"203003100230", "minute: no such time in New York"),
    Fault("open", b"NaN", "open: not a number"),
    Fault("high", b"-1", "high: out of range"),
    Fault("low", b"900000", "low: above high"),
    Fault("close", b"0.01", "close: not between low and high"),
    Fault("volume", b"1e3", "volume: not a whole number"),
    Fault("volume", b"", "volume: missing"),
)


def write_day(writer: Writer, seed: int, day: date, rows: int, late_day: date) -> None:
    """The files that land on a trading day: ticks a company, the bars, and some ticks of an earlier day."""
    companies = [company for company in sectors() if company not in BARS_ONLY] + [NEWCOMER]
    bars = min(len(BARS_ONLY) * MINUTES, rows // 20)
    late = round(rows * writer.shares.late)
    # A few companies have most of the trades.
    counts = parts(rows - bars - late, [1 / (rank + 3) for rank in range(len(companies))])
    for company, count in zip(companies, counts, strict=True):
        _write_ticks(writer, seed, day, company, count, f"{company.lower()}_{day:%Y%m%d}_trade.csv.gz")
    if bars:
        _write_bars(writer, seed, day, bars)
    if late:
        name = f"{companies[0].lower()}_{late_day:%Y%m%d}_trade.late.csv.gz"
        _write_ticks(writer, seed, late_day, companies[0], late, name, landed=day)


def _write_ticks(
    writer: Writer, seed: int, day: date, company: str, count: int, name: str, landed: date | None = None
) -> None:
    """A company's trades of a day; `landed`: the later day on which they come, as other days' late ones do not."""
    random = generator(seed, day, company, f"late {landed}" if landed else "ticks")
    chunks = max(1, -(-count // CHUNK))
    edges = np.linspace(OPEN, CLOSE, chunks + 1)
    price = _first_price(seed, company, day)
    if not count:
        return
    with writer.gzipped(name) as file:
        for chunk, size in enumerate(parts(count, [1] * chunks)):
            times = np.sort(random.integers(int(edges[chunk]), int(edges[chunk + 1]), size))
            prices = _walk(random, price, size)
            shares = np.maximum(1, random.geometric(0.4, size) * 100 - (random.random(size) < 0.1) * 63)
            # Executions of one order come in the same millisecond, often as equal rows.
            first = _first_of_order(random, size)
            equal = random.random(size) < 0.5
            columns = {
                "milliseconds": times[first],
                "price": prices[np.where(equal, first, np.arange(size))],
                "shares": shares[np.where(equal, first, np.arange(size))],
                "exchange": choose(random, EXCHANGES, size).take(pa.array(first)),
                "condition": choose(random, CONDITIONS, size, (56, 37, 5, 1, 1)).take(pa.array(first)),
                "suspicious": choose(random, ("0", "1"), size, (999, 1)),
            }
            file.write(writer.text(random, columns, ",", TICK_FAULTS, late=landed is not None))
            price = float(prices[-1])


def _first_price(seed: int, company: str, day: date) -> float:
    """Where a company's day begins, in ten-thousandths of a dollar: near where all its days do."""
    usual = generator(seed, date.min, company).uniform(15, 150)
    return float(usual * np.exp(generator(seed, day, company).normal(0, 0.02)) * 10_000)


def _walk(random: np.random.Generator, price: float, count: int) -> Array:
    """Prices in cents that go up and down at random, with trends that last for some hundred trades."""
    trends = np.repeat(random.normal(0, 2e-5, count // 300 + 1), 300)[:count]
    steps = trends + random.normal(0, 1e-4, count)
    return np.maximum(100, np.round(price * np.exp(np.cumsum(steps)) / 100) * 100).astype(np.int64)


def _first_of_order(random: np.random.Generator, count: int) -> Array:
    """For each execution the first of its order: a quarter of them belong to the order before."""
    begins = random.random(count) >= 0.25
    begins[:1] = True
    return np.maximum.accumulate(np.where(begins, np.arange(count), 0))


def _write_bars(writer: Writer, seed: int, day: date, count: int) -> None:
    random = generator(seed, day, "bars")
    per_company = parts(count, [1] * len(BARS_ONLY))
    tickers = np.repeat(np.arange(len(BARS_ONLY)), per_company)
    minutes = np.concatenate([np.arange(size) * MINUTES // max(size, 1) for size in per_company]) + OPEN // 60_000
    starts = [
        _walk(random, _first_price(seed, company, day), size)
        for company, size in zip(BARS_ONLY, per_company, strict=True)
    ]
    opened = np.concatenate(starts) / 10_000
    closed = np.round(opened * np.exp(random.normal(0, 0.001, count)), 2)
    above, below = np.round(random.exponential(0.02, (2, count)), 2)
    text = pa.array([f"{day:%Y%m%d}{minute // 60:02}{minute % 60:02}" for minute in range(24 * 60)])
    columns = {
        "ticker": pa.array(BARS_ONLY).take(pa.array(tickers)),
        "minute": text.take(pa.array(minutes)),
        "open": opened,
        "high": np.round(np.maximum(opened, closed) + above, 2),
        "low": np.round(np.minimum(opened, closed) - below, 2),
        "close": closed,
        "volume": random.integers(0, 5000, count) * 100,
    }
    with writer.gzipped(f"bars_{day:%Y%m%d}.csv.gz") as file:
        file.write(b"ticker,yyyyMMddHHmm,open,high,low,close,volume\n")
        file.write(writer.text(random, {name: as_text(column) for name, column in columns.items()}, ",", BAR_FAULTS))
