"""The automaton of a checked query as a picture: Graphviz DOT, and Mermaid text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.query import tree
from pipeline.query.automaton import Automaton, Negation, Ways
from pipeline.query.checked import Guard, Machine, Query

# More than this is a hairball, and Mermaid refuses more than 500 arrows.
MOST_STATES = 60
MOST_ARROWS = 300
MOST_WAYS = 6
LABEL_WIDTH = 36


def as_dot(query: Query) -> str:
    """The automaton for Graphviz: `dot -Tsvg`.

    >>> from pipeline.query.check import check
    >>> print(as_dot(check("RETURN COUNT(*) PATTERN SEQ(A, !C, B) WITHIN 1 min")))
    digraph trend {
      rankdir=LR
      node [shape=box style="rounded,filled" fillcolor="#eef3fa" fontname="Helvetica" fontsize=12]
      edge [fontname="Helvetica" fontsize=10]
      start [shape=point width=0.12 fillcolor=black label=""]
      s0 [label="A"]
      s1 [label="B" peripheries=2]
      start -> s0
      s0 -> s1 [label="no C between"]
    }
    """
    head = [
        "rankdir=LR",
        f'node [shape=box style="rounded,filled" fillcolor="#eef3fa" {_DOT_FONT} fontsize=12]',
        f"edge [{_DOT_FONT} fontsize=10]",
    ]
    body = [*head, *_dot(picture(query.machine))]
    return "\n".join(["digraph trend {", *(f"  {line}" for line in body), "}"])


def as_mermaid(query: Query) -> str:
    """The automaton as a Mermaid flowchart.

    >>> from pipeline.query.check import check
    >>> print(as_mermaid(check("RETURN COUNT(*) PATTERN SEQ(A, !C, B) WITHIN 1 min")))
    flowchart LR
      start(["start"])
      s0("A")
      s1((("B")))
      finish(["end"])
      start --> s0
      s0 -->|"no C between"| s1
      s1 --> finish
    """
    drawn = picture(query.machine)
    classes = [f"class {inner.key} negated" for inner in _inside(drawn)]
    styles = ["classDef negated fill:none,stroke-dasharray:5 5", *classes] if classes else []
    return "\n".join(["flowchart LR", *(f"  {line}" for line in [*_mermaid(drawn), *styles])])


# --------------------------------------------------------------------------------------------------------------- words


def printable(text: str) -> str:
    """The text with what a terminal or a picture cannot show (control characters, text direction) spelled out.

    >>> printable("a\\x1b[2J")
    'a\\\\x1b[2J'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def absence(ways: Ways, negations: Sequence[Negation]) -> str:
    """What must be absent for a guarded step to be taken, in words; nothing where it is free.

    >>> from pipeline.query.check import check
    >>> automaton = check("RETURN COUNT(*) PATTERN SEQ(A, OR(!B, SEQ(!C, !D)), E) WITHIN 1 min").automaton
    >>> absence(automaton.follow[0, 1], automaton.negations)
    'no B, or no C and no D'
    """
    shown = [" and ".join(f"no {negations[n].pattern}" for n in way) for way in sorted(map(sorted, ways))]
    if len(shown) > MOST_WAYS:
        shown[MOST_WAYS:] = [f"in {len(shown) - MOST_WAYS} other ways"]
    return ", or ".join(shown)


def guard_conditions(guard: Guard) -> list[tree.Condition]:
    """Every condition that a match of a negated pattern must satisfy to count, each once."""
    machine = guard.machine
    local = [condition for state in sorted(machine.local) for condition in machine.local[state]]
    pairs = [pair.condition for edge in sorted(machine.adjacent) for pair in machine.adjacent[edge]]
    others = [other.condition for other in machine.other]
    links = [link.condition for link in guard.links]
    return list(dict.fromkeys([*local, *pairs, *others, *links]))


# ------------------------------------------------------------------------------------------------------------- picture


@dataclass(frozen=True)
class Node:
    """A state, by the lines that it shows; `last`: a trend may end there."""

    key: str
    lines: tuple[str, ...]
    last: bool


