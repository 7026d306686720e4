"""Running a kernel's loop some steps at a time: in Python while it is short, then compiled by numba."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.engines.contract import Limits
from pipeline.engines.kernels import (
    affine,
    aseq,
    cells,
    conquer,
    eras,
    extensions,
    fenwick,
    index,
    links,
    neighbours,
    numbers,
    online,
    order,
    panes,
    paths,
    sase,
    sliding,
    slots,
    summary,
    sums,
    windows,
)
from pipeline.engines.kernels.status import DONE, MORE

PLAIN_STEPS = 20_000  # a shorter loop ends in Python before numba is loaded
# Modules with HELPERS.
KERNELS: tuple[Any, ...] = (
    order,
    numbers,
    cells,
    windows,
    sase,
    online,
    links,
    affine,
    panes,
    summary,
    aseq,
    neighbours,
    paths,
    extensions,
    index,
    slots,
    fenwick,
    conquer,
    sums,
    eras,
    sliding,
)
COMPILED_STEPS = 5_000_000  # between two looks at the clock

# Takes its arguments and a number of steps, and returns a status.
Loop = Callable[..., int]
_registered: set[Callable[..., Any]] = set()
_loaded: set[Loop] = set()  # loops whose machine code this process has


def run(
    loop: Loop,
    arguments: Callable[[], tuple[Any, ...]],
    limits: Limits,
    so_far: Callable[[], str],
    *,
    steps: int,
    in_python: bool = False,
) -> Iterator[int]:
    """Run a loop to its end, pausing with its status where the caller must do something.

    A loop of few `steps` is run in Python, at least to begin with, unless its machine code was loaded already;
    `in_python`: all of it, since it asks Python back.
    """
    plain = in_python or (steps < PLAIN_STEPS and loop not in _loaded)
    step = loop if plain else _ready(loop, limits, arguments())
    status = MORE
    while status != DONE:
        status = step(*arguments(), PLAIN_STEPS if plain else COMPILED_STEPS)
        if status != DONE:
            limits.check_time(so_far)
        if status != MORE:
            yield status
        elif plain and not in_python:
            plain, step = False, _ready(loop, limits, arguments())
        limits.progress(so_far())


def _ready(loop: Loop, limits: Limits, arguments: tuple[Any, ...]) -> Loop:
    """A compiled loop, after a call without steps; the time to compile it does not count as the run's."""
    started = time.monotonic()
    limits.progress("compiling, which is done once")
    compiled = _compiled(loop)
    compiled(*arguments, 0)
    limits.extend(time.monotonic() - started)
    _loaded.add(loop)
    return compiled


@cache
def _compiled(loop: Loop) -> Loop:
    """A kernel's loop, compiled; the machine code is kept on disk for the next run, where that is possible."""
    import numba
    from numba.extending import register_jitable

    # Nothing is allocated in these loops; without numba's reference counts they run four times as fast.
    inlined = {helper for kernel in KERNELS for helper in getattr(kernel, "INLINED", ())}
    for kernel in KERNELS:
        for helper in kernel.HELPERS:
            if helper not in _registered:
                _registered.add(helper)
                register_jitable(_nrt=False, forceinline=helper in inlined)(helper)
    if not numba.config.CACHE_DIR:  # type: ignore[attr-defined]
        numba.config.CACHE_DIR = str(_cache_folder())  # type: ignore[attr-defined]
    try:
        return numba.njit(cache=True, _nrt=False)(loop)  # type: ignore[call-overload, no-any-return]
    except RuntimeError:  # no folder that numba may write to
        return numba.njit(_nrt=False)(loop)  # type: ignore[call-overload, no-any-return]


def _cache_folder() -> Path:
    """Where machine code is kept: a folder that a change of any kernel renames, since numba looks at one file alone."""
    sources = [Path(__file__), *sorted(Path(__file__).with_name("kernels").glob("*.py"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = Path(__file__).with_name("__pycache__")
    for old in folder.glob("numba-*"):
        if old.name != f"numba-{digest}":
            shutil.rmtree(old, ignore_errors=True)
    return folder / f"numba-{digest}"
