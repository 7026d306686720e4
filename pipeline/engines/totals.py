"""Rows of many partitions, added up before they become Python's numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.engines.kernels.numbers import BITS, MASK
from pipeline.engines.measures import integers
from pipeline.events import Array

FEW_WORDS = 1 << 17  # of rows that wait until they are added up

_Rows = tuple[Array, Array, Array, list[Array]]  # windows, groups, limbs, further columns


class Totals:
    """Rows as digits, of which many can be added up in machine words; those of one group and window become one."""

    def __init__(self, parts: int, bits: int, joins: Sequence[np.ufunc] = ()) -> None:
        """`bits` of a digit, an even number: half a digit leaves room for as many rows as there may be.

        `joins`: what is done with the values of each further column.
        """
        self._parts, self._half, self._joins = parts, bits // 2, joins
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        nothing = np.zeros(0, np.int64)
        self._rows: _Rows = nothing, nothing, np.zeros((0, self._parts, 0), np.int64), [nothing] * len(self._joins)
        self._waiting: list[_Rows] = []
        self._words = 0

    def add(self, windows: Array, groups: Array, digits: Array, others: Sequence[Array] = ()) -> None:
        """Add rows; their digits part by part."""
        if not len(windows):
            return
        digits = digits.reshape(len(windows), self._parts, -1)
        used = int(np.flatnonzero(digits.any(axis=(0, 1))).max(initial=-1)) + 1
        digits = digits[:, :, :used]
        limbs = np.empty((*digits.shape, 2), np.int64)
        limbs[..., 0] = digits & ((1 << self._half) - 1)
        limbs[..., 1] = digits >> self._half
        limbs = limbs.reshape(len(windows), self._parts, 2 * used)
        self._waiting.append((windows.copy(), groups, limbs, [column.copy() for column in others]))
        self._words += limbs.size
        if self._words > max(FEW_WORDS, self._rows[2].size):
            self._join()

    def columns(self) -> tuple[Array, Array, list[list[int]], list[Array]]:
        """Windows, groups, each part's numbers, and the further columns."""
        self._join()
        windows, groups, limbs, others = self._rows
        return windows, groups, [integers(limbs[:, part], self._half) for part in range(self._parts)], others

    def _join(self) -> None:
        rows = [self._rows, *self._waiting]
        self._waiting, self._words = [], 0
        window, group = (np.concatenate([row[at] for row in rows]) for at in range(2))
        if not len(window):
            return
        most = max(row[2].shape[2] for row in rows)
        limbs = np.concatenate([np.pad(row[2], ((0, 0), (0, 0), (0, most - row[2].shape[2]))) for row in rows])
        order = np.lexsort((window, group))
        window, group = window[order], group[order]
        new = np.ones(len(order), bool)
        new[1:] = (window[1:] != window[:-1]) | (group[1:] != group[:-1])
        begins = np.flatnonzero(new)
        others = [
            join.reduceat(np.concatenate([row[3][at] for row in rows])[order], begins)
            for at, join in enumerate(self._joins)
        ]
        self._rows = window[begins], group[begins], np.add.reduceat(limbs[order], begins), others


def carried(digits: Array) -> Array:
    """Digits of rows and parts as kernels/numbers.py has them, with their carries; the last one is signed."""
    if digits.max(initial=0) <= MASK and digits.min(initial=0) >= -MASK:
        return digits
    wide = np.zeros((*digits.shape[:2], digits.shape[2] + 2), np.int64)
    wide[:, :, :-2] = digits
    for at in range(wide.shape[2] - 1):
        wide[:, :, at + 1] += wide[:, :, at] >> BITS
        wide[:, :, at] &= MASK
    return wide
