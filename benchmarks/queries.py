"""What is asked of the streams."""

from __future__ import annotations

from pathlib import Path

from pipeline.query.check import check
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics

OVERLAP = 60  # windows around an event, where they slide
SLIDE = 10_000  # seconds, which is events
FALLING = "S.price > NEXT(S).price"
Q3 = Path(__file__).parents[1] / "queries" / "stock" / "down-trends-by-sector.query"


def letters(pattern: str, within: int, slide: int | None = None) -> Query:
    """Trends of the types A, B and C, with no conditions; windows do not overlap unless they slide by less."""
    return check(f"RETURN COUNT(*) PATTERN {pattern} {_windows(within, slide)}")


def falling(semantics: Semantics, within: int, slide: int | None = None) -> Query:
    """Falling prices: one comparison between neighbours."""
    return check(
        f"RETURN COUNT(*) PATTERN Stock S+ SEMANTICS {semantics.value} WHERE {FALLING} {_windows(within, slide)}"
    )


def by_company(semantics: Semantics, condition: str, within: int) -> Query:
    """Trends of one company's prices, and a row for each company."""
    return check(
        f"RETURN company, COUNT(*) PATTERN Stock S+ SEMANTICS {semantics.value} {condition} GROUP-BY company "
        f"{_windows(within)}"
    )


def q3() -> Query:
    """COGRA's q3 as it is shipped: 10 minutes sliding by 10 seconds."""
    return check(Q3.read_text("utf-8"), str(Q3))


def _windows(within: int, slide: int | None = None) -> str:
    return f"WITHIN {within} s SLIDE {slide or within} s"
