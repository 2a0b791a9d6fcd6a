"""Small language models on real text: corpora, training, evaluation, recall, and the models that idviz carries.

>>> import idviz.lab
>>> model = idviz.lab.load("interdomain-tiny")  # doctest: +SKIP
"""

from __future__ import annotations


def load(name, *, device="auto"):
    """A trained model by its name or its folder; see :func:`idviz.lab.models.load`."""
    from idviz.lab import models  # torch is loaded when a model is asked for: signals and text need none

    return models.load(name, device=device)


__all__ = ["load"]
