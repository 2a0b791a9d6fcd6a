"""Where the Streamlit app lies and how it is started: on this machine only, with no usage statistics."""

from __future__ import annotations

import os
import socket
import sys
import time
import webbrowser
from importlib.util import find_spec

from idviz.folders import app_folder
from idviz.needs import NotInstalled, sentence

SERVER_FLAGS = (
    "--server.address=127.0.0.1",  # Streamlit's default is every interface, and it asks outside for its own address
    "--server.headless=true",
    "--server.fileWatcherType=none",  # watching imports every module it sees, which trips on torch
    "--server.maxUploadSize=20",  # megabytes
    "--browser.gatherUsageStats=false",
    "--browser.serverAddress=127.0.0.1",
    "--client.toolbarMode=minimal",
    "--client.showErrorDetails=none",
)


def free_port(first: int = 8501, tries: int = 100) -> int:
    """The first port from ``first`` on that nobody listens to on this machine. ``ValueError`` after ``tries``."""
    for port in range(first, first + tries):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise ValueError(f"no port from {first} to {first + tries - 1} is free; name one with --port")


def open_when_ready(port: int, patience: float = 60.0) -> bool:
    """Open the app in a person's browser once it answers; nothing where there is no screen. Whether one was opened."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    until = time.monotonic() + patience
    while time.monotonic() < until:
        with socket.socket() as probe:
            if not probe.connect_ex(("127.0.0.1", port)):
                return webbrowser.open(f"http://127.0.0.1:{port}")
        time.sleep(0.2)
    return False


def command(port: int | None = None) -> list[str]:
    """The command line that serves the app, on ``port`` (1 to 65535) or on Streamlit's own choice (8501 or above).

    Raises ``ValueError`` for another port, ``NotInstalled`` without Streamlit.
    """
    if find_spec("streamlit") is None:
        raise NotInstalled(sentence("`idviz app`", "streamlit"))
    line = [sys.executable, "-m", "streamlit", "run", str(app_folder() / "main.py"), *SERVER_FLAGS]
    if port is not None:
        if not isinstance(port, int) or isinstance(port, bool) or not 1 <= port <= 65535:
            raise ValueError(f"port must be a whole number from 1 to 65535, not {port!r}")
        line.append(f"--server.port={port}")
    return line
