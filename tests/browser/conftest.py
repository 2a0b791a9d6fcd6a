"""One headless Chromium for all browser tests; they are skipped, with a message, on a machine that has none.

Every page records its errors and requests, so that a test can end with ``quiet(page)``.
"""

from __future__ import annotations

import os
import shutil
from urllib.parse import urlsplit

import pytest

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
LOCAL_HOSTS = ("127.0.0.1", "localhost")


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, started once."""
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None and os.environ.get("IDVIZ_REQUIRE_BROWSER"):  # CI installs one, and must not skip in silence
        pytest.fail("no Chromium on this machine, and IDVIZ_REQUIRE_BROWSER is set")
    if path is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium fonts-dejavu-core)")
    playwright_api = pytest.importorskip("playwright.sync_api")
    with playwright_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture
def new_page(browser):
    """A function that opens a page in a context of its own: ``new_page(width=390, dark=True)``."""
    contexts = []

    def open_page(*, width: int = 1280, height: int = 900, dark: bool = False):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            accept_downloads=True,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        watch(page)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page):
    """A light page of 1280 by 900 pixels."""
    return new_page()


def watch(page) -> None:
    """Record the page's errors (``page.idviz_errors``) and its requests outside (``page.idviz_outside``)."""
    page.idviz_errors = []
    page.idviz_outside = []
    page.on("console", lambda message: _hear(page, message))
    page.on("pageerror", lambda error: page.idviz_errors.append(str(error)))
    page.on("request", lambda request: _note(page, request.url))
    page.on("websocket", lambda websocket: _note(page, websocket.url))


def _hear(page, message) -> None:
    # On a page's own path, Streamlit's script first looks for the server below that path, and the browser logs the 404.
    if message.type == "error" and "/_stcore/" not in message.location.get("url", ""):
        page.idviz_errors.append(message.text)


def _note(page, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in LOCAL_HOSTS:
        page.idviz_outside.append(url)


@pytest.fixture
def quiet():
    """A function that asserts: this page logged no error, and sent no request outside of this machine."""

    def check(page) -> None:
        assert page.idviz_errors == []
        assert page.idviz_outside == []

    return check
