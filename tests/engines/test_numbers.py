"""Numbers: exact at the edges of machine words and floats; rounded beyond the budgets, with the error that is said."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.approximate import Approximate
from pipeline.engines.choice import ENGINES
from pipeline.engines.contract import Cost, Limits, Value
from pipeline.engines.kernels import numbers
from pipeline.errors import DidNotFinishError
from pipeline.events import Clock, Events, Numbers, Texts, TimeStyle
from pipeline.query.check import check
from pipeline.run import fit_events, run_rows
from tests.engines.test_against_oracle import many
from tests.engines.test_online import one_type

ONLINE = ("pane", "cogra", "greta")
BY_NAME = {engine.name: engine for engine in ENGINES}
EDGES = [2**63 - 1, 2**63, 2**63 + 1, 10**38 - 1, 10**38, 10**308, 10**308 + 1, 2**1024 - 1, 2**1024]


def counted(target: int) -> Events:
    """A stream on which SEQ(A+, B) has just so many trends: a b after k a's ends 2^k - 1 of them."""
    times, types, after = [], [], []
    for k in range(target.bit_length(), 0, -1):
        copies, target = divmod(target, 2**k - 1)
        after += [k] * copies
    for k in range(1, max(after) + 1):
        times.append(2 * k)
        types.append(0)
    for k in after:
        times.append(2 * k + 1)
        types.append(1)
    return Events(
        time=np.array(times),
        clock=Clock(1, TimeStyle.INTEGER),
        types=(Texts(np.array(types, np.int32), ("A", "B")),),
        attributes={},
        known=(),
        open_schema=False,
    )


def count(engine: str, events: Events, limits: Limits) -> dict[str, object]:
    query = check("RETURN COUNT(*) PATTERN SEQ(A+, B) WITHIN 10 weeks SLIDE 10 weeks")
    (row,) = run_rows(query, BY_NAME[engine], fit_events(query, events, "events"), limits, Cost())
    return row


@pytest.mark.parametrize("engine", ONLINE)
@pytest.mark.parametrize("target", EDGES)
def test_counts_at_the_edges(engine: str, target: int) -> None:
    row = count(engine, counted(target), Limits())
    assert row["COUNT(*)"] == target
    assert "exact" not in row


@pytest.mark.parametrize("engine", ["pane", "cogra"])
def test_the_last_exact_count_and_the_first_rounded_one(engine: str) -> None:
    row = count(engine, counted(2**65536 - 1), Limits())
    assert row["COUNT(*)"] == 2**65536 - 1
    assert "exact" not in row
    row = count(engine, counted(2**65536), Limits())
    assert (row["COUNT(*)"], row["exact"]) == ("2.0035e19728", False)


@pytest.mark.parametrize("engine", ONLINE)
@pytest.mark.parametrize("size", [500, 2000])
def test_beyond_the_bits_within_the_promised_error(engine: str, size: int) -> None:
    """Each of n events is in half of the 2^n subsets; values of both signs nearly cancel out."""
    values = [random.Random(size).uniform(-1000, 1000) for _ in range(size)]
    text = "RETURN COUNT(*), COUNT(A), SUM(A.x), AVG(A.x), MIN(A.x), MAX(A.x) PATTERN A+ WITHIN 1 week SLIDE 1 week"
    query = check(text)
    fitted = fit_events(query, one_type(values), "events")
    (row,) = BY_NAME[engine].run(query, fitted.stream, Limits(bits=64), Cost())
    trends, events, total, mean, least, greatest = row.values
    half = 2 ** (size - 1)
    error = Fraction(size, 2**52)
    assert_close(trends, Fraction(2 * half - 1), error * 2 * half)
    assert_close(events, Fraction(size * half), error * size * half)
    exact, absolute = (sum(map(Fraction, numbers)) for numbers in (values, map(abs, values)))
    assert_close(total, exact * half, error * absolute * half)
    assert_close(mean, exact / size, 3 * error * absolute / size)
    assert (least, greatest) == (min(values), max(values))
    shown = run_rows(query, BY_NAME[engine], fitted, Limits(bits=64), Cost())[0]
    assert shown["exact"] is False
    assert isinstance(shown["AVG(A.x)"], float)


def assert_close(value: Value, exact: Fraction, error: Fraction) -> None:
    assert isinstance(value, Approximate)
    found = Fraction(value.mantissa) * Fraction(2) ** value.exponent
    assert abs(found - exact) <= error


@pytest.mark.parametrize("engine", ONLINE)
def test_short_of_memory_it_goes_on_rounded(engine: str) -> None:
    """2^3000 needs a hundred digits; there is memory for some dozens an aggregate."""
    events = one_type([0] * 3000)
    query = check("RETURN COUNT(*) PATTERN A+ WITHIN 1 week SLIDE 1 week")
    fitted = fit_events(query, events, "events")
    (row,) = run_rows(query, BY_NAME[engine], fitted, Limits(memory=250_000), Cost())
    assert (row["COUNT(*)"], row["exact"]) == ("1.2302e903", False)  # 2 ** 3000
    with pytest.raises(DidNotFinishError, match="may be used"):
        run_rows(query, BY_NAME[engine], fitted, Limits(memory=1000), Cost())


