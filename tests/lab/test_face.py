"""`idviz.lab` itself: every name that it offers is there, and none costs an import before it is used."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import idviz.lab


@pytest.mark.parametrize("name", idviz.lab.__all__)
def test_every_name_resolves(name):
    thing = getattr(idviz.lab, name)
    assert isinstance(thing, ModuleType) or callable(thing)
    assert thing.__doc__ and name in dir(idviz.lab)


def test_the_package_loads_no_torch():
    code = "import sys, idviz.lab; dir(idviz.lab); assert not {'torch', 'numpy', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_results_and_corpus_need_no_torch():
    code = "import sys; from idviz.lab import corpus, results; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
