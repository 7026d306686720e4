"""Maps of panes made by themselves, and joined: what a part of a partition does to any aggregates before it."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.engines.kernels.affine import Affine, walk
from pipeline.engines.kernels.cells import Cells, Weights, trim_cell
from pipeline.engines.kernels.numbers import LARGEST, is_crowded
from pipeline.engines.kernels.panes import IN_MATRICES, Panes, has_room, make_identity, multiply
from pipeline.engines.kernels.status import DONE, GROW, MORE
from pipeline.events import Array

ENTRY, EVENT, BUSY = range(3)  # registers


class Pairs(NamedTuple):
    """Which maps to join, and where the results go: numbers of maps."""

    earlier: Array
    later: Array
    to: Array


def summarise(a: Affine, g: Panes, begins: Array, r: Array, m: Cells, w: Weights, steps: int) -> int:
    """Make the maps of panes, each of the events from where it begins up to where the next one does."""
    while steps > 0:
        if r[ENTRY] == len(begins) - 1:
            return DONE
        at = r[ENTRY] * a.nodes
        if not r[BUSY]:
            r[BUSY] = 1
            r[EVENT] = begins[r[ENTRY]]
            make_identity(a, g, m, at)
        before = r[EVENT]
        r[EVENT] = walk(a, m, w, at, before, begins[r[ENTRY] + 1], steps)
        steps -= r[EVENT] - before + a.nodes
        if r[EVENT] < begins[r[ENTRY] + 1]:
            if is_crowded(m.numbers):
                return GROW
            continue
        for node in range(a.nodes):
            trim_cell(m, at + node)
        r[ENTRY] += 1
        r[BUSY] = 0
    return MORE


def combine(a: Affine, g: Panes, pairs: Pairs, r: Array, m: Cells, steps: int) -> int:
    """Join pairs of maps, each of the earlier events, then the later ones."""
    while steps > 0:
        if r[ENTRY] == len(pairs.to):
            return DONE
        x, y = pairs.earlier[r[ENTRY]] * a.nodes, pairs.later[r[ENTRY]] * a.nodes
        if not has_room(a, g, m, x, m, y, IN_MATRICES):
            return GROW
        multiply(a, g, m, pairs.to[r[ENTRY]] * a.nodes, x, y)
        r[ENTRY] += 1
        steps -= a.nodes * a.nodes * (1 + m.numbers.register[LARGEST])
    return MORE


HELPERS = ()
