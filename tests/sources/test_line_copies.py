"""Equal lines are numbered as a plain count does it, over many blocks and in a table that grows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.sources.line_copies import LONG, Copies, line_hashes


def arrays(lines: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Lines one after another, and where each begins."""
    return np.frombuffer(b"".join(lines), np.uint8), np.cumsum([0, *map(len, lines)]).astype(np.int32)


def plain(lines: list[bytes]) -> list[int]:
    """The numbers by a dictionary."""
    seen: Counter[bytes] = Counter()
    numbers = []
    for line in lines:
        numbers.append(seen[line])
        seen[line] += 1
    return numbers


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text("ab\0", max_size=20).map(str.encode), max_size=30), max_size=5))
def test_numbers_of_equal_lines(blocks: list[list[bytes]]) -> None:
    copies = Copies()
    found = [number for block in blocks for number in copies.number(*arrays(block)).tolist()]
    assert found == plain([line for block in blocks for line in block])


def test_many_lines_in_a_table_that_grows() -> None:
    random = np.random.default_rng(1)
    lines = [b"%d,%d" % (a, b) for a, b in random.integers(0, 300, (60_000, 2))]
    copies = Copies()
    found = [n for start in range(0, len(lines), 7_000) for n in copies.number(*arrays(lines[start : start + 7_000]))]
    assert found == plain(lines)
    assert max(found) > 0


def test_hashes_differ() -> None:
    """Lines that differ in length, in one byte, or in order, be they short or long."""
    long = b"x" * LONG
    lines = [b"", b"\0", b"\0\0", b"a", b"b", b"12345678", b"123456781", b"812345678", b"12345678\0"]
    lines += [long, long[:-1], long + b"x", b"y" + long[1:], long[:-1] + b"y"]
    assert len({*line_hashes(*arrays(lines)).tolist()}) == len(lines)
    ticks = [b"%d,491800,300,P,2000,0" % time for time in range(100_000)]
    assert len({*line_hashes(*arrays(ticks)).tolist()}) == len(ticks)
