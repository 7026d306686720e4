"""Kernels compiled by numba, when a run is long enough to be worth loading it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

from pipeline.engines.contract import Limits
from pipeline.engines.kernels import sase

PLAIN_STEPS = 20_000  # a shorter loop ends in Python before numba is loaded
COMPILED_STEPS = 5_000_000  # between two looks at the clock

Loop = Callable[..., int]
_registered: set[Callable[..., Any]] = set()


@cache
def compiled(loop: Loop) -> Loop:
    """A kernel's loop, compiled; the machine code is kept on disk for the next run."""
    import numba
    from numba.extending import register_jitable

    for helper in sase.HELPERS:
        if helper not in _registered:
            _registered.add(helper)
            register_jitable(_nrt=False)(helper)
    # Nothing is allocated in these loops; without numba's reference counts they run four times as fast.
    return numba.njit(cache=True, _nrt=False)(loop)  # type: ignore[call-overload, no-any-return]


def ready(loop: Loop, limits: Limits, *arguments: Any) -> Loop:
    """A compiled loop, after a call without steps; the time to compile it does not count as the run's."""
    started = time.monotonic()
    limits.progress("compiling, which is done once")
    run = compiled(loop)
    run(*arguments)
    limits.extend(time.monotonic() - started)
    return run
