"""Shared by all tests: the golden values, small trained runs, and hypothesis profiles that are deterministic."""

from __future__ import annotations

import os

# Workers share the cores: with more threads than cores, small products take ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

from tests.helpers.golden import GOLDEN

pytest_plugins = ["tests.helpers.runs"]

settings.register_profile("idviz", derandomize=True, deadline=None, max_examples=40, print_blob=True)
settings.load_profile("idviz")


@pytest.fixture(scope="session")
def golden() -> dict:
    """50-digit reference values, printed with 20 digits."""
    return GOLDEN
