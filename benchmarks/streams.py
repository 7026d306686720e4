"""Generated streams: seeded, in memory, an event a second unless said otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pipeline.events import Array, Clock, Column, Events, Numbers, Texts, TimeStyle

SEED = 7
COMPANIES, SECTORS = 10, 2
TRIPS = 8  # between a pickup and a drop-off


def letters(codes: Array, attributes: Mapping[str, Column] | None = None) -> Events:
    """Events of the types A, B, C …, by their numbers."""
    words = tuple(map(chr, range(ord("A"), ord("A") + int(codes.max(initial=0)) + 1)))
    return _events(Texts(codes, words), attributes or {})


def random_letters(size: int, types: int = 3) -> Events:
    """So many types at random; a shorter stream is the beginning of a longer one."""
    return letters(_random().integers(types, size=size, dtype=np.int32))


def attributed_letters(size: int, types: int, first: int, second: int = 1) -> Events:
    """SASE's streams: so many types, and attributes of so many values, all at random."""
    random = _random()
    codes = random.integers(types, size=size, dtype=np.int32)
    values = {"attr1": random.integers(first, size=size), "attr2": random.integers(second, size=size)}
    return letters(codes, {name: _numbers(value) for name, value in values.items()})


def as_then_bs(size: int, bits: int) -> Events:
    """As many A's that `A+` has a count of so many bits, then B's."""
    return letters((np.arange(size) >= bits).astype(np.int32))


def prices(size: int) -> Events:
    """One stock, whose price in cents is a random walk."""
    return _events(_stock(size), {"price": _numbers(_walk(size))})


def sectors(size: int) -> Events:
    """Each second one price of every company, all companies in a few sectors."""
    company = np.arange(size) % COMPANIES
    columns = {
        "price": _numbers(_walk(size)),
        "company": _numbers(company),
        "sector": _numbers(company % SECTORS),
    }
    return _events(_stock(size), columns, time=np.arange(size) // COMPANIES)


def trades(size: int, companies: int) -> Events:
    """Prices between 0 and 1 of companies that take turns at random, as many of each as of any other."""
    company = _random().permutation(np.arange(size) % companies)
    columns = {"price": _numbers(_random().random(size)), "company": _numbers(company)}
    return _events(_stock(size), columns)


def measurements(size: int, patients: int) -> Events:
    """Heart rates from 40 to 120 of patients in turn; nine of ten activities are passive."""
    random = _random()
    activity = (random.random(size) < 0.9).astype(np.int32)
    columns: dict[str, Column] = {
        "patient": _numbers(np.arange(size) % patients),
        "rate": _numbers(40 + 80 * random.random(size)),
        "kind": Texts(activity, ("active", "passive")),
    }
    return _events(Texts(np.zeros(size, np.int32), ("Activity",)), columns)


def rides(size: int, drivers: int) -> Events:
    """Drivers in turn, each from pickup over trips to drop-off again and again; one event of twenty is a call."""
    turn = np.arange(size) // drivers % (TRIPS + 2)
    words = ("Call", "Dropoff", "Pickup", "Trip")
    codes = np.select([turn == 0, turn == TRIPS + 1], [2, 1], 3).astype(np.int32)
    codes[_random().random(size) < 0.05] = 0
    return _events(Texts(codes, words), {"driver": _numbers(np.arange(size) % drivers)})


def _walk(size: int) -> Array:
    steps = _random().integers(-100, 101, size=size)
    return 1_000_000 + np.cumsum(steps)


def _random() -> np.random.Generator:
    return np.random.default_rng(SEED)


def _stock(size: int) -> Texts:
    return Texts(np.zeros(size, np.int32), ("Stock",))


def _numbers(values: Array) -> Numbers:
    return Numbers(values, np.zeros(len(values), bool))


def _events(types: Texts, columns: Mapping[str, Column], time: Array | None = None) -> Events:
    return Events(
        time=np.arange(len(types)) if time is None else time,
        clock=Clock(1, TimeStyle.INTEGER),
        types=(types,),
        attributes=columns,
        known=tuple(columns),
        open_schema=False,
    )


STREAMS: dict[str, Callable[..., Events]] = {
    made.__name__: made
    for made in (random_letters, attributed_letters, as_then_bs, prices, sectors, trades, measurements, rides)
}
