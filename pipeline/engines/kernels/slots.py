"""Slots of aggregates in compiled loops: forgotten, or added up."""

from __future__ import annotations

from pipeline.engines.kernels.cells import NO_MAXIMUM, NO_MINIMUM, Cells, clear_cell, join_rank
from pipeline.engines.kernels.numbers import MASK, make_floats, plus_float, settle


def drop_slots(c: Cells, a: int, count: int) -> None:
    """Forget the trends of the first slots."""
    n = c.numbers
    for block in range(a * c.parts, (a + 1) * c.parts):
        if n.size[block] < 0:
            for slot in range(count):
                n.mantissa[block, slot] = 0.0
        for first in range(0, n.size[block] * n.slots, n.slots):
            for at in range(first, first + count):
                n.digits[block, at] = 0
    for r in range(len(c.least)):
        for slot in range(count):
            c.rank[a, r, slot] = NO_MINIMUM if c.least[r] else NO_MAXIMUM


def join_slots(c: Cells, a: int, b: int, begin: int) -> None:
    """Make the first slot of an aggregate the sum of another's slots from one on."""
    n = c.numbers
    clear_cell(c, a)
    for part in range(c.parts):
        total, block = a * c.parts + part, b * c.parts + part
        settle(n, block)
        if n.size[block] < 0:
            make_floats(n, total)
            for slot in range(begin, n.slots):
                plus_float(n, total, 0, n.mantissa[block, slot], n.exponent[block, slot])
            continue
        for first in range(0, n.size[block] * n.slots, n.slots):
            digit = 0
            for at in range(first, first + n.slots):
                n.digits[total, at] = 0
            for at in range(first + begin, first + n.slots):
                digit += n.digits[block, at]
            n.digits[total, first] = digit
        n.size[total] = n.size[block]
        n.bound[total] = n.slots * (MASK + 1)
        settle(n, total)
    for r in range(len(c.least)):
        for slot in range(begin, n.slots):
            join_rank(c, a, r, 0, c.rank[b, r, slot])


HELPERS = (drop_slots, join_slots)
