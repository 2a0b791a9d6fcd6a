"""idviz: Interdomain Attention, executed, checked and drawn.

The package is layered; arrows point down only (see ``README.md``): ``exact`` (NumPy/SciPy) at the bottom, then
``lab``, ``figures``, ``explore``, ``widgets`` and the command line. Importing ``idviz`` imports none of them.
"""

__version__ = "0.1.0"
