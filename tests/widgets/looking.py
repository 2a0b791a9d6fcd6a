"""What a test looks at on a view."""

from __future__ import annotations

import ipywidgets

from idviz.widgets import View


def every_widget(widget: ipywidgets.Widget) -> list[ipywidgets.Widget]:
    """The widget and all inside it."""
    return [widget, *(leaf for child in getattr(widget, "children", ()) for leaf in every_widget(child))]


def shown_text(view: View) -> str:
    """Every word on the page, from all HTML widgets."""
    words = [
        widget for widget in every_widget(view.widget) if isinstance(widget, ipywidgets.HTML | ipywidgets.HTMLMath)
    ]
    return "\n".join(widget.value for widget in words if widget.layout.display != "none")
