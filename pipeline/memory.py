"""How much memory the machine still has, so that a run can give up instead of being killed; and what a step took."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
FORGET_PEAK = "5"  # as Linux has it


def available_memory() -> int:
    """Bytes that can be had without swapping; where the system does not say, all there are."""
    if MEMINFO.exists():
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class Peak:
    """The memory that this process takes from here on: a process does several things, one after the other."""

    def __init__(self) -> None:
        with suppress(OSError):  # a system that cannot, or may not: then it is the peak since the process began
            CLEAR.write_text(FORGET_PEAK)
        self._before = _resident("VmRSS")

    @property
    def added(self) -> int:
        """Bytes that it took at most, beyond those that it had before."""
        return max(_resident("VmHWM") - self._before, 0)


def _resident(field: str) -> int:
    if STATUS.exists():
        facts = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return int(facts[field].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
