"""Numbers of any size in compiled loops: blocks of integers with digits of 30 bits, or of floats with own exponents.

A block holds one number a slot, all slots side by side, so that adding two blocks is one loop over machine words.
Carries wait: a digit is a 64-bit word that may hold more than 30 bits, and `bound` says how much more at most, so that
digits are carried only when a word would overflow. A block that outgrows its room goes on as floats, which are inexact.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.events import Array

BITS = 30
MASK = 2**BITS - 1
BASE = float(2**BITS)
LIMIT = 2**62  # what the bound of a word may reach
FLOATS = -1  # in `size`

# A float is mantissa · 2^exponent; exponents are multiples of STEP, mantissas are below 2^STEP.
STEP = 512
LARGE, SMALL = 2.0**STEP, 2.0**-STEP

LARGEST, ALARM = 0, 1  # registers: the most digits in use, and how many ask for more room
NO_ALARM = 2**60  # there is no more room to be had


class Numbers(NamedTuple):
    """Blocks of numbers: what each of them holds."""

    digits: Array  # per block: digit by digit, lowest first, and there slot by slot
    size: Array  # per block: its digits in use; those beyond have any value
    bound: Array  # per block: no digit is larger
    mantissa: Array  # per block and slot
    exponent: Array
    register: Array
    slots: int


def is_crowded(n: Numbers) -> bool:
    """Whether there should be more room before the next step."""
    return bool(n.register[LARGEST] > n.register[ALARM])


def widen(n: Numbers, a: int, size: int) -> bool:
    """Make room for so many digits in a settled block; False where there is none and it became floats."""
    if n.size[a] < 0:
        return False
    if size * n.slots > n.digits.shape[1]:
        make_floats(n, a)
        return False
    for at in range(n.size[a] * n.slots, size * n.slots):
        n.digits[a, at] = 0
    if size > n.size[a]:
        n.size[a] = size
        n.register[LARGEST] = max(n.register[LARGEST], size)
    return True


def settle(n: Numbers, a: int) -> None:
    """Carry, so that no digit has more than 30 bits."""
    size = n.size[a]
    if size <= 0 or n.bound[a] <= MASK + 1:
        return
    slots = n.slots
    while True:
        last = (size - 1) * slots
        for at in range(last):
            value = n.digits[a, at]
            n.digits[a, at] = value & MASK
            n.digits[a, at + slots] += value >> BITS
        fits = True
        for at in range(last, last + slots):
            fits &= -MASK - 1 <= n.digits[a, at] <= MASK
        if fits:
            break
        # The last digits are signed; what they hold too much becomes a further one.
        if not widen(n, a, size + 1):
            return
        size += 1
    n.bound[a] = MASK + 1


def clear(n: Numbers, a: int) -> None:
    """Make a block zero."""
    n.size[a] = 0
    n.bound[a] = 0


def plus(n: Numbers, a: int, b: int) -> None:
    """Add a block to another, or to itself."""
    bound = n.bound[a] + n.bound[b]
    size = n.size[b]
    before = n.size[a]
    if size == 1 and before == 1 and n.slots == 1 and bound <= LIMIT:  # most often, and without a loop
        n.digits[a, 0] += n.digits[b, 0]
        n.bound[a] = bound
    elif size >= 0 and before >= 0 and bound <= LIMIT:
        both = min(size, before) * n.slots
        if a == b:  # a loop over two rows that are one could not take several words at once
            for at in range(both):
                n.digits[a, at] *= 2
        else:
            for at in range(both):
                n.digits[a, at] += n.digits[b, at]
        for at in range(both, size * n.slots):
            n.digits[a, at] = n.digits[b, at]
        n.bound[a] = bound
        if size > before:
            n.size[a] = size
    elif size < 0 and before < 0:
        for slot in range(n.slots):
            total = n.mantissa[a, slot] + n.mantissa[b, slot]
            if n.exponent[a, slot] == n.exponent[b, slot] and -LARGE < total < LARGE:
                n.mantissa[a, slot] = total
            else:
                plus_float(n, a, slot, n.mantissa[b, slot], n.exponent[b, slot])
    else:
        plus_slowly(n, a, b)


def plus_slowly(n: Numbers, a: int, b: int) -> None:
    """Add a block to another where digits are to be carried first, or where one of them is of floats."""
    settle(n, b)
    settle(n, a)
    if n.size[a] < 0 or n.size[b] < 0:
        plus_floats(n, a, b, 1.0, 0)
        return
    widen(n, a, n.size[b])
    for at in range(n.size[b] * n.slots):
        n.digits[a, at] += n.digits[b, at]
    n.bound[a] += n.bound[b]


def plus_one(n: Numbers, a: int, slot: int) -> None:
    """Add one to a slot."""
    if n.size[a] > 0 and n.bound[a] < LIMIT:
        n.digits[a, slot] += 1
        n.bound[a] += 1
    elif n.size[a] == 0 and n.slots == 1:
        n.digits[a, 0] = n.size[a] = n.bound[a] = 1
        n.register[LARGEST] = max(n.register[LARGEST], 1)
    elif n.size[a] >= 0 or n.exponent[a, slot] <= STEP:
        plus_one_slowly(n, a, slot)


def plus_one_slowly(n: Numbers, a: int, slot: int) -> None:
    """Add one to a slot of a block that is empty, full, or of floats."""
    settle(n, a)
    if widen(n, a, max(n.size[a], 1)):
        n.digits[a, slot] += 1
        n.bound[a] += 1
    else:
        plus_float(n, a, slot, 1.0, 0)


def plus_product(n: Numbers, a: int, b: int, factor: Array, size: int) -> None:
    """Add a block (not the same one) times a number, given as so many settled digits."""
    while size > 0 and factor[size - 1] == 0:
        size -= 1
    if size == 0 or n.size[b] == 0:
        return
    if size == 1 and factor[0] == 1:
        plus(n, a, b)
        return
    settle(n, b)
    length = n.size[b]
    if (length + size) * n.slots > n.digits.shape[1]:
        settle(n, a)
    if length < 0 or not widen(n, a, max(n.size[a], length + size)):
        plus_floats(n, a, b, *as_float(factor, size - 1, 1))
        return
    slots = n.slots
    for shift in range(size):
        digit = factor[shift]
        if n.bound[a] + 2 * (MASK + 1) > LIMIT:
            settle(n, a)
            if n.size[a] < 0:  # its lower digits are in it already; the others follow as a float
                plus_floats(n, a, b, *rest_of(factor, shift, size))
                return
        low = shift * slots
        for at in range(length * slots):
            product = n.digits[b, at] * digit
            n.digits[a, low + at] += product & MASK
            n.digits[a, low + slots + at] += product >> BITS
        n.bound[a] += 2 * (MASK + 1)


def plus_times(n: Numbers, a: int, b: int, m: Numbers, k: int, slot: int) -> None:
    """Add a block times one number of another, which may be of other numbers."""
    settle(m, k)
    size = m.size[k]
    if size < 0:
        if m.mantissa[k, slot] != 0:
            plus_floats(n, a, b, m.mantissa[k, slot], m.exponent[k, slot])
    elif size > 0:
        plus_product(n, a, b, m.digits[k, slot :: m.slots], size)


def trim(n: Numbers, a: int) -> None:
    """Give up leading digits that are zero in all slots."""
    settle(n, a)
    size = n.size[a]
    while size > 0:
        zero = True
        for at in range((size - 1) * n.slots, size * n.slots):
            zero &= n.digits[a, at] == 0
        if not zero:
            break
        size -= 1
    n.size[a] = size


def lacks_room(n: Numbers, digits: int) -> bool:
    """Whether numbers of so many digits need more room, which there may be."""
    return bool(n.register[ALARM] < NO_ALARM and digits * n.slots > n.digits.shape[1])


def rest_of(factor: Array, shift: int, size: int) -> tuple[float, int]:
    mantissa, exponent = as_float(factor[shift:], size - shift - 1, 1)
    return times_power(mantissa, exponent, shift * BITS)


def is_zero(n: Numbers, a: int, slot: int) -> bool:
    """Whether a slot holds zero."""
    settle(n, a)
    if n.size[a] < 0:
        return bool(n.mantissa[a, slot] == 0)
    zero = True
    for at in range(slot, n.size[a] * n.slots, n.slots):
        zero &= n.digits[a, at] == 0
    return zero


# --------------------------------------------------------------------------------------------------------------- floats


def times_power(mantissa: float, exponent: int, bits: int) -> tuple[float, int]:
    """A float times a power of two, with its exponent a multiple of STEP again."""
    exponent += bits
    rest = exponent % STEP
    mantissa *= 2.0**rest
    exponent -= rest
    while abs(mantissa) >= LARGE:
        mantissa *= SMALL
        exponent += STEP
    return mantissa, exponent


def as_float(digits: Array, at: int, step: int) -> tuple[float, int]:
    """The number whose digits stand `step` apart, the last one at `at`, as a float."""
    mantissa = 0.0
    zero = at % step
    while at >= 0 and abs(mantissa) < 2.0**100:
        mantissa = mantissa * BASE + digits[at]
        at -= step
    return times_power(mantissa, 0, (at - zero) // step * BITS + BITS)


def make_floats(n: Numbers, a: int) -> None:
    """Turn a settled block into floats."""
    for slot in range(n.slots):
        if n.size[a] == 0:
            mantissa, exponent = 0.0, 0
        else:
            mantissa, exponent = as_float(n.digits[a], (n.size[a] - 1) * n.slots + slot, n.slots)
        n.mantissa[a, slot] = mantissa
        n.exponent[a, slot] = exponent
    n.size[a] = FLOATS
    n.bound[a] = 0


def plus_float(n: Numbers, a: int, slot: int, mantissa: float, exponent: int) -> None:
    """Add a float to a slot of a block of floats."""
    if mantissa == 0:
        return
    total = n.mantissa[a, slot]
    ahead = exponent - n.exponent[a, slot]
    if total == 0 or ahead > STEP:
        total = mantissa
        n.exponent[a, slot] = exponent
    elif ahead == 0:
        total += mantissa
    elif ahead == STEP:
        total = total * SMALL + mantissa
        n.exponent[a, slot] = exponent
    elif ahead == -STEP:
        total += mantissa * SMALL
    if abs(total) >= LARGE:
        total *= SMALL
        n.exponent[a, slot] += STEP
    n.mantissa[a, slot] = total


def plus_floats(n: Numbers, a: int, b: int, factor: float, power: int) -> None:
    """Add a block, times a float, to one that is one of floats from now on."""
    if n.size[b] == 0:
        return
    settle(n, b)
    settle(n, a)
    if n.size[a] >= 0:
        make_floats(n, a)
    for slot in range(n.slots):
        if n.size[b] < 0:
            mantissa, exponent = n.mantissa[b, slot], n.exponent[b, slot]
        else:
            mantissa, exponent = as_float(n.digits[b], (n.size[b] - 1) * n.slots + slot, n.slots)
        if factor != 1.0 or power != 0:
            mantissa, exponent = times_power(mantissa * factor, exponent + power, 0)
        plus_float(n, a, slot, mantissa, exponent)


HELPERS = (
    is_crowded,
    times_power,
    as_float,
    plus_float,
    make_floats,
    widen,
    settle,
    clear,
    plus_floats,
    plus_slowly,
    plus,
    plus_one_slowly,
    plus_one,
    rest_of,
    plus_product,
    plus_times,
    trim,
    lacks_room,
    is_zero,
)
INLINED = (is_crowded, plus, plus_one)  # a call would take longer than what they do
