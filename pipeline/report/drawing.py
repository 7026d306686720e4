"""The automaton of a query as SVG: states in layers from left to right, other steps in lanes above and below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from pipeline.query.checked import Query
from pipeline.query.draw import Arrow, Node, Picture, picture

CHARACTER = 7.0  # width, about
LINE = 15.0
GAP = 26.0  # between states of a layer
SHORTEST = 46.0  # arrow
DOT = 5.0  # radius of start and end
CORNER = 8.0
LOOP = 22.0  # height of a state's arrow to itself


def as_svg(query: Query) -> str:
    """The automaton; its colours are those of the page.

    >>> from pipeline.query.check import check
    >>> svg = as_svg(check("RETURN COUNT(*) PATTERN SEQ(A+, B) WITHIN 1 min"))
    >>> svg.startswith("<svg"), svg.count('class="state'), svg.count('class="step"')
    (True, 2, 3)
    """
    block = _block(picture(query.machine))
    label = escape(f"The automaton of {query.tree.pattern}", quote=True)
    return (
        f'<svg class="automaton" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg" '
        f'width="{block.width:.0f}" height="{block.height:.0f}" viewBox="0 0 {block.width:.0f} {block.height:.0f}">'
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0.5 L8,4 L0,7.5 z" class="head"/></marker></defs>'
        f"{block.svg}</svg>"
    )


@dataclass(frozen=True)
class _Block:
    """A drawing of its own, from (0, 0) on."""

    width: float
    height: float
    svg: str


@dataclass
class _Box:
    """Where a node is: its middle, and its size."""

    node: Node | None  # None: the start or the end
    layer: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


def _block(drawn: Picture) -> _Block:
    """The picture, what belongs to no arrow below it, and below that the negated patterns in frames."""
    steps = _Layout(drawn)
    parts, width, height = [steps.svg()], steps.width, steps.height
    if drawn.notes and not drawn.key:
        parts.append(_text(8, height + LINE, drawn.notes, "note", "start"))
        width, height = max(width, 16 + _width(drawn.notes)), height + LINE * (len(drawn.notes) + 1)
    for inner in drawn.negated:
        block, title = _block(inner), (*inner.title, *inner.notes)
        top, below = height + 8, LINE * len(title) + 6
        wide, high = max(block.width, _width(title) + 16) + 8, block.height + below + 6
        parts.append(f'<rect class="negated" x="4" y="{top:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="6"/>')
        parts.append(_text(14, top + LINE, title, "title", "start"))
        parts.append(f'<g transform="translate(8 {top + below:.1f})">{block.svg}</g>')
        width, height = max(width, wide + 8), top + high + 4
    return _Block(width, height, "".join(parts))


class _Layout:
    """Boxes with places, and the ways of the arrows between them."""

    def __init__(self, drawn: Picture) -> None:
        self.start, self.finish = f"{drawn.prefix}start", f"{drawn.prefix}finish"
        # A double border says where a trend may end: an arrow is needed only to carry a guard.
        ends = [arrow for arrow in drawn.end if arrow.lines]
        self.arrows = [*drawn.start, *drawn.steps, *ends]
        self.boxes = self._boxes(drawn.nodes, with_end=bool(ends))
        self._place()
        (self.above, up), (self.below, down) = self._lanes(forward=True), self._lanes(forward=False)
        self._settle(up, down)

    def svg(self) -> str:
        """The arrows, and over them the boxes."""
        return "".join([*(self._arrow(arrow) for arrow in self.arrows), *map(_drawn, self.boxes.values())])

    # ------------------------------------------------------------------------------------------------------ boxes

    def _boxes(self, nodes: Sequence[Node], *, with_end: bool) -> dict[str, _Box]:
        order = {node.key: number for number, node in enumerate(nodes)}
        boxes = {self.start: _Box(None, 0, 2 * DOT, 2 * DOT)}
        for node in nodes:
            before = [
                boxes[arrow.source].layer
                for arrow in self.arrows
                if arrow.target == node.key and order.get(arrow.source, -1) < order[node.key]
            ]
            height = LINE * len(node.lines) + 16
            boxes[node.key] = _Box(node, 1 + max(before, default=0), max(44, _width(node.lines) + 22), height)
        if with_end:
            boxes[self.finish] = _Box(None, 1 + max(box.layer for box in boxes.values()), 2 * DOT, 2 * DOT)
        return boxes

    def _place(self) -> None:
        """Layers from left to right, as far apart as the words between them need; each around one line."""
        layers = [[box for box in self.boxes.values() if box.layer == at] for at in range(self._layers)]
        left = 10.0
        for at, layer in enumerate(layers):
            wide = max((box.width for box in layer), default=0)
            tall = sum(box.height for box in layer) + GAP * (len(layer) - 1)
            y = -tall / 2
            for box in layer:
                box.x, box.y = left + wide / 2, y + box.height / 2
                y += box.height + GAP
            words = [_width(arrow.lines) for arrow in self.arrows if self._is_next(arrow) and self._from(arrow) == at]
            left += wide + max([SHORTEST, *(word + 26 for word in words)])
        last = [box.x + box.width / 2 for box in self.boxes.values()]
        self.width = max(last) + 12

    @property
    def _layers(self) -> int:
        return 1 + max(box.layer for box in self.boxes.values())

    def _from(self, arrow: Arrow) -> int:
        return self.boxes[arrow.source].layer

    def _is_next(self, arrow: Arrow) -> bool:
        return self.boxes[arrow.target].layer == self._from(arrow) + 1

    # ------------------------------------------------------------------------------------------------------ lanes

    def _lanes(self, *, forward: bool) -> tuple[dict[Arrow, float], float]:
        """A height for each arrow over several layers, or back, so that none lies on another; and that of all.

        The shortest are inside.
        """
        wanted = [
            arrow
            for arrow in self.arrows
            if arrow.source != arrow.target
            and not self._is_next(arrow)
            and (self.boxes[arrow.target].layer > self._from(arrow)) is forward
        ]
        lanes: list[list[Arrow]] = []
        for arrow in sorted(wanted, key=self._span):
            free = (lane for lane in lanes if not any(self._overlap(arrow, other) for other in lane))
            lane = next(free, None)
            if lane is None:
                lanes.append([arrow])
            else:
                lane.append(arrow)
        loops = [LOOP + LINE * len(arrow.lines) for arrow in self.arrows if arrow.source == arrow.target and forward]
        edge = max(abs(box.top) for box in self.boxes.values()) + max(loops, default=0.0)
        heights: dict[Arrow, float] = {}
        for lane in lanes:
            words = LINE * max(len(arrow.lines) for arrow in lane)
            # Words stand above the line, on both sides.
            edge += 14 + (0 if forward else words)
            heights |= dict.fromkeys(lane, -edge if forward else edge)
            edge += words if forward else 0
        return heights, edge

    def _span(self, arrow: Arrow) -> float:
        return abs(self.boxes[arrow.source].x - self.boxes[arrow.target].x)

    def _overlap(self, one: Arrow, two: Arrow) -> bool:
        (low, high), (start, end) = self._reach(one), self._reach(two)
        return low < end and start < high

    def _reach(self, arrow: Arrow) -> tuple[float, float]:
        middle = (self.boxes[arrow.source].x + self.boxes[arrow.target].x) / 2
        half = max(self._span(arrow) / 2 + 12, _width(arrow.lines) / 2 + 4)
        return middle - half, middle + half

    def _settle(self, up: float, down: float) -> None:
        """Move everything to where (0, 0) is the corner."""
        lefts = [self._reach(arrow)[0] for arrow in (*self.above, *self.below)]
        rights = [self._reach(arrow)[1] for arrow in (*self.above, *self.below)]
        for arrow in self.arrows:
            if arrow.source == arrow.target:
                half = _width(arrow.lines) / 2 + 4
                lefts.append(self.boxes[arrow.source].x - half)
                rights.append(self.boxes[arrow.source].x + half)
        right = -min([0.0, *lefts])
        for box in self.boxes.values():
            box.x, box.y = box.x + right, box.y + up + 8
        self.above, self.below = (
            {arrow: height + up + 8 for arrow, height in lane.items()} for lane in (self.above, self.below)
        )
        self.width = max(self.width, *rights) + right if rights else self.width + right
        self.height = up + down + 16

    # ----------------------------------------------------------------------------------------------------- arrows

    def _arrow(self, arrow: Arrow) -> str:
        source, target = self.boxes[arrow.source], self.boxes[arrow.target]
        if source is target:
            return self._loop(arrow, source)
        if arrow in self.above:
            return self._lane(arrow, source.top, target.top, self.above[arrow])
        if arrow in self.below:
            return self._lane(arrow, source.bottom, target.bottom, self.below[arrow])
        left, right = source.x + source.width / 2, target.x - target.width / 2
        middle = (left + right) / 2
        way = f"M{left:.1f},{source.y:.1f} C{middle:.1f},{source.y:.1f} {middle:.1f},{target.y:.1f} "
        way += f"{right - 1:.1f},{target.y:.1f}"
        return _way(way) + _above(middle, (source.y + target.y) / 2, arrow.lines)

    def _loop(self, arrow: Arrow, box: _Box) -> str:
        left, right, up = box.x - 12, box.x + 12, box.top - LOOP * 1.25
        way = f"M{left:.1f},{box.top:.1f} C{left - 10:.1f},{up:.1f} {right + 10:.1f},{up:.1f} "
        way += f"{right:.1f},{box.top - 1:.1f}"
        return _way(way) + _above(box.x, box.top - LOOP, arrow.lines)

    def _lane(self, arrow: Arrow, begin: float, end: float, height: float) -> str:
        source, target = self.boxes[arrow.source], self.boxes[arrow.target]
        ahead = 1 if target.x > source.x else -1
        # Arrows leave and reach a state beside its middle, where its own loop is.
        x, to = source.x + ahead * source.width / 4, target.x - ahead * target.width / 4
        if source.node is None:
            x = source.x
        if target.node is None:
            to = target.x
        turn = CORNER if height > begin else -CORNER
        side = CORNER if to > x else -CORNER
        way = (
            f"M{x:.1f},{begin:.1f} V{height - turn:.1f} Q{x:.1f},{height:.1f} {x + side:.1f},{height:.1f} "
            f"H{to - side:.1f} Q{to:.1f},{height:.1f} {to:.1f},{height - turn:.1f} V{end:.1f}"
        )
        return _way(way) + _above((x + to) / 2, height, arrow.lines)


def _drawn(box: _Box) -> str:
    if box.node is None:
        return f'<circle class="dot" cx="{box.x:.1f}" cy="{box.y:.1f}" r="{DOT}"/>'
    shapes = [_rectangle(box, 0, "state")]
    if box.node.last:
        shapes.append(_rectangle(box, 3, "last"))
    first = box.y - LINE * (len(box.node.lines) - 1) / 2 + 4
    return "".join([*shapes, _text(box.x, first, box.node.lines, "name", "middle")])


def _rectangle(box: _Box, inside: float, name: str) -> str:
    return (
        f'<rect class="{name}" x="{box.x - box.width / 2 + inside:.1f}" y="{box.top + inside:.1f}" '
        f'width="{box.width - 2 * inside:.1f}" height="{box.height - 2 * inside:.1f}" rx="{9 - inside:.0f}"/>'
    )


def _way(path: str) -> str:
    return f'<path class="step" d="{path}" marker-end="url(#head)"/>'


def _above(x: float, y: float, lines: Sequence[str]) -> str:
    return _text(x, y - 5 - LINE * (len(lines) - 1), lines, "words", "middle") if lines else ""


def _text(x: float, y: float, lines: Iterable[str], name: str, anchor: str) -> str:
    return f'<text class="{name}" text-anchor="{anchor}">{"".join(_lines(x, y, lines))}</text>'


def _lines(x: float, y: float, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f'<tspan x="{x:.1f}" y="{y + LINE * number:.1f}">{escape(line)}</tspan>'


def _width(lines: Iterable[str]) -> float:
    return CHARACTER * max(map(len, lines), default=0)
