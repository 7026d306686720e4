"""Overlapping windows, and windows without SLIDE, out of panes: their maps, and where they are kept."""

from __future__ import annotations

from math import gcd

import numpy as np

from pipeline.engines.affine import Nodes, make_affine, trend_ends
from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.kernels import panes as kernel
from pipeline.engines.kernels.status import GROW
from pipeline.engines.measures import Measures
from pipeline.engines.stream import Stream, Window
from pipeline.engines.windows import ROW_BUFFER, RowBuffer, changes, make_windows, most_within
from pipeline.events import Array
from pipeline.query.checked import Query


def pane_length(window: Window) -> int:
    """The longest stretch that no window's edge cuts; without SLIDE each time is a pane of its own."""
    return 1 if window.slide is None else gcd(window.within, window.slide)


def node_rows(nodes: Nodes) -> tuple[Array, Array]:
    """Per node, its row in a map, from 1 on (-1: it takes no part in later events), and whether its trends stay."""
    automaton = nodes.query.automaton
    row, stays = np.full(nodes.count, -1), np.zeros(nodes.count, bool)
    going_on = {v for v, _ in automaton.follow}
    for carrier in nodes.carriers:
        state = nodes.states.index(carrier) if carrier in nodes.states else None
        if carrier.width > 1 or state in going_on:
            row[carrier.base : carrier.base + carrier.width] = 0
        elif state in automaton.last and not nodes.apart:
            stays[carrier.base] = True
    if nodes.final >= 0:
        stays[nodes.final] = True
    row[row == 0] = np.arange(1, int((row == 0).sum()) + 1)
    return row, stays


class PaneAggregation:
    """Windows as products of their panes."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> None:
        self.query, self.stream, self.limits = query, stream, limits
        self.measures = Measures.needed(query, stream)
        nodes = Nodes(query, apart=stream.window.slide is None)
        row, stays = node_rows(nodes)
        length = pane_length(stream.window)
        ring = self._most_panes(length) + 1
        states, kept = len(query.automaton.states), ring * nodes.count
        slots = int(row.max(initial=0)) + 1
        self.affine = make_affine(nodes, stream, self.measures, first_cell=kept + 4 * nodes.count + 1, quick=True)
        self.matrices = Pool(self.measures, kept + 4 * nodes.count + 2 + states, limits, slots=slots)
        self.vectors = Pool(self.measures, kept + 2 * nodes.count + 2 + ROW_BUFFER, limits)
        self.panes = kernel.Panes(
            length=length,
            ring=ring,
            number=np.zeros(ring, np.int64),
            row=row,
            stays=stays,
            back=kept + nodes.count * np.arange(4),
            constant=kept + 4 * nodes.count,
            front=0,
            vector=kept,
            result=kept + 2 * nodes.count,
            one=kept + 2 * nodes.count + 1,
            grow=np.zeros(2, np.int64),
        )
        self.buffer = RowBuffer(stream, kept + 2 * nodes.count + 2)
        self.buffer.rows.register[kernel.KNOWN_PART] = -1
        kernel.add_trend(self.matrices.cells, self.panes.constant, 0)
        kernel.add_trend(self.vectors.cells, self.panes.one, 0)
        cost.events += len(stream)
        cost.peak_stored = max(cost.peak_stored, (kept + 4 * nodes.count) * slots)

    def _most_panes(self, length: int) -> int:
        """How many panes that are not empty a window holds at most."""
        window = self.stream.window
        if window.slide is not None and window.within // length <= 1024:
            return window.within // length
        new = changes(self.stream.part, self.stream.place // length)
        return most_within(self.stream.part[new], self.stream.place[new] // length * length, window.within)

    def rows(self) -> list[Row]:
        """The rows of every group and window in which a trend finished."""
        found = Found(self.query, self.measures)
        windows = make_windows(self.stream, lambda: trend_ends(self.affine))
        weights = make_weights(self.measures)
        pauses = run(
            kernel.slide,
            lambda: (
                *(self.affine, self.panes, windows, self.buffer.rows),
                *(self.matrices.cells, self.vectors.cells, weights),
            ),
            self.limits,
            self.buffer.so_far,
            steps=2 * len(self.stream),
        )
        for status in pauses:
            self.buffer.take(found, self.vectors)
            if status == GROW:
                for pool, needed in zip((self.matrices, self.vectors), self.panes.grow, strict=True):
                    if needed:
                        pool.grow()
                self.panes.grow[:] = 0
        return found.rows(self.stream.window)


def panes_pay(query: Query, stream: Stream) -> bool:
    """Whether panes cost less than windows one by one: a map takes a slot a node, and every pane some products."""
    window, size = stream.window, len(stream)
    if window.in_events or not size:
        return False
    nodes = Nodes(query, apart=window.slide is None)
    rows = int(node_rows(nodes)[0].max(initial=0)) + 1
    span = int(stream.time.max() - stream.time.min()) + 1
    parts = len(stream.part_group)
    if window.slide is None:
        overlap = min(size / parts, size / parts * window.within / span)
        panes = size
    else:
        overlap = window.within / window.slide
        panes = min(size, parts * (span // pane_length(window) + 1))
    return size * overlap > size * (1 + rows / 4) + panes * 4 * rows * nodes.count
