"""What tests of LegS share."""

from __future__ import annotations

TOLERANCE = 1e-12  # of the channel's RMS: the issue's own bound
