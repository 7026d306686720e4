"""Rows of many partitions, added up before they become Python's numbers."""

from __future__ import annotations

import numpy as np

from pipeline.engines.measures import integers
from pipeline.events import Array

FEW_ROWS = 1 << 16  # which wait until they are added up


class Totals:
    """Rows as digits, of which many can be added up in machine words; those of one group and window become one."""

    def __init__(self, parts: int, bits: int) -> None:
        """`bits` of a digit, an even number: half a digit leaves room for as many rows as there may be."""
        self._parts, self._half = parts, bits // 2
        self._window = self._group = np.zeros(0, np.int64)
        self._limbs = np.zeros((0, parts, 0), np.int64)
        self._waiting: list[tuple[Array, Array, Array]] = []
        self._count = 0

    def add(self, windows: Array, groups: Array, digits: Array) -> None:
        """Add rows; their digits part by part."""
        if not len(windows):
            return
        digits = digits.reshape(len(windows), self._parts, -1)
        used = int(np.flatnonzero(digits.any(axis=(0, 1))).max(initial=-1)) + 1
        digits = digits[:, :, :used]
        limbs = np.empty((*digits.shape, 2), np.int64)
        limbs[..., 0] = digits & ((1 << self._half) - 1)
        limbs[..., 1] = digits >> self._half
        self._waiting.append((windows.copy(), groups, limbs.reshape(len(windows), self._parts, 2 * used)))
        self._count += len(windows)
        if self._count > max(FEW_ROWS, len(self._window)):
            self._join()

    def columns(self) -> tuple[Array, Array, list[list[int]]]:
        """Windows, groups, and each part's numbers."""
        self._join()
        columns = [integers(self._limbs[:, part], self._half) for part in range(self._parts)]
        return self._window, self._group, columns

    def _join(self) -> None:
        rows = [(self._window, self._group, self._limbs), *self._waiting]
        self._waiting, self._count = [], 0
        window, group = (np.concatenate([row[at] for row in rows]) for at in range(2))
        most = max(row[2].shape[2] for row in rows)
        limbs = np.concatenate([np.pad(row[2], ((0, 0), (0, 0), (0, most - row[2].shape[2]))) for row in rows])
        order = np.lexsort((window, group))
        window, group = window[order], group[order]
        new = np.ones(len(order), bool)
        new[1:] = (window[1:] != window[:-1]) | (group[1:] != group[:-1])
        begins = np.flatnonzero(new)
        self._window, self._group = window[begins], group[begins]
        self._limbs = np.add.reduceat(limbs[order], begins) if len(begins) else limbs
