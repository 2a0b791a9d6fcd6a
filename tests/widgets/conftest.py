"""Shared by the tests of widgets: a view, and no event loop left by a browser test."""

from __future__ import annotations

import asyncio

import pytest

from idviz.widgets import View
from tests.helpers.fake import make


@pytest.fixture(autouse=True)
def no_event_loop():
    """Playwright's sync API, once a browser test has started it, leaves its loop marked as running in this thread."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)


@pytest.fixture
def calls() -> list[dict]:
    """The values of each compute of ``view``."""
    return []


@pytest.fixture
def view(calls):
    """The fake explorable, shown."""
    view = View(make(calls=calls))
    yield view
    view.close()
