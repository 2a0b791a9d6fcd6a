"""What every exercise's self-check is asked: tables of answers by subject in, test cases out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from idviz.course import check

NOT_NUMBERS = ("text", 1j, [[1, 2], [3]], np.full((2, 9), 0.5), {"a": 1}, np.array([None, 1]))
NOT_DETACHED = torch.ones(2, requires_grad=True)


@dataclass(frozen=True)
class Answers:
    """The answers to one subject's exercises.

    ``modules`` are the endings of the check modules' names, ``right`` has the right answer of each exercise,
    ``mistakes`` are (exercise, wrong answer, words that the explanation must contain), ``pairs`` the exercises whose
    function returns a pair.
    """

    modules: tuple[str, ...]
    right: dict[str, Any]
    mistakes: Sequence[tuple[str, Any, str]]
    pairs: tuple[str, ...] = ()

    @property
    def exercises(self) -> set[str]:
        return {name for name in check.__all__ if getattr(check, name).__module__.endswith(self.modules)}


def cases(answers: Answers) -> Iterator:
    """Test cases (exercise, answer, the verdict's state, words in its message)."""
    for exercise, right in answers.right.items():
        yield pytest.param(exercise, right, "right", "", id=f"{exercise}-right")
        for nothing in (None, ...):
            untouched = _returns(nothing) if callable(right) else nothing
            yield pytest.param(exercise, untouched, "not yet", "Replace the dots", id=f"{exercise}-{nothing}")
        if callable(right):
            yield pytest.param(exercise, _raises, "off", "KeyError: 'oh dear'", id=f"{exercise}-raises")
            for n, wrong in enumerate([*NOT_NUMBERS, NOT_DETACHED]):
                value = (wrong, wrong) if exercise in answers.pairs else wrong
                yield pytest.param(exercise, _returns(value), "off", "", id=f"{exercise}-no numbers {n}")
    for exercise, wrong, words in answers.mistakes:
        yield pytest.param(exercise, wrong, "off", words, id=f"{exercise}-{words[:20]}")


def _returns(value: Any):
    return lambda *given: value


def _raises(*given):
    raise KeyError("oh dear")
