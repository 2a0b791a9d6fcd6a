from __future__ import annotations

import asyncio

import pytest


@pytest.fixture(autouse=True)
def no_event_loop():
    """Playwright's sync API, once a browser test has started it, leaves its loop marked as running in this thread."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)
