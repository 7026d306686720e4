"""Generated streams: seeded, in memory, an event a second."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipeline.events import Array, Clock, Column, Events, Numbers, Texts, TimeStyle

SEED = 7
COMPANIES, SECTORS = 10, 2


def letters(codes: Array) -> Events:
    """Events of the types A, B, C …, by their numbers."""
    words = tuple(map(chr, range(ord("A"), ord("A") + int(codes.max(initial=0)) + 1)))
    return _events(Texts(codes, words), {})


def random_letters(size: int) -> Events:
    """A, B and C at random; a shorter stream is the beginning of a longer one."""
    return letters(np.random.default_rng(SEED).integers(3, size=size, dtype=np.int32))


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


def partitions(size: int, each: int) -> Events:
    """Prices of many companies, so many of each, in no order."""
    company = np.random.default_rng(SEED).permutation(np.arange(size) // each)
    return _events(_stock(size), {"price": _numbers(_walk(size)), "company": _numbers(company)})


def _walk(size: int) -> Array:
    steps = np.random.default_rng(SEED).integers(-100, 101, size=size)
    return 1_000_000 + np.cumsum(steps)


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
