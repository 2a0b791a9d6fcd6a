"""The fake explorable as an app of one page."""

from __future__ import annotations

from app.render import render
from tests.helpers.fake import FAKE

render(FAKE)
