"""Overlapping windows, and windows without SLIDE, out of panes: their maps, and where they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Protocol

import numpy as np

from pipeline.engines.affine import Nodes, WindowAggregation, make_affine, trend_ends
from pipeline.engines.aggregates import Found, Pool, make_weights
from pipeline.engines.compiled import run
from pipeline.engines.contract import Cost, Limits, Row
from pipeline.engines.kernels import panes as kernel
from pipeline.engines.kernels.cells import Cells, add_trend
from pipeline.engines.kernels.status import GROW
from pipeline.engines.measures import Measures
from pipeline.engines.stream import Stream, Window
from pipeline.engines.windows import RowBuffer, changes, has_steps, make_windows, most_within, row_buffer
from pipeline.events import Array
from pipeline.query.checked import Query

MOST_ROWS = 64  # a map has the square of its rows in numbers


class Given(Protocol):
    """Maps that are there already, one an event of the stream, in its order."""

    @property
    def maps(self) -> Cells: ...
    @property
    def measures(self) -> Measures: ...


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


@dataclass
class PaneWork:
    """The maps of panes in a pool: those asked for, four to work with, and the map that begins a trend."""

    pool: Pool
    panes: kernel.Panes
    free: int  # the first cell for the linear steps themselves


def make_panes(
    nodes: Nodes, measures: Measures, limits: Limits, *, maps: int, length: int = 1, ring: int = 0
) -> PaneWork:
    """Room for maps; the first `ring` of them are kept in turn, the others stored."""
    row, stays = node_rows(nodes)
    kept, states = maps * nodes.count, len(nodes.query.automaton.states)
    pool = Pool(measures, kept + 4 * nodes.count + 2 + states, limits, slots=int(row.max(initial=0)) + 1)
    vector = ring * nodes.count
    panes = kernel.Panes(
        length=length,
        ring=ring,
        number=np.zeros(ring, np.int64),
        row=row,
        stays=stays,
        back=kept + nodes.count * np.arange(4),
        constant=kept + 4 * nodes.count,
        stored=vector if maps > ring else -1,
        front=0,
        vector=vector,
        result=vector + 2 * nodes.count,
        one=vector + 2 * nodes.count + 1,
        grow=np.zeros(2, np.int64),
    )
    add_trend(pool.cells, panes.constant, 0)
    return PaneWork(pool, panes, panes.constant + 1)


class PaneAggregation:
    """Windows as products of their panes, whose maps are made of events, or given."""

    def __init__(self, query: Query, stream: Stream, limits: Limits, cost: Cost, given: Given | None = None) -> None:
        self.query, self.stream, self.limits = query, stream, limits
        self.measures = given.measures if given else Measures.needed(query, stream)
        nodes = Nodes(query, apart=stream.window.slide is None)
        length = pane_length(stream.window)
        ring = self._most_panes(length) + 1
        maps = ring + (len(stream) if given else 0)
        self.work = make_panes(nodes, self.measures, limits, maps=maps, length=length, ring=ring)
        if given:
            self.work.pool.load(ring * nodes.count, given.maps)
        self.affine = make_affine(
            nodes, None if given else stream, self.measures, first_cell=self.work.free, quick=True
        )
        first_row = self.work.panes.one + 1
        self.vectors = Pool(self.measures, first_row + row_buffer(stream), limits)
        self.buffer = RowBuffer(stream, first_row)
        self.buffer.rows.register[kernel.KNOWN_PART] = -1
        add_trend(self.vectors.cells, self.work.panes.one, 0)
        cost.events += len(stream)
        cost.peak_stored = max(cost.peak_stored, (maps + 4) * nodes.count * self.work.pool.cells.numbers.slots)

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
        windows = make_windows(
            self.stream, lambda: np.arange(len(self.stream)) if self.work.panes.stored >= 0 else trend_ends(self.affine)
        )
        weights = make_weights(self.measures)
        pauses = run(
            kernel.slide,
            lambda: (
                *(self.affine, self.work.panes, windows, self.buffer.rows),
                *(self.work.pool.cells, self.vectors.cells, weights),
            ),
            self.limits,
            self.buffer.so_far,
            steps=2 * len(self.stream),
        )
        for status in pauses:
            self.buffer.take(found, self.vectors, windows)
            if status == GROW:
                for pool, needed in zip((self.work.pool, self.vectors), self.work.panes.grow, strict=True):
                    if needed:
                        pool.grow()
                self.work.panes.grow[:] = 0
        # A map is rounded as a whole: a small number in it may be, too, for the sake of a large one beside it.
        if self.work.panes.stored < 0 and found.is_rounded_below(self.limits.bits):
            return WindowAggregation(self.query, self.stream, self.limits, Cost()).rows()
        return found.rows(self.stream.window)


def panes_pay(query: Query, stream: Stream) -> bool:
    """Whether panes cost less than windows one by one: a map takes a slot a row, and every pane some products.

    The unit is what one event costs in one window; the figures were measured.
    """
    window, size = stream.window, len(stream)
    if window.in_events or not size:
        return False
    nodes = Nodes(query, apart=window.slide is None)
    rows = int(node_rows(nodes)[0].max(initial=0)) + 1
    if rows > MOST_ROWS:
        return False
    span = int(stream.time.max() - stream.time.min()) + 1
    parts = len(stream.part_group)
    if window.slide is None:
        steps = _most_windows(query, stream) * min(size / parts, size / parts * window.within / span)
        panes = size
    else:
        steps = size * window.within / window.slide
        panes = min(size, parts * (span // pane_length(window) + 1))
    return steps > size * (1 + rows / 4) + panes * (200 + 25 * rows * nodes.count)


def _most_windows(query: Query, stream: Stream) -> int:
    """How many windows there may be where they move: one an event that may end a trend, or that leaves a sum."""
    if has_steps(stream):
        return len(stream)
    ends = np.zeros(len(stream), bool)
    for last in query.automaton.last:
        ends |= stream.is_of(query.automaton.states[last])
    return int(ends.sum())
