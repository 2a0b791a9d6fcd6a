"""Explorables in Jupyter: :func:`show` renders one with ipywidgets.

>>> from idviz.widgets import show
>>> view = show("memory", order=16)      # moves with its sliders; view.values, view.result, view.set(order=32)
"""

from __future__ import annotations

from idviz.widgets.view import View, all_views, show

__all__ = ["View", "all_views", "show"]
