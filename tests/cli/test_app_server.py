"""How the app is started: where it is, with which flags, and that its start-up log is clean."""

from __future__ import annotations

import socket

import pytest

from idviz.cli.app_server import SERVER_FLAGS, command, open_when_ready
from idviz.cli.ports import free_port
from idviz.folders import app_folder
from tests.helpers.servers import served_app


def test_app_folder_has_main():
    assert (app_folder() / "main.py").is_file()
    assert (app_folder() / ".streamlit" / "config.toml").is_file()


def test_command_has_flags_and_port():
    line = command(8765)
    assert set(SERVER_FLAGS) <= set(line)
    assert "--server.address=127.0.0.1" in line
    assert "--browser.gatherUsageStats=false" in line
    assert line[-1] == "--server.port=8765"
    assert not any("--server.port" in word for word in command())


@pytest.mark.parametrize("port", [0, -1, 65536, 1.5, "8501", True])
def test_command_refuses_a_bad_port(port):
    with pytest.raises(ValueError, match="from 1 to 65535"):
        command(port)


@pytest.mark.slow
def test_start_up_log_is_clean(tmp_path):
    log = tmp_path / "log.txt"
    with served_app(log):
        pass
    text = log.read_text()
    for word in ("Warning", "WARNING", "Error", "ERROR", "Traceback", "External URL", "Network URL", "deprecat"):
        assert word not in text, text


def test_a_free_port_is_one_that_nobody_listens_to():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) > port
        with pytest.raises(ValueError, match=f"no port from {port} to {port} is free"):
            free_port(port, tries=1)


def test_the_browser_opens_once_the_app_answers_and_only_where_there_is_a_screen(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert not open_when_ready(port)  # no screen
        monkeypatch.setenv("DISPLAY", ":0")
        assert not open_when_ready(port, patience=0.3)  # nobody answers yet
        assert opened == []
        server.listen()
        assert open_when_ready(port)
    assert opened == [f"http://127.0.0.1:{port}"]