@dataclass(frozen=True)
class Arrow:
    """A step between two nodes, with its conditions."""

    source: str
    target: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """What every notation draws: the trend's automaton, or that of a negated pattern inside it."""

    key: str
    title: tuple[str, ...]
    notes: tuple[str, ...]  # the conditions that belong to no state and no arrow
    nodes: tuple[Node, ...]
    start: tuple[Arrow, ...]
    steps: tuple[Arrow, ...]
    end: tuple[Arrow, ...]
    negated: tuple[Picture, ...]

    @property
    def prefix(self) -> str:
        """Of the keys of its nodes."""
        return f"{self.key}_" if self.key else ""


def picture(machine: Machine, key: str = "", title: tuple[str, ...] = (), links: tuple[str, ...] = ()) -> Picture:
    """What there is to draw of a machine, and of the negated patterns in it."""
    automaton = machine.automaton
    prefix = f"{key}_" if key else ""
    shown, states = _shown(automaton), len(automaton.states)
    more = f"{prefix}more"

    def node(state: int) -> str:
        return f"{prefix}s{state}" if state < shown else more

    nodes = [
        Node(
            node(state.index),
            _lines(state.label, *_texts(machine.local.get(state.index, ()))),
            state.index in automaton.last,
        )
        for state in automaton.states[:shown]
    ]
    if shown < states:
        nodes.append(Node(more, (f"… and {states - shown} more",), any(state >= shown for state in automaton.last)))
    start = [
        Arrow(f"{prefix}start", node(state), _guarded(machine, ways, "before"))
        for state, ways in sorted(automaton.first.items())
    ]
    steps = [
        Arrow(
            node(source),
            node(target),
            _lines(*_texts(pair.condition for pair in machine.adjacent.get((source, target), ())))
            + _guarded(machine, ways, "between"),
        )
        for (source, target), ways in sorted(automaton.follow.items())
    ]
    end = [
        Arrow(node(state), f"{prefix}finish", _guarded(machine, ways, "after"))
        for state, ways in sorted(automaton.last.items())
    ]
    negated = [
        picture(
            guard.machine,
            f"{prefix}n{number}",
            _lines(f"!{automaton.negations[number].pattern}"),
            _texts(link.condition for link in guard.links),
        )
        for number, guard in enumerate(machine.guards)
        if _has_picture(guard)
    ]
    others = _texts(other.condition for other in machine.other)
    notes = _lines(*(f"where {condition}" for condition in (*others, *links)))
    return Picture(
        key,
        title,
        notes,
        tuple(nodes),
        _without(start, more),
        _without(steps, more),
        _without(end, more),
        tuple(negated),
    )


def _shown(automaton: Automaton) -> int:
    """How many states are drawn one by one; the others share a node."""
    states = len(automaton.states)
    arrows = [0] * states
    for edge in automaton.follow:
        arrows[max(edge)] += 1
    shown, drawn = 0, 0
    while shown < min(states, MOST_STATES) and drawn + arrows[shown] <= MOST_ARROWS:
        drawn += arrows[shown]
        shown += 1
    return shown


def _without(arrows: list[Arrow], more: str) -> tuple[Arrow, ...]:
    """The arrows, those of the states that share a node drawn once and without their conditions."""
    shared = (Arrow(a.source, a.target, ()) if more in (a.source, a.target) else a for a in arrows)
    return tuple(arrow for arrow in dict.fromkeys(shared) if not arrow.source == arrow.target == more)


def _has_picture(guard: Guard) -> bool:
    """Whether a negated pattern is more than words on an arrow can say."""
    return len(guard.machine.automaton.states) > 1 or bool(guard.machine.guards)


def _guarded(machine: Machine, ways: Ways, where: str) -> tuple[str, ...]:
    words = absence(ways, machine.automaton.negations)
    if not words:
        return ()
    simple = [
        machine.guards[n] for n in sorted({n for way in ways for n in way}) if not _has_picture(machine.guards[n])
    ]
    conditions = dict.fromkeys(condition for guard in simple for condition in guard_conditions(guard))
    return _lines(f"{words} {where}", *(f"where {condition}" for condition in conditions))


def _texts(conditions: Iterator[tree.Condition] | Sequence[tree.Condition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(str, conditions)))


