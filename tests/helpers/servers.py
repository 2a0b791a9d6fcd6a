"""The app as a process of its own."""

from __future__ import annotations

import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from idviz.cli.app_server import command
from tests.helpers.waiting import until


def free_port() -> int:
    """A port on which nobody listens; the system picks another one each time, so that tests can run side by side."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def served_app(log: Path) -> Iterator[str]:
    """The address of a running app, whose output goes to ``log``."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"

    def healthy() -> bool:
        assert server.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=1).close()
        except OSError:
            return False
        return True

    with log.open("wb") as out:
        server = subprocess.Popen(command(port), stdout=out, stderr=subprocess.STDOUT, cwd=log.parent)
        try:
            until(healthy, 60, log.read_text)
            yield address
        finally:
            server.terminate()
            server.wait(20)
