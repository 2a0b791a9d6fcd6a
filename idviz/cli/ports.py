"""Ports of this machine: the servers listen on 127.0.0.1 only."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


def checked_port(port: int) -> int:
    """The same port. Raises ``ValueError`` where it is not a whole number from 1 to 65535."""
    if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
        raise ValueError(f"port must be a whole number from 1 to 65535, not {port!r}")
    return port


def answers(port: int) -> bool:
    """Whether somebody listens on this port."""
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def free_port(first: int = 8501, tries: int = 100) -> int:
    """The first port from ``first`` on that nobody listens on. Raises ``ValueError`` after ``tries``."""
    for port in range(first, first + tries):
        if not answers(port):
            return port
    raise ValueError(f"no port from {first} to {first + tries - 1} is free; name one with --port")
