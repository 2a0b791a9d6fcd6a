"""The interactive pages in Jupyter: :func:`show` displays one below the cell.

- ``view``: a page that is shown, :class:`View`; ``panel``: its controls, ``inputs`` one by one, ``player`` for time
- ``page``: its words as HTML, and its style sheet; ``saving``: files to save; ``pacing``: few draws for many moves

>>> from idviz.widgets import show
>>> view = show("memory", order=16)      # moves with its sliders; view.values, view.result, view.set(order=32)
"""

from __future__ import annotations

from idviz.widgets.view import View, all_views, show

__all__ = ["View", "all_views", "show"]
