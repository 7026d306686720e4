"""Sums of many integers in compiled loops: a number a slot, all slots side by side, and carries only where they start.

A loop from zero on takes several words at once, so that loops are over parts of an array rather than from somewhere on.
A block is settled once, when it is made: its digits then have so few bits that all blocks which are ever added up at
once fit into machine words. So adding blocks is one loop over words, without a look at their size.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.numbers import BITS, MASK
from pipeline.events import Array

LARGEST, ALARM = 0, 1  # registers: the most digits in use, and how many ask for more room
WORD = 63  # bits of a machine word besides its sign
AT_ONCE = 4  # slots side by side that are cleared at once, of which there is a whole number


class Sums(NamedTuple):
    """Blocks of integers; those of aggregate number `a` are the blocks from `a * parts` on."""

    digits: Array  # per block: digit by digit, lowest first, and there slot by slot
    size: Array  # per block: its digits in use; those beyond have any value
    register: Array
    slots: int
    parts: int
    bits: int  # of a digit of a settled block; the last digit is signed


def lacks_digits(n: Sums) -> bool:
    """Whether there should be more room before the next step."""
    return bool(n.register[LARGEST] > n.register[ALARM])


def empty(n: Sums, a: int) -> None:
    """Make an aggregate zero."""
    for block in range(a * n.parts, (a + 1) * n.parts):
        n.size[block] = 0


def add(n: Sums, a: int, b: int) -> None:
    """Add a block to another one."""
    size, before = n.size[b], n.size[a]
    both = min(size, before) * n.slots
    for at in range(both):
        n.digits[a, at] += n.digits[b, at]
    if size > before:
        to, rest = n.digits[a, both : size * n.slots], n.digits[b, both : size * n.slots]
        for at in range(len(to)):
            to[at] = rest[at]
        n.size[a] = size


def add_all(n: Sums, a: int, b: int) -> None:
    """Add an aggregate to another one."""
    for part in range(n.parts):
        add(n, a * n.parts + part, b * n.parts + part)


def subtract_all(n: Sums, a: int, b: int) -> None:
    """Take away an aggregate that was added."""
    for part in range(n.parts):
        one, other = a * n.parts + part, b * n.parts + part
        for at in range(n.size[other] * n.slots):
            n.digits[one, at] -= n.digits[other, at]


def add_one(n: Sums, a: int, slot: int) -> None:
    """Add one trend to a slot of an aggregate."""
    block = a * n.parts
    if n.size[block] == 0:
        for at in range(n.slots):
            n.digits[block, at] = 0
        n.size[block] = 1
    n.digits[block, slot] += 1


def add_times(n: Sums, a: int, b: int, factor: Array) -> None:
    """Add a settled block times a number, given as digits as `numbers` has them, which must be this block's too."""
    length = n.size[b]
    if length == 0:
        return
    for at in range(n.size[a] * n.slots, (length + len(factor)) * n.slots):
        n.digits[a, at] = 0
    n.size[a] = max(n.size[a], length + len(factor))
    for shift in range(len(factor)):
        low = shift * n.slots
        for at in range(length * n.slots):
            product = n.digits[b, at] * factor[shift]
            n.digits[a, low + at] += product & MASK
            n.digits[a, low + n.slots + at] += product >> BITS


def settle_sum(n: Sums, a: int) -> None:
    """Carry, and give up the last digit if it is zero in all slots."""
    size, slots, bits = n.size[a], n.slots, n.bits
    if size == 0:
        return
    mask = (1 << bits) - 1
    for at in range(0, (size - 1) * slots, slots):
        low, high = n.digits[a, at : at + slots], n.digits[a, at + slots : at + 2 * slots]
        for slot in range(slots):
            value = low[slot]
            low[slot] = value & mask
            high[slot] += value >> bits
    while True:
        low = n.digits[a, (size - 1) * slots : size * slots]
        used = spilt = 0
        for slot in range(slots):
            value = low[slot]
            used |= value
            spilt |= (value >> bits) ^ (value >> WORD)
        if spilt == 0:
            break
        high = n.digits[a, size * slots : (size + 1) * slots]
        for slot in range(slots):
            value = low[slot]
            low[slot] = value & mask
            high[slot] = value >> bits
        size += 1
    if used == 0:
        size -= 1
    n.size[a] = size
    n.register[LARGEST] = max(n.register[LARGEST], size)


def trim_all(n: Sums, a: int) -> bool:
    """Give up last digits that are zero in all slots; whether there is a trend left."""
    for block in range(a * n.parts, (a + 1) * n.parts):
        size = n.size[block]
        used = 0
        while size > 0 and used == 0:
            digits = n.digits[block, (size - 1) * n.slots : size * n.slots]
            for slot in range(n.slots):
                used |= digits[slot]
            if used == 0:
                size -= 1
        n.size[block] = size
    return bool(n.size[a * n.parts] > 0)


def clear_slot(n: Sums, a: int, slot: int) -> None:
    """Forget the trends of a slot of an aggregate."""
    for block in range(a * n.parts, (a + 1) * n.parts):
        for digit in range(n.size[block]):
            n.digits[block, digit * n.slots + slot] = 0


def clear_slots(n: Sums, a: int, low: int) -> None:
    """Forget the trends of as many slots of an aggregate as are cleared at once."""
    for block in range(a * n.parts, (a + 1) * n.parts):
        for digit in range(n.size[block]):
            words = n.digits[block, digit * n.slots + low : (digit + 1) * n.slots]
            for at in range(AT_ONCE):
                words[at] = 0


def total(n: Sums, a: int, digits: Array) -> bool:
    """Write down what the slots of an aggregate add up to, part by part, settled; whether there is a trend."""
    room = len(digits) // n.parts
    mask = (1 << n.bits) - 1
    used = 0
    for part in range(n.parts):
        block, first = a * n.parts + part, part * room
        settle_sum(n, block)
        carry = 0
        for digit in range(n.size[block]):
            value, slots = carry, n.digits[block, digit * n.slots : (digit + 1) * n.slots]
            for slot in range(n.slots):
                value += slots[slot]
            digits[first + digit] = value & mask
            carry = value >> n.bits
            if part == 0:
                used |= value
        for digit in range(n.size[block], room):
            digits[first + digit] = carry
            carry = 0
    return used != 0


HELPERS = (
    lacks_digits,
    empty,
    add,
    add_all,
    subtract_all,
    add_one,
    add_times,
    settle_sum,
    trim_all,
    clear_slot,
    clear_slots,
    total,
)
INLINED = (lacks_digits, empty, add, add_all, add_one, clear_slots)
