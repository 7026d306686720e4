"""Numbers beyond the exact ones: a float with an exponent of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import total_ordering

Exact = int | float | Fraction

_DECIMAL = Context(prec=40, Emax=MAX_EMAX, Emin=MIN_EMIN)


@total_ordering
@dataclass(frozen=True, eq=False)
class Approximate:
    """mantissa · 2^exponent, rounded as floats are; half <= |mantissa| < 1, or both zero. `whole`: of an integer.

    >>> Approximate.of(2**5000) + 2**5001 > 2**5001, str(Approximate.of(2**65536)), float(Approximate.of(6) / 4)
    (True, '2.0035e19728', 1.5)
    """

    mantissa: float
    exponent: int
    whole: bool = False

    @classmethod
    def of(cls, value: Exact | Approximate, exponent: int = 0, *, whole: bool = False) -> Approximate:
        """A number times 2^exponent."""
        if isinstance(value, Approximate):
            return value
        if isinstance(value, Fraction):
            return cls.of(value.numerator) / value.denominator
        if isinstance(value, int):
            shift = max(value.bit_length() - 64, 0)
            return cls.of(float(value >> shift), shift, whole=True)
        mantissa, size = math.frexp(value)
        return cls(mantissa, exponent + size if mantissa else 0, whole)

    @classmethod
    def parse(cls, text: str) -> Approximate:
        """The number that a decimal text of any size stands for; of an integer, as counts are.

        >>> str(Approximate.parse("-2.0035e19728")), float(Approximate.parse("6.0000e0"))
        ('-2.0035e19728', 6.0)
        """
        value = Decimal(text)
        # Two to this power is near enough for the rest to be a float.
        size = value.adjusted() * 3322 // 1000 if value else 0
        rest = _DECIMAL.divide(value, _DECIMAL.power(Decimal(2), size))
        return cls.of(float(rest), size, whole=True)

    def __add__(self, other: Exact | Approximate) -> Approximate:
        """The sum."""
        low, high = sorted((self, Approximate.of(other)), key=lambda n: (n.mantissa != 0, n.exponent))
        behind = max(low.exponent - high.exponent, -1000)
        total = high.mantissa + math.ldexp(low.mantissa, behind)
        return Approximate.of(total, high.exponent, whole=low.whole and high.whole)

    __radd__ = __add__

    def __neg__(self) -> Approximate:
        """The same number with the other sign."""
        return Approximate(-self.mantissa, self.exponent, self.whole)

    def __sub__(self, other: Exact | Approximate) -> Approximate:
        """The difference."""
        return self + -Approximate.of(other)

    def __rsub__(self, other: Exact) -> Approximate:
        """The difference."""
        return -self + other

    def __mul__(self, other: Exact | Approximate) -> Approximate:
        """The product."""
        two = Approximate.of(other)
        product = self.mantissa * two.mantissa
        return Approximate.of(product, self.exponent + two.exponent, whole=self.whole and two.whole)

    __rmul__ = __mul__

    def __truediv__(self, other: Exact | Approximate) -> Approximate:
        """The quotient."""
        two = Approximate.of(other)
        return Approximate.of(self.mantissa / two.mantissa, self.exponent - two.exponent)

    def __rtruediv__(self, other: Exact) -> Approximate:
        """The quotient."""
        return Approximate.of(other) / self

    def __eq__(self, other: object) -> bool:
        """Whether both have the same value."""
        return isinstance(other, Exact | Approximate) and (self - other).mantissa == 0

    def __lt__(self, other: Exact | Approximate) -> bool:
        """Whether this one is less."""
        return (self - other).mantissa < 0

    def __bool__(self) -> bool:
        """Whether this is not zero."""
        return self.mantissa != 0

    def __float__(self) -> float:
        """The nearest float; an OverflowError where there is none."""
        return math.ldexp(self.mantissa, self.exponent)

    def __str__(self) -> str:
        """Five digits and an exponent of ten."""
        value = _DECIMAL.multiply(Decimal(self.mantissa), _DECIMAL.power(Decimal(2), self.exponent))
        digits, _, exponent = f"{value:.4e}".partition("e")
        return f"{digits}e{int(exponent)}"
