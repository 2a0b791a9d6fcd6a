"""idviz: Interdomain Attention, executed, checked and drawn.

The rooms of the house, each imported when it is first used:

- ``idviz.exact``: the derivation in NumPy and SciPy, float64 (E1–E14); never imports torch
- ``idviz.samples``: signals, tables and texts to try it on
- ``idviz.learned``: the layer in PyTorch (E15–E20): feature map, modes, three equal forms, mixers, decoder
- ``idviz.lab``: train, measure, load the trained models
- ``idviz.numbers``, ``idviz.figures``, ``idviz.explore``: the interactive pages: results, pictures, controls
- ``idviz.widgets``: the same pages in Jupyter: ``idviz.widgets.show("memory")``
- ``idviz.course``, ``idviz.bench``, ``idviz.cli``: self-checks, benchmarks, the ``idviz`` command

>>> import idviz
>>> idviz.exact.legs_project([1.0, 1.0, 1.0], order=2).shape
(2, 1)
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "bench",
        "cli",
        "course",
        "exact",
        "explore",
        "figures",
        "lab",
        "learned",
        "numbers",
        "samples",
        "widgets",
    ],
)
__all__ += ["__version__"]
