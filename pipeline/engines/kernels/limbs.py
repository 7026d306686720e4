"""Sums of single trends: a few digits in base 2^30, lowest first, all but the last in [0, 2^30)."""

from __future__ import annotations

from pipeline.engines.kernels.numbers import BITS, MASK
from pipeline.events import Array


def carried(total: Array, term: Array) -> None:
    """Add a number to another one of the same length."""
    carry = 0
    last = len(total) - 1
    for at in range(last):
        value = total[at] + term[at] + carry
        carry = value >> BITS
        total[at] = value & MASK
    total[last] += term[last] + carry
