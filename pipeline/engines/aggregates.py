"""The aggregates that online engines keep: made, given more room, and read out as Python's numbers."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import groupby, repeat
from operator import itemgetter
from typing import Any

import numpy as np

from pipeline.approximate import Approximate
from pipeline.engines.contract import Limits, Row
from pipeline.engines.kernels import numbers
from pipeline.engines.kernels.cells import NO_MAXIMUM, NO_MINIMUM, Cells, Weights
from pipeline.engines.kernels.sase import COUNT, MAXIMUM, MINIMUM, SUM
from pipeline.engines.measures import Measures, Number, integers
from pipeline.engines.stream import Window
from pipeline.engines.totals import Totals, carried
from pipeline.errors import DidNotFinishError
from pipeline.events import Array
from pipeline.query.checked import Query

FEW_DIGITS = 8  # of numbers that are added up in machine words, which take four times the memory of Python's


def make_weights(measures: Measures) -> Weights:
    """What each event adds to a query's measures."""
    counted = [at for at, kind in enumerate(measures.kinds) if kind in (COUNT, SUM)]
    ranked = [at for at, kind in enumerate(measures.kinds) if kind not in (COUNT, SUM)]
    states, size = len(measures.automaton.states), measures.size
    sums = iter(range(len(measures.sums)))
    depth = max((len(column.limbs) for column in measures.sums), default=0)
    if len(measures.sums) == 1:
        digit = measures.sums[0].limbs[None]
    else:
        digit = np.zeros((len(measures.sums), depth, size), np.int32)
        for row, column in enumerate(measures.sums):
            digit[row, : len(column.limbs)] = column.limbs
    measured = np.array(measures.states, bool).reshape(-1, states)
    return Weights(
        plain=np.logical_not(measured.any(axis=0)),
        sums=np.array([next(sums) if measures.kinds[at] == SUM else -1 for at in counted], np.int64),
        part_counts=measured[counted],
        present=np.array([measures.weights[at] != 0 for at in counted], bool).reshape(len(counted), size),
        digit=digit,
        rank_counts=measured[ranked],
        value=np.array([measures.weights[at] for at in ranked], np.int32).reshape(len(ranked), size),
    )


