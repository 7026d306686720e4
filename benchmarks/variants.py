"""The engines of a comparison by name: the product's own, and some of them with a part turned off."""

from __future__ import annotations

from unittest.mock import patch

from pipeline.engines import indexed, pane
from pipeline.engines.choice import ENGINES
from pipeline.engines.contract import Cost, Engine, Limits, Row
from pipeline.engines.pane import Pane
from pipeline.engines.sase import OPTIMISATIONS, Sase
from pipeline.engines.stream import Stream
from pipeline.query.checked import Query


class SeparateWindows(Pane):
    """Pane, where no windows share a traversal."""

    def run(self, query: Query, stream: Stream, limits: Limits, cost: Cost) -> list[Row]:
        """The same rows."""
        with patch.object(indexed, "MAX_WIDTH", 1), patch.object(pane, "slides", lambda *_: False):
            return super().run(query, stream, limits, cost)


WITHOUT = {name: f"sase, no {name}" for name in OPTIMISATIONS}
SEPARATE = "pane, separate windows"

VARIANTS: dict[str, Engine] = {
    **{engine.name: engine for engine in ENGINES},
    **{title: Sase().without(name) for name, title in WITHOUT.items()},
    SEPARATE: SeparateWindows(),
}
