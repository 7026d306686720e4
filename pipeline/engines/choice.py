"""The engines there are, who can run a query, and which one `auto` takes."""

from __future__ import annotations

from pipeline.engines.affine import affine_refusal
from pipeline.engines.aseq import Aseq
from pipeline.engines.cogra import Cogra
from pipeline.engines.contract import Engine, Refusal, TrendBuilder
from pipeline.engines.greta import Greta
from pipeline.engines.nishimura import Fla, Prc
from pipeline.engines.pane import Pane
from pipeline.engines.sase import Sase
from pipeline.errors import CannotRunError, TrendsError, nearest
from pipeline.query.checked import Query
from pipeline.query.tree import Semantics

# From the cheapest to the most general, for most queries; then those that build what SASE does, for fewer queries.
ENGINES: tuple[Engine, ...] = (Pane(), Cogra(), Aseq(), Greta(), Sase(), Fla(), Prc())
AUTO = "auto"


def refusals(query: Query) -> dict[str, Refusal | None]:
    """Per engine, why it cannot run the query, or None where it can."""
    return {engine.name: engine.refuses(query) for engine in ENGINES}


def by_cost(query: Query) -> list[Engine]:
    """The engines from the cheapest on for this query: `auto` takes the first that can run it.

    Without SLIDE, and with conditions between neighbours, the online engines aggregate the window anew for every event.
    That costs more than building the trends where these are few: if nothing that fits is skipped, or if no trend is
    longer than two events.
    """
    follow = query.automaton.follow
    short = not any(w == x for _, w in follow for x, _ in follow)
    anew = query.tree.slide is None and affine_refusal(query) is not None
    few = anew and (query.semantics is not Semantics.ANY or short)
    return sorted(ENGINES, key=lambda engine: few and not isinstance(engine, Sase))


def choose(query: Query, name: str = AUTO, *, builds_trends: bool = False) -> Engine:
    """The engine of this name, or the cheapest that can run the query; one that can give the trends, if asked for."""
    known = {engine.name: engine for engine in ENGINES}
    builders = [engine.name for engine in ENGINES if isinstance(engine, TrendBuilder)]
    if name == AUTO:
        for engine in by_cost(query):
            if engine.refuses(query) is None and (engine.name in builders or not builds_trends):
                return engine
        reasons = "\n".join(f"{name}: {why.clause}: {why.reason}" for name, why in refusals(query).items() if why)
        raise CannotRunError(f"no engine can run this query\n{reasons}")
    if name not in known:
        close = nearest(name, (AUTO, *known))
        hint = f"did you mean {close}?" if close else f"the engines are {', '.join((AUTO, *known))}"
        raise TrendsError(f"unknown engine {name}\nhint: {hint}")
    if builds_trends and name not in builders:
        raise CannotRunError(
            f"{name} builds no trends, which --matches asks for\nhint: engines that can: {', '.join(builders)}"
        )
    check_can_run(query, known[name])
    return known[name]


def check_can_run(query: Query, engine: Engine) -> None:
    """Raise where an engine cannot run a query, saying which clause and which engines can."""
    refusal = engine.refuses(query)
    if refusal is not None:
        able = [other for other, why in refusals(query).items() if why is None and other != engine.name]
        others = f"engines that can: {', '.join(able)}" if able else "no other engine can run it either"
        raise CannotRunError(f"{engine.name} cannot run this query: {refusal.clause}: {refusal.reason}\nhint: {others}")
