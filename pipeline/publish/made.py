"""How answers were made, and what became of them in gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pipeline.questions import Question


@dataclass(frozen=True)
class Made:
    """How answers were made."""

    run_id: str
    engine: str
    silver_version: int
    events: int
    files: Sequence[str] = ()
    warnings: Sequence[str] = ()

    def noted(self, question: Question, day: date, changed: int) -> dict[str, str]:
        """What the commit of gold says of itself."""
        return {
            "run_id": self.run_id,
            "interval": str(day),
            "silver_version": str(self.silver_version),
            "query_version": question.version,
            "changed": str(changed),
        }


@dataclass(frozen=True)
class Outcome:
    """An interval in gold: at which version it holds the answers, with how many rows, and how many of them changed."""

    version: int
    rows: int
    changed: int
