"""Make ``docs/app.png``, the picture in the README: the real app, photographed in a headless Chromium.

Run ``python docs/readme_picture.py`` from a checkout with Chromium and the test requirements.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import ViewportSize, expect, sync_playwright

from idviz.cli.app_server import command
from idviz.cli.ports import HOST, answers, free_port

OUT = Path(__file__).with_name("app.png")
VIEW = "memory?order=32&instant=620"
SIZE = ViewportSize(width=1280, height=900)


def main() -> int:
    """Serve, photograph, save; the exit code is 1 without a Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium on this machine (Debian: apt-get install chromium fonts-dejavu-core)", file=sys.stderr)
        return 1
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=folder)
        try:
            wait_for(port, server)
            picture = photograph(chromium, f"http://{HOST}:{port}/{VIEW}")
        finally:
            server.terminate()
            server.wait(20)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.save(OUT, optimize=True)
    print(f"{OUT}: {image.width}×{image.height}, {OUT.stat().st_size // 1000} kB")
    return 0


def wait_for(port: int, server: subprocess.Popen, seconds: float = 60) -> None:
    """Return once the server answers. Raises ``RuntimeError`` where it ends before, or takes longer."""
    deadline = time.monotonic() + seconds
    while not answers(port):
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the app did not start")
        time.sleep(0.1)


def photograph(chromium: str, address: str) -> bytes:
    """The page as PNG, once its film is complete."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE)
        page.goto(address)
        expect(page.locator(".transport")).to_have_attribute("data-film", "complete", timeout=120_000)
        picture = page.screenshot()
        browser.close()
    return picture


if __name__ == "__main__":
    raise SystemExit(main())
