"""Makes ``docs/app.png``, the picture in the README: the real app, served and photographed in a headless Chromium.

Run ``python docs/readme_picture.py`` from a checkout with Chromium and the test requirements.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from PIL import Image
from playwright.sync_api import expect, sync_playwright

from idviz.cli.app_server import command, free_port

OUT = Path(__file__).with_name("app.png")
VIEW = "memory?order=32&instant=620"
SIZE = {"width": 1280, "height": 900}


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium on this machine (Debian: apt-get install chromium fonts-dejavu-core)", file=sys.stderr)
        return 1
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, cwd=folder)
        try:
            wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
            picture = photograph(chromium, f"http://127.0.0.1:{port}/{VIEW}")
        finally:
            server.terminate()
            server.wait(20)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.save(OUT, optimize=True)
    print(f"{OUT}: {image.width}×{image.height}, {OUT.stat().st_size // 1000} kB")
    return 0


def wait_for(address: str, server: subprocess.Popen, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(address, timeout=1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the app did not start") from None
            time.sleep(0.1)


def photograph(chromium: str, address: str) -> bytes:
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
