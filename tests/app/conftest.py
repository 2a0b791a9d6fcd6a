"""The app's modules are importable as they are when Streamlit runs them."""

from __future__ import annotations

import sys
from pathlib import Path

from idviz.folders import app_folder

HERE = Path(__file__).parent
for folder in (str(HERE), str(app_folder().parent)):
    if folder not in sys.path:
        sys.path.insert(0, folder)
