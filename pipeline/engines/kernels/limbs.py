"""Integers of any size in compiled loops: digits in base 2^30, lowest first, all but the last in [0, 2^30).

The last digit is signed, so that sums may be negative. A product of two digits and its carries fit in 64 bits.
"""

from __future__ import annotations

from pipeline.events import Array

BITS = 30
MASK = 2**BITS - 1
FULL = 2 ** (BITS - 2)  # a last digit beyond this is about to leave its place


def carried(total: Array, term: Array) -> None:
    """Add a number to another one of the same length."""
    carry = 0
    last = len(total) - 1
    for at in range(last):
        value = total[at] + term[at] + carry
        carry = value >> BITS
        total[at] = value & MASK
    total[last] += term[last] + carry


def carried_product(total: Array, factor: Array, term: Array) -> None:
    """Add a product: of a number as long as the total, and of one with few digits."""
    last = len(total) - 1
    for shift in range(len(factor)):
        digit = factor[shift]
        if digit == 0:
            continue
        carry = 0
        for at in range(shift, last):
            value = total[at] + digit * term[at - shift] + carry
            carry = value >> BITS
            total[at] = value & MASK
        if shift <= last:
            total[last] += digit * term[last - shift] + carry


def is_full(number: Array) -> bool:
    """Whether a number needs one more digit before anything is added to it."""
    last = number[len(number) - 1]
    return bool(last > FULL or last < -FULL)
