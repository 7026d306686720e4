"""What is being checked: one table of one landing day, before readers see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.datasets.declaration import Dataset


@dataclass(frozen=True)
class Subject:
    """One table of one landing day, and what its caller knows beside the rows."""

    dataset: Dataset
    day: date
    table_name: str  # such as silver.stock
    run_id: str
    formats: Mapping[str, str] = field(default_factory=dict)  # file → the name of its format
    source_rows: int = 0
    quarantined: int = 0

    def __post_init__(self) -> None:
        layer, dot, name = self.table_name.partition(".")
        if not (layer and dot and name):
            raise ValueError(f"table {self.table_name!r}: a table is named layer.name, such as silver.stock")
        if not self.run_id:
            raise ValueError(f"{self.table_name}: a run has a name")
        if not 0 <= self.quarantined <= self.source_rows:
            raise ValueError(f"{self.table_name}: {self.quarantined} of {self.source_rows} rows cannot be quarantined")

    @property
    def layer(self) -> str:
        """The first part of the table's name."""
        return self.table_name.partition(".")[0]

    @property
    def quarantined_share(self) -> float:
        """The part of the source's rows that were set aside."""
        return self.quarantined / self.source_rows if self.source_rows else 0.0

    @property
    def least_rows(self) -> int:
        """How many rows there are at least: one where the calendar expects files, or where some came."""
        return int(self.source_rows > 0 or self.dataset.expects(self.day))
