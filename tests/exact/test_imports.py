"""The exact half stands alone: no torch, no plotting, no front end."""

from __future__ import annotations

import subprocess
import sys


def imported_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_exact_imports_nothing_heavy():
    modules = imported_by("import idviz.exact")
    assert "idviz.exact" in modules
    heavy = {"torch", "matplotlib", "streamlit", "ipywidgets", "pandas", "scipy.special", "scipy.signal", "scipy.stats"}
    assert not modules & heavy


def test_every_public_name_has_a_docstring_with_its_equation():
    import idviz.exact as exact

    for name in exact.__all__:
        thing = getattr(exact, name)
        if callable(thing):
            assert thing.__doc__, name
            assert "E" in thing.__doc__ or isinstance(thing, type), name
