"""The self-checks' engine: tries the learner's answer, and recognises typical mistakes to say what is off."""

from __future__ import annotations

import copy
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from idviz.figures.style import APPROXIMATION, VALUES
from idviz.words import number

_SIGNS = {"right": ("✓", VALUES), "not yet": ("○", "#777777"), "off": ("✗", APPROXIMATION)}


@dataclass(frozen=True)
class Verdict:
    """Outcome of a self-check: ``state`` is ``"right"``, ``"not yet"`` or ``"off"``; ``message`` explains it."""

    state: str
    message: str

    @property
    def passed(self) -> bool:
        return self.state == "right"

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return f"{_SIGNS[self.state][0]} {self.state}: {self.message}"

    def _repr_html_(self) -> str:
        sign, colour = _SIGNS[self.state]
        return (
            f'<div role="status" style="border-left: 4px solid {colour}; padding: 0.4em 0.8em; max-width: 46em">'
            f'<strong><span aria-hidden="true" style="color: {colour}">{sign}</span> {self.state}:</strong> '
            f"{html.escape(self.message)}</div>"
        )


@dataclass(frozen=True)
class Trial:
    """One call of the learner's function: the arguments ``given``, the ``expected`` value, and typical ``mistakes``.

    ``mistakes`` are pairs: the value that a mistake leads to (NaN equals NaN), and the explanation.
    """

    about: str
    given: tuple
    expected: Any
    mistakes: Sequence[tuple[Any, str]] = ()


def unfinished(value: Any) -> bool:
    """True for ``None`` and ``...``, which an exercise returns before it is done, and for tuples that hold one."""
    return value is None or value is ... or (isinstance(value, tuple) and any(unfinished(part) for part in value))


def part_of(answer: Callable, which: int, names: str) -> Callable:
    """A function that returns entry ``which`` of the pair that ``answer`` returns; ``names`` says what the pair is."""

    def one(*given):
        pair = answer(*given)
        if unfinished(pair):
            return None
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"the function must return a pair, {names}")
        return pair[which]

    return one


def judge(answer: Callable | Any, trials: Sequence[Trial], praise: str, tolerance: float = 1e-9) -> Verdict:
    """The verdict on ``answer``: a function, or a value for a single trial. Never raises, whatever a learner wrote.

    ``tolerance`` is relative to the largest expected number.
    """
    for trial in trials:
        verdict = _try(answer, trial, tolerance)
        if verdict is not None:
            return verdict
    return Verdict("right", praise)


def judge_pair(answer: Callable, names: str, first: Sequence[Trial], second: Sequence[Trial], praise: str) -> Verdict:
    """The verdict on a function that returns the pair ``names``: its first entry is judged, then the second."""
    verdict = judge(part_of(answer, 0, names), first, "")
    return judge(part_of(answer, 1, names), second, praise) if verdict.passed else verdict


def _try(answer: Callable | Any, trial: Trial, tolerance: float) -> Verdict | None:
    """What is off in this trial; None if the answer is right."""
    try:
        with np.errstate(all="ignore"):
            result = answer(*copy.deepcopy(trial.given)) if callable(answer) else answer
    except Exception as error:
        return Verdict("off", f"{trial.about}, your code raised {type(error).__name__}: {error}")
    if unfinished(result):
        what = "the function returns nothing" if callable(answer) else "there is no answer"
        return Verdict("not yet", f"{what} so far. Replace the dots, run the cell again, and this line changes.")
    expected = _numbers(trial.expected)
    try:
        result = _numbers(result)
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor that still requires gradients
        return Verdict("off", f"{trial.about}, the answer cannot be read as {_kind(expected)} numbers: {result!r:.80}")

    readable = expected.dtype == complex or result.dtype != complex
    if readable and _same(result, expected, tolerance):
        return None
    for value, message in trial.mistakes:
        value = _numbers(value)
        if (readable or value.dtype == complex) and _same(result, value, tolerance):
            return Verdict("off", f"{trial.about}: {message}")
    if not readable:
        return Verdict("off", f"{trial.about}, the answer cannot be read as real numbers: {result!r:.80}")
    if result.shape != expected.shape:
        turned = result.ndim == 2 and result.T.shape == expected.shape
        hint = " Is it transposed?" if turned else ""
        return Verdict("off", f"{trial.about}, the shape is {result.shape}; it should be {expected.shape}.{hint}")
    if not np.isfinite(result).all():
        where = _position(~np.isfinite(result))
        return Verdict("off", f"{trial.about}, the answer is not a finite number{where}.")
    gap = np.abs(result - expected)
    worst = np.unravel_index(np.argmax(gap), gap.shape)
    return Verdict(
        "off",
        f"{trial.about}, the shape is right but the numbers are not. Furthest off{_position(gap == gap[worst])}: "
        f"yours is {_shown(result[worst])}, it should be {_shown(expected[worst])}.",
    )


def _numbers(value: Any) -> np.ndarray:
    return np.asarray(value, dtype=complex if np.iscomplexobj(value) else float)


def _kind(array: np.ndarray) -> str:
    return "complex" if array.dtype == complex else "real"


def _shown(value: complex) -> str:
    """A real or complex number, formatted for people."""
    if not np.iscomplexobj(value):
        return number(value, 5)
    return f"{number(value.real, 5)} {'−' if value.imag < 0 else '+'} {number(abs(value.imag), 5)}i"


def _same(result: np.ndarray, value: np.ndarray, tolerance: float) -> bool:
    if result.shape != value.shape:
        return False
    finite = value[np.isfinite(value)]
    scale = np.max(np.abs(finite), initial=0.0) or 1.0
    return bool(np.allclose(result, value, rtol=0, atol=tolerance * scale, equal_nan=True))


def _position(mask: np.ndarray) -> str:
    """`` at [i, j]`` for the first marked entry; empty for a single number."""
    if mask.ndim == 0:
        return ""
    return f" at [{', '.join(str(int(i)) for i in np.argwhere(mask)[0])}]"