@pytest.mark.parametrize("engine", ["pane", "cogra"])
def test_only_the_windows_beyond_the_bits_are_rounded(engine: str) -> None:
    times = [*range(0, 50), *range(100, 180), *range(200, 210)]
    events = one_type([0] * len(times))
    query = check("RETURN COUNT(*) PATTERN A+ WITHIN 100 s SLIDE 100 s")
    fitted = fit_events(query, Events(np.array(times), *list(vars(events).values())[1:]), "events")
    rows = run_rows(query, BY_NAME[engine], fitted, Limits(bits=64), Cost())
    assert [row["COUNT(*)"] for row in rows] == [2**50 - 1, "1.2089e24", 2**10 - 1]  # 2 ** 80
    assert [row.get("exact") for row in rows] == [None, False, None]


@many
@given(
    slots=st.sampled_from([1, 3]),
    room=st.sampled_from([4, 8, 60]),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["plus", "one", "product", "times", "clear", "trim"]),
            st.integers(0, 3),
            st.integers(0, 3),
            st.lists(st.one_of(st.integers(-(2**30) + 1, 2**30 - 1), st.just(0)), min_size=1, max_size=3),
        ),
        max_size=60,
    ),
)
def test_blocks_against_integers(slots: int, room: int, steps: list[tuple[str, int, int, list[int]]]) -> None:
    n = numbers.Numbers(
        digits=np.full((4, room * slots), 99, np.int64),
        size=np.zeros(4, np.int64),
        bound=np.zeros(4, np.int64),
        mantissa=np.zeros((4, slots)),
        exponent=np.zeros((4, slots), np.int64),
        register=np.array([0, numbers.NO_ALARM]),
        slots=slots,
    )
    exact = [[0] * slots for _ in range(4)]
    absolute = [[0] * slots for _ in range(4)]

    def add(a: int, terms: list[int], sizes: list[int]) -> None:
        exact[a] = [x + y for x, y in zip(exact[a], terms, strict=True)]
        absolute[a] = [x + y for x, y in zip(absolute[a], sizes, strict=True)]

    for operation, a, b, digits in steps:
        if operation == "plus":
            add(a, exact[b], absolute[b])
            numbers.plus(n, a, b)
        elif operation == "one":
            add(a, [int(slot == b % slots) for slot in range(slots)], [int(slot == b % slots) for slot in range(slots)])
            numbers.plus_one(n, a, b % slots)
        elif operation == "product" and a != b:
            factor = sum(digit << (numbers.BITS * at) for at, digit in enumerate(digits))
            add(a, [x * factor for x in exact[b]], [x * abs(factor) for x in absolute[b]])
            numbers.plus_product(n, a, b, np.array(digits, np.int32), len(digits))
        elif operation == "times" and a != b:
            factor, size = exact[3][0], absolute[3][0]
            if 3 not in (a, b):
                add(a, [x * factor for x in exact[b]], [x * size for x in absolute[b]])
                numbers.plus_times(n, a, b, n, 3, 0)
        elif operation == "clear":
            exact[a], absolute[a] = [0] * slots, [0] * slots
            numbers.clear(n, a)
        elif operation == "trim":
            numbers.trim(n, a)
        for block in range(4):
            for slot in range(slots):
                value, rounded = held(n, block, slot)
                error = absolute[block][slot] * Fraction(8 * len(steps), 2**52) if rounded else 0
                assert abs(value - exact[block][slot]) <= error


def held(n: numbers.Numbers, block: int, slot: int) -> tuple[Fraction, bool]:
    if n.size[block] < 0:
        return Fraction(float(n.mantissa[block, slot])) * Fraction(2) ** int(n.exponent[block, slot]), True
    digits = n.digits[block, slot : n.size[block] * n.slots : n.slots]
    return Fraction(sum(int(digit) << (numbers.BITS * at) for at, digit in enumerate(digits))), False


def test_both_zeros_are_one_partition() -> None:
    query = check("RETURN COUNT(*) PATTERN SEQ(A, A) WHERE [x] WITHIN 1 week SLIDE 1 week")
    (row,) = run_rows(query, BY_NAME["pane"], fit_events(query, one_type([0.0, -0.0]), "events"), Limits(), Cost())
    assert row["COUNT(*)"] == 1


def test_a_block_that_becomes_floats_when_looked_at_is_not_zero() -> None:
    n = numbers.Numbers(
        digits=np.full((1, 1), 2**61, np.int64),
        size=np.ones(1, np.int64),
        bound=np.full(1, 2**61),
        mantissa=np.zeros((1, 1)),
        exponent=np.zeros((1, 1), np.int64),
        register=np.array([1, numbers.NO_ALARM]),
        slots=1,
    )
    assert not numbers.is_zero(n, 0, 0)
    assert n.size[0] == numbers.FLOATS


def test_columns_of_numbers_of_all_sizes() -> None:
    """Sums of integers beyond 64 bits, beside floats from 1e-300 to 1e300, are exact."""
    for values in ([2**200, -(2**199), 3], [1e300, 1e-300, -1e300], [-(2**63), 2**63 - 1]):
        query = check("RETURN SUM(A.x) PATTERN A WITHIN 1 week SLIDE 1 week")
        numbers_column = one_type(values).attributes["x"]
        assert isinstance(numbers_column, Numbers)
        (row,) = run_rows(query, BY_NAME["pane"], fit_events(query, one_type(values), "events"), Limits(), Cost())
        assert row["SUM(A.x)"] == (sum(values) if isinstance(values[0], int) else 1e-300)
