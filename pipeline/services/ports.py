"""Ports of this machine: one that is free, and whether somebody listens."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def listens(host: str, port: int) -> bool:
    """Whether somebody answers there."""
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True
