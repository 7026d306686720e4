"""What is asked of the streams."""

from __future__ import annotations

from pathlib import Path

from pipeline.query.tree import Semantics

ANY, NEXT, CONTIGUOUS = Semantics.ANY, Semantics.NEXT, Semantics.CONTIGUOUS
FALLING = "S.price > NEXT(S).price"
Q3 = Path(__file__).parents[1] / "queries" / "stock" / "down-trends-by-sector.query"


def ask(pattern: str, within: str, slide: str | None = None, where: str = "", semantics: Semantics = ANY) -> str:
    """How many trends a pattern has; windows do not overlap unless they slide by less."""
    where = f" WHERE {where}" if where else ""
    return (
        f"RETURN COUNT(*) PATTERN {pattern} SEMANTICS {semantics.value}{where} WITHIN {within} SLIDE {slide or within}"
    )


def moving(pattern: str, within: str, where: str = "") -> str:
    """The same where the window moves with every event, as in SASE's and A-Seq's papers."""
    where = f" WHERE {where}" if where else ""
    return f"RETURN COUNT(*) PATTERN {pattern}{where} WITHIN {within}"


def sequence(length: int) -> str:
    """A, B, C … one after the other.

    >>> sequence(3)
    'SEQ(A, B, C)'
    """
    return f"SEQ({', '.join(chr(ord('A') + at) for at in range(length))})"


def seconds(number: float) -> str:
    """A duration."""
    return f"{round(number)} s"
