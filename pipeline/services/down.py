"""Stop the services, in the order in which they need each other, with all that they started."""

from __future__ import annotations

import signal
from collections.abc import Callable

from pipeline.services.place import Place
from pipeline.services.processes import Service, stop, strays, tree

GRACE = 20.0  # seconds until what does not end by itself is ended
# Tasks end while the api-server can still be told; Spark and the database when nobody uses them any more.
AIRFLOW = ("scheduler", "dag-processor", "triggerer")
LAST = ("api-server", "site", "spark", "postgres")


def stop_all(place: Place, say: Callable[[str], None]) -> int:
    """Stop everything that was started in this place; how many processes there were."""
    state = place.state()
    services = state.services if state else ()
    later = tree(service for service in services if service.name in LAST)
    first = (tree(_named(services, *AIRFLOW)) | strays(place.home)) - later
    stopped = len(first)
    if first:
        say("stopping Airflow and its tasks\n")
        stop(first, GRACE)
    for name in LAST:
        # What came up since, of a task that was just starting, ends here too.
        processes = tree(_named(services, name)) | (strays(place.home) - tree(_named(services, *LAST)))
        if processes:
            say(f"stopping {name}\n")
            # Postgres waits for its clients on TERM, and does not on INT.
            stop(processes, GRACE, signal.SIGINT if name == "postgres" else signal.SIGTERM)
        stopped += len(processes)
    if not left(place):
        place.forget()
    return stopped


def left(place: Place) -> int:
    """How many processes of this place still run."""
    state = place.state()
    return len(tree(state.services if state else ()) | strays(place.home))


def _named(services: tuple[Service, ...], *names: str) -> list[Service]:
    return [service for service in services if service.name in names]
