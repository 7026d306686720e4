"""Which of a file's equal lines each line is: counted with a few bytes a line, however long the file."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np

from pipeline.events import Array

PLAIN_LINES = 20_000  # so few are counted in Python before numba is loaded
LONG = 512  # bytes, from which lines are hashed one by one
FULLEST = 0.8
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_TURN = np.uint64(32)
# How much of a line's last eight bytes is its own.
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(8)] + [2**64 - 1], np.uint64)


class Copies:
    """Counts the lines of one file.

    Lines are compared by a hash of 64 bits. Where two that differ have the same, one gets the number of a copy:
    the numbers still tell equal lines apart, and are the same whenever the file is read.
    """

    def __init__(self) -> None:
        self._keys, self._counts = _table(1 << 12)
        self._used = 0

    def number(self, data: Array, offsets: Array) -> Array:
        """The numbers, from 0, of the next lines: line i is `data[offsets[i]:offsets[i + 1]]`."""
        hashes = line_hashes(data, offsets)
        while self._used + len(hashes) > FULLEST * len(self._keys):
            keys, counts = _table(2 * len(self._keys))
            _move(self._keys, self._counts, keys, counts)
            self._keys, self._counts = keys, counts
        copies = np.empty(len(hashes), np.int32)
        self._used += _ready(_count, len(self._keys))(hashes, self._keys, self._counts, copies)
        return copies


def line_hashes(data: Array, offsets: Array) -> Array:
    """A hash of each line."""
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))  # the eight bytes from each place on
    hashes = lengths.astype(np.uint64) * _SECOND
    active = np.flatnonzero((lengths > 0) & (lengths < LONG))
    place = 0
    while len(active):
        left = lengths[active] - place
        word = words[starts[active] + place] & _MASKS[np.minimum(left, 8)]
        mixed = (hashes[active] ^ word) * _FIRST
        hashes[active] = (mixed ^ (mixed >> _TURN)) * _SECOND
        place += 8
        active = active[left > 8]
    for line in np.flatnonzero(lengths >= LONG):
        digest = hashlib.blake2b(data[offsets[line] : offsets[line + 1]].tobytes(), digest_size=8).digest()
        hashes[line] = int.from_bytes(digest, "little")
    return hashes ^ (hashes >> _TURN)


def _table(capacity: int) -> tuple[Array, Array]:
    return np.zeros(capacity, np.uint64), np.zeros(capacity, np.int32)


def _move(old_keys: Array, old_counts: Array, keys: Array, counts: Array) -> None:
    used = np.flatnonzero(old_counts)
    _ready(_insert, len(keys))(old_keys[used], old_counts[used], keys, counts)


def _count(hashes: Array, keys: Array, counts: Array, copies: Array) -> int:
    """Give each hash its number; returns how many are new. Runs as it is, or compiled."""
    mask, new = len(keys) - 1, 0
    for line in range(len(hashes)):
        slot = np.int64(hashes[line] & np.uint64(mask))
        while counts[slot] and keys[slot] != hashes[line]:
            slot = (slot + 1) & mask
        if not counts[slot]:
            keys[slot] = hashes[line]
            new += 1
        copies[line] = counts[slot]
        counts[slot] += 1
    return new


def _insert(hashes: Array, numbers: Array, keys: Array, counts: Array) -> None:
    """Put distinct hashes with their counts into an empty table."""
    mask = len(keys) - 1
    for line in range(len(hashes)):
        slot = np.int64(hashes[line] & np.uint64(mask))
        while counts[slot]:
            slot = (slot + 1) & mask
        keys[slot] = hashes[line]
        counts[slot] = numbers[line]


def _ready(loop: Any, capacity: int) -> Any:
    return loop if capacity * FULLEST <= PLAIN_LINES else _compiled(loop)


@cache
def _compiled(loop: Any) -> Any:
    import numba

    try:
        return numba.njit(cache=True)(loop)
    except RuntimeError:  # no folder that numba may write to
        return numba.njit(loop)
