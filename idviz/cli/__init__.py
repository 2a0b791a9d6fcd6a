"""The ``idviz`` command.

- ``commands``: app, lab, doctor, bench, sizes; ``lab``: the commands that train and measure
- ``parts``: what commands share; ``tables``: what they print
- ``app_server``, ``lab_server``: how Streamlit and JupyterLab are started; ``ports``: where they listen
- ``doctor``: whether everything is installed and works
"""

from idviz.cli.commands import app, main

__all__ = ["app", "main"]