def _lines(*texts: str) -> tuple[str, ...]:
    """Texts as the lines of a label, none much longer than the others."""
    return tuple(
        line
        for text in texts
        for line in textwrap.wrap(printable(text), LABEL_WIDTH, break_long_words=False, break_on_hyphens=False)
    )


def _inside(picture: Picture) -> Iterator[Picture]:
    for inner in picture.negated:
        yield inner
        yield from _inside(inner)


# ----------------------------------------------------------------------------------------------------------------- DOT

_DOT_FONT = 'fontname="Helvetica"'
# & begins an entity such as &amp; in a label, \ an escape such as \N for the node's name.
_DOT_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})


def _dot(picture: Picture) -> Iterator[str]:
    prefix = picture.prefix
    # Graphviz stacks what it reads from the bottom up: negated patterns go below the trend, in their order.
    for inner in reversed(picture.negated):
        yield f"subgraph cluster_{inner.key} {{"
        yield f"  label={_dot_label((*inner.title, *inner.notes))} {_DOT_FONT} fontsize=11 style=dashed"
        yield from (f"  {line}" for line in _dot(inner))
        yield "}"
    yield f'{prefix}start [shape=point width=0.12 fillcolor=black label=""]'
    for node in picture.nodes:
        yield f"{node.key} [label={_dot_label(node.lines)}{' peripheries=2' if node.last else ''}]"
    yield from map(_dot_arrow, (*picture.start, *picture.steps))
    # A double border already says where a trend may end: an arrow is needed only to carry a guard.
    guarded = [arrow for arrow in picture.end if arrow.lines]
    if guarded:
        yield f'{prefix}finish [shape=point width=0.12 fillcolor=black label=""]'
        yield from map(_dot_arrow, guarded)
    if picture.notes and not picture.key:
        yield f"note [shape=note style=solid fontsize=10 label={_dot_label(picture.notes)}]"


def _dot_arrow(arrow: Arrow) -> str:
    label = f" [label={_dot_label(arrow.lines)}]" if arrow.lines else ""
    return f"{arrow.source} -> {arrow.target}{label}"


def _dot_label(lines: Sequence[str]) -> str:
    escaped = "\\n".join(line.translate(_DOT_ESCAPES) for line in lines)
    return f'"{escaped}"'


# ------------------------------------------------------------------------------------------------------------- Mermaid

# All but these is written as an entity: Mermaid looks for quotes, tags, Markdown, directives (%%) and icons (fa:) in
# labels, and for its own marks of entities (ﬂ, ¶); a digit and a full stop begin a list.
_MERMAID_SPECIAL = re.compile(r"[^\w ,.()=!]|[_ﬂ¶]|(?<=\d)\.(?!\d)")
_MERMAID_NAMED = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;"}


def _mermaid(picture: Picture) -> Iterator[str]:
    prefix = picture.prefix
    yield f'{prefix}start(["start"])'
    for node in picture.nodes:
        label = _mermaid_label(node.lines)
        yield f"{node.key}((({label})))" if node.last else f"{node.key}({label})"
    yield f'{prefix}finish(["end"])'
    yield from map(_mermaid_arrow, (*picture.start, *picture.steps, *picture.end))
    if picture.notes and not picture.key:
        yield f"note[{_mermaid_label(picture.notes)}]"
    for inner in picture.negated:
        yield f"subgraph {inner.key}[{_mermaid_label((*inner.title, *inner.notes))}]"
        yield "  direction LR"
        yield from (f"  {line}" for line in _mermaid(inner))
        yield "end"


def _mermaid_arrow(arrow: Arrow) -> str:
    label = f"|{_mermaid_label(arrow.lines)}|" if arrow.lines else ""
    return f"{arrow.source} -->{label} {arrow.target}"


def _mermaid_label(lines: Sequence[str]) -> str:
    escaped = "<br/>".join(_MERMAID_SPECIAL.sub(_mermaid_entity, line) for line in lines)
    return f'"{escaped}"'


def _mermaid_entity(found: re.Match[str]) -> str:
    return _MERMAID_NAMED.get(found[0], f"#{ord(found[0])};")
