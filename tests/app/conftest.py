"""No film is drawn beside the pages that these tests open: it would take half of the machine, and nobody looks."""

from __future__ import annotations

from app.film import STUDIO

STUDIO.close()
