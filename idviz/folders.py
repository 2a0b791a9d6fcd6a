"""The folders of idviz, in a checkout and in an installed package."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
PRETRAINED = PACKAGE / "pretrained"
RESULTS = PRETRAINED / "results"


def app_folder() -> Path:
    """The folder of the package ``app``: in ``idviz/_app`` where idviz is installed, else beside it in the checkout.

    Raises
    ------
    FileNotFoundError
        The app's main.py is in neither.
    """
    folders = (PACKAGE / "_app" / "app", PACKAGE.parent / "app")
    for folder in folders:
        if (folder / "main.py").is_file():
            return folder
    raise FileNotFoundError(f"the app's main.py is neither in {folders[0]} nor in {folders[1]}")
