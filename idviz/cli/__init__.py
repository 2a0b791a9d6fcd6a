"""The ``idviz`` command.

- ``commands``: app, lab, doctor, bench, sizes; ``lab``: what trains and measures
- ``parts``: what commands share; ``tables``: what they print
- ``app_server``, ``lab_server``: how Streamlit and JupyterLab are started; ``doctor``: is everything installed?
"""

from idviz.cli.commands import app, main

__all__ = ["app", "main"]
