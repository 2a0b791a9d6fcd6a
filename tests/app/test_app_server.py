"""How the app is started: where it is, with which flags, and that its start-up log is clean."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request

import pytest

from idviz.app_server import SERVER_FLAGS, app_folder, command


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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "log.txt"
    with log.open("wb") as out:
        server = subprocess.Popen(command(port), stdout=out, stderr=subprocess.STDOUT, cwd=tmp_path)
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1) as answer:
                        assert answer.status == 200
                        break
                except OSError:
                    assert server.poll() is None and time.monotonic() < deadline, log.read_text()
                    time.sleep(0.1)
        finally:
            server.terminate()
            server.wait(20)
    text = log.read_text()
    for word in ("Warning", "WARNING", "Error", "ERROR", "Traceback", "External URL", "Network URL", "deprecat"):
        assert word not in text, text