class Pool:
    """Aggregates for a kernel, all of one size; they grow up to the budgets of bits and memory, then become floats."""

    def __init__(self, measures: Measures, count: int, limits: Limits, *, slots: int = 1) -> None:
        self.kinds = measures.kinds
        parts = 1 + sum(kind in (COUNT, SUM) for kind in self.kinds)
        least = np.array([kind == MINIMUM for kind in self.kinds if kind not in (COUNT, SUM)], bool)
        # One step adds a value, and a few carries.
        self._margin = max((len(column.limbs) for column in measures.sums), default=0) + 4
        wanted = limits.bits // numbers.BITS + 1 + self._margin
        bytes_a_digit = 8 * count * parts * slots
        self._most = max(min(wanted, limits.memory // bytes_a_digit), self._margin)
        if bytes_a_digit * self._margin > limits.memory:
            raise DidNotFinishError(
                f"did not finish: {count * slots:,} aggregates at once need {bytes_a_digit * self._margin / 1e9:.1f} "
                f"GB, {limits.memory / 1e9:.1f} GB may be used\nhint: fewer events in a window"
            )
        blocks = count * parts
        self.cells = Cells(
            numbers=numbers.Numbers(
                digits=np.zeros((blocks, 0), np.int64),
                size=np.zeros(blocks, np.int64),
                bound=np.zeros(blocks, np.int64),
                mantissa=np.zeros((blocks, slots)),
                exponent=np.zeros((blocks, slots), np.int64),
                register=np.zeros(2, np.int64),
                slots=slots,
            ),
            parts=parts,
            rank=np.tile(np.where(least, NO_MINIMUM, NO_MAXIMUM)[:, None], (count, 1, slots)),
            least=least,
        )
        self._give(2 * self._margin)

    def grow(self) -> None:
        """Give all numbers twice the room, as far as the budgets allow."""
        self._give(2 * self.cells.numbers.digits.shape[1] // self.cells.numbers.slots)

    def _give(self, room: int) -> None:
        n = self.cells.numbers
        room = min(room, self._most)
        digits = np.zeros((len(n.size), room * n.slots), np.int64)
        digits[:, : n.digits.shape[1]] = n.digits
        n.register[numbers.ALARM] = numbers.NO_ALARM if room == self._most else room - self._margin
        self.cells = self.cells._replace(numbers=n._replace(digits=digits))

    def load(self, first: int, cells: Cells) -> None:
        """Put aggregates in the place of those from one on."""
        n, others = self.cells.numbers, cells.numbers
        while n.digits.shape[1] < others.digits.shape[1]:
            self.grow()
            n = self.cells.numbers
        blocks = slice(first * self.cells.parts, first * self.cells.parts + len(others.size))
        n.digits[blocks, : others.digits.shape[1]] = others.digits
        for mine, other in zip(n[1:5], others[1:5], strict=True):
            mine[blocks] = other
        n.register[numbers.LARGEST] = max(n.register[numbers.LARGEST], int(others.size.max(initial=0)))
        self.cells.rank[first : first + len(cells.rank)] = cells.rank

    def add_to(
        self, found: Found, windows: Array, groups: Array, first: int, *, slot: int = 0, ended: Array | None = None
    ) -> None:
        """Add consecutive aggregates, from the first on, to what was found in these windows and groups."""
        cells, n = self.cells, self.cells.numbers
        rows = np.arange(first, first + len(windows))
        blocks = rows[:, None] * cells.parts + np.arange(cells.parts)
        sizes = n.size[blocks]
        few = ((sizes >= 0) & (sizes <= FEW_DIGITS)).all(axis=1)
        most = max(int(sizes[few].max(initial=0)), 1)
        digits = n.digits[blocks[few], slot : most * n.slots : n.slots]
        exact = np.where(np.arange(most) < sizes[few][:, :, None], digits, 0)
        ranks = [cells.rank[rows[few], r, slot] for r in range(len(cells.least))]
        found.add_exact(windows[few], groups[few], exact, ranks, None if ended is None else ended[few])
        if not few.all():
            others = ~few
            columns = self.columns(rows[others], slot)
            found.add(windows[others], groups[others], columns, None if ended is None else ended[others])

    def columns(self, rows: Array, slot: int = 0) -> list[Sequence[Number]]:
        """Some aggregates: the numbers of trends, then each measure's values in its order."""
        cells = self.cells
        parts = (self._numbers(rows * cells.parts + part, slot) for part in range(cells.parts))
        ranks = (cells.rank[rows, r, slot].tolist() for r in range(len(cells.least)))
        trends = next(parts)
        return [trends, *(next(parts) if kind in (COUNT, SUM) else next(ranks) for kind in self.kinds)]

    def _numbers(self, blocks: Array, slot: int) -> Sequence[Number]:
        n = self.cells.numbers
        sizes = n.size[blocks]
        most = max(int(sizes.max(initial=0)), 1)
        digits = n.digits[blocks, slot : most * n.slots : n.slots]
        values: list[Number] = list(integers(np.where(np.arange(most) < sizes[:, None], digits, 0)))
        for at in np.flatnonzero(sizes == numbers.FLOATS).tolist():
            block = blocks[at]
            values[at] = Approximate.of(float(n.mantissa[block, slot]), int(n.exponent[block, slot]), whole=True)
        return values


def taken(cells: Cells, order: Array) -> Cells:
    """Some aggregates of a pool, by themselves."""
    n = cells.numbers
    blocks = (order[:, None] * cells.parts + np.arange(cells.parts)).ravel()
    size = n.size[blocks]
    most = int(size.max(initial=0)) * n.slots
    few = numbers.Numbers(
        digits=n.digits[blocks, :most],
        size=size,
        bound=n.bound[blocks],
        mantissa=n.mantissa[blocks],
        exponent=n.exponent[blocks],
        register=np.zeros(2, np.int64),
        slots=n.slots,
    )
    return cells._replace(numbers=few, rank=cells.rank[order])


def scaled(cells: Cells, blocks: Array, bits: int) -> Cells:
    """Settled numbers times 2^bits, in these blocks."""
    n = cells.numbers
    if bits == 0 or not len(blocks):
        return cells
    whole, rest = divmod(bits, numbers.BITS)
    digits = np.zeros((len(n.size), n.digits.shape[1] + whole * n.slots), np.int64)
    digits[:, : n.digits.shape[1]] = n.digits
    digits[blocks] = 0
    digits[blocks, whole * n.slots :] = n.digits[blocks] << rest
    size, bound, mantissa, exponent = (array.copy() for array in n[1:5])
    size[blocks] = np.where(size[blocks] > 0, size[blocks] + whole, size[blocks])
    bound[blocks] <<= rest
    for block in blocks[size[blocks] == numbers.FLOATS]:
        for slot in range(n.slots):
            m, e = numbers.times_power(float(mantissa[block, slot]), int(exponent[block, slot]), bits)
            mantissa[block, slot], exponent[block, slot] = m, e
    return cells._replace(
        numbers=n._replace(digits=digits, size=size, bound=bound, mantissa=mantissa, exponent=exponent)
    )


class Found:
    """Finished rows; those of one group and window are added up, be they of other partitions or parts of the window."""

    def __init__(self, query: Query, measures: Measures) -> None:
        self._query, self._measures = query, measures
        self._join = [operator.add, *(_JOIN[kind] for kind in measures.kinds), operator.or_]
        self._found: dict[tuple[int, int], list[Any]] = {}
        self._steps: dict[int, list[_Step]] = defaultdict(list)  # by group
        ranked = [_UFUNC[kind] for kind in measures.kinds if kind not in (COUNT, SUM)]
        parts = 1 + len(measures.kinds) - len(ranked)
        self._exact = Totals(parts, numbers.BITS, [*ranked, np.logical_or])

    def add_exact(
        self, windows: Array, groups: Array, digits: Array, ranks: Sequence[Array] = (), ended: Array | None = None
    ) -> None:
        """Add rows of exact numbers, not too large: the digits of each part, and a column a rank.

        `ended`: whether a trend ends just where the window does.
        """
        ends = np.ones(len(windows), bool) if ended is None else ended.astype(bool)
        self._exact.add(windows, groups, carried(digits), [*ranks, ends])

    def add(
        self, windows: Array, groups: Array, columns: Sequence[Sequence[Number]], ended: Array | None = None
    ) -> None:
        """Add rows of any numbers, given as columns: the numbers of trends, then each measure's."""
        ends = [True] * len(windows) if ended is None else ended.astype(bool).tolist()
        for window, group, *row in zip(windows.tolist(), groups.tolist(), *columns, ends, strict=True):
            before = self._found.get((window, group))
            if before is not None:
                row = [join(a, b) for join, a, b in zip(self._join, before, row, strict=True)]
            self._found[window, group] = row

    def add_steps(
        self, windows: Array, until: Array, groups: Array, columns: Sequence[Sequence[Number]], ended: Array
    ) -> None:
        """Add rows of partitions that are the same in all windows from one up to another."""
        lists = (windows.tolist(), until.tolist(), groups.tolist(), ended.astype(bool).tolist())
        for window, end, group, is_end, *row in zip(*lists, *columns, strict=True):
            self._steps[group].append((window, end, is_end, row))

    def _climb(self) -> None:
        """Add up the steps that hold in each window in which a trend ends."""
        adds = all(kind in (COUNT, SUM) for kind in self._measures.kinds)
        for group, steps in self._steps.items():
            exact = adds and not any(isinstance(value, Approximate) for *_, row in steps for value in row)
            ups, downs = sorted(steps, key=itemgetter(0)), sorted(steps, key=itemgetter(1))
            held = _Sum() if exact else _Join(self._join)
            down = 0
            for window, some in groupby(ups, key=itemgetter(0)):
                while downs[down][1] <= window:
                    held.remove(downs[down])
                    down += 1
                begun = list(some)
                for step in begun:
                    held.add(step)
                if any(is_end for _, _, is_end, _ in begun):
                    self._found[window, group] = [*held.row(), True]
        self._steps.clear()

    def _settle(self) -> None:
        """Bring what was added up in machine words, and in steps, to the rest."""
        self._climb()
        windows, groups, sums, (*ranks, ended) = self._exact.columns()
        self._exact.clear()
        parts, others = iter(sums), iter(ranks)
        trends = next(parts)
        kinds = self._measures.kinds
        columns = [next(parts) if kind in (COUNT, SUM) else next(others).tolist() for kind in kinds]
        self.add(windows, groups, [trends, *columns], ended)

    def is_rounded_below(self, bits: int) -> bool:
        """Whether a number of trends was rounded, though it has fewer bits than these."""
        self._settle()
        return any(isinstance(row[0], Approximate) and row[0].exponent <= bits for row in self._found.values())

    def rows(self, window: Window) -> list[Row]:
        """All rows; without SLIDE only those of the times at which a trend ends."""
        self._settle()
        found = {key: row for key, row in self._found.items() if row[-1] or window.slide is not None}
        columns = list(zip(*found.values(), strict=True)) or [()] * len(self._join)
        values = [self._measures.values(aggregate, columns[0], columns[1:-1]) for aggregate in self._query.aggregates]
        starts, ends = window.bounds(np.array([number for number, _ in found], np.int64))
        groups = (group for _, group in found)
        by_row = zip(*values, strict=True) if values else repeat((), len(found))
        return list(map(Row._make, zip(starts.tolist(), ends.tolist(), groups, by_row, strict=True)))


_Step = tuple[int, int, bool, list[Any]]  # from a window up to another; whether a trend ends at the first; the row


class _Sum:
    """The sum of rows of exact numbers, which can be taken out again."""

    def __init__(self) -> None:
        self._row: list[Any] = []

    def add(self, step: _Step) -> None:
        self._row = [a + b for a, b in zip(self._row, step[3], strict=True)] if self._row else step[3]

    def remove(self, step: _Step) -> None:
        self._row = [a - b for a, b in zip(self._row, step[3], strict=True)]

    def row(self) -> list[Any]:
        return self._row


class _Join:
    """Rows that cannot be taken out of their sum again: a minimum, or what is rounded."""

    def __init__(self, join: Sequence[Callable[[Any, Any], Any]]) -> None:
        self._join = join[:-1]
        self._rows: dict[int, list[Any]] = {}

    def add(self, step: _Step) -> None:
        self._rows[id(step)] = step[3]

    def remove(self, step: _Step) -> None:
        del self._rows[id(step)]

    def row(self) -> list[Any]:
        columns = zip(*self._rows.values(), strict=True)
        return [reduce(join, column) for join, column in zip(self._join, columns, strict=True)]


_JOIN: dict[int, Callable[[Any, Any], Any]] = {COUNT: operator.add, SUM: operator.add, MINIMUM: min, MAXIMUM: max}
_UFUNC = {MINIMUM: np.minimum, MAXIMUM: np.maximum}
