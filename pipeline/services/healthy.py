"""Whether a service is well, as an exit code: `python -m pipeline.services.healthy http://host:8080 scheduler`.

`tcp://host:port` asks for no more than that somebody listens there; a page alone, that it is served.
"""

from __future__ import annotations

import sys
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from pipeline.services.airflow import Rest
from pipeline.services.ports import listens


def healthy(url: str, component: str = "") -> bool:
    """Whether the address answers; with a component of Airflow's, whether that is healthy too."""
    place = urlsplit(url)
    if place.scheme == "tcp":
        return listens(place.hostname or "", place.port or 0)
    if component:
        return Rest(url, "").health().get(component) == "healthy"
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


if __name__ == "__main__":
    sys.exit(not healthy(*sys.argv[1:]))
