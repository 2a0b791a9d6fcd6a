"""The command line that serves the Streamlit app, on this machine only and with no usage statistics."""

from __future__ import annotations

import os
import sys
import time
import webbrowser
from importlib.util import find_spec

from idviz.cli.ports import HOST, answers, checked_port
from idviz.folders import app_folder
from idviz.needs import NotInstalled, sentence

SERVER_FLAGS = (
    f"--server.address={HOST}",  # Streamlit's default is every interface, and asks outside for its own address
    "--server.headless=true",
    "--server.fileWatcherType=none",  # watching imports every module that it sees, which fails for torch
    "--server.maxUploadSize=20",  # megabytes
    "--browser.gatherUsageStats=false",
    f"--browser.serverAddress={HOST}",
    "--client.toolbarMode=minimal",
    "--client.showErrorDetails=none",
)


def command(port: int | None = None) -> list[str]:
    """The command line, for ``port`` or for one of Streamlit's own choice (8501 or above).

    Raises ``ValueError`` for a port that is not a whole number from 1 to 65535; ``NotInstalled`` where Streamlit is
    missing, ``FileNotFoundError`` where the app's files are.
    """
    if find_spec("streamlit") is None:
        raise NotInstalled(sentence("`idviz app`", "streamlit"))
    line = [sys.executable, "-m", "streamlit", "run", str(app_folder() / "main.py"), *SERVER_FLAGS]
    return line if port is None else [*line, f"--server.port={checked_port(port)}"]


def open_when_ready(port: int, patience: float = 60.0) -> bool:
    """Open the app in the person's browser once it answers, unless there is no screen. Whether it was opened."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if answers(port):
            return webbrowser.open(f"http://{HOST}:{port}")
        time.sleep(0.2)
    return False
