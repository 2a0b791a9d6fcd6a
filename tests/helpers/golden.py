"""50-digit reference values, printed with 20 digits; the distance between neighbouring doubles at 1."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "reference_values.json").read_text())
EPS = np.finfo(np.float64).eps
