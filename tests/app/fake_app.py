"""The fake explorable as an app of one page."""

from __future__ import annotations

from fake import FAKE

from app.render import render

render(FAKE)
