"""Words for people: numbers, shares, counts, sizes, durations and lists, written the same way everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float, digits: int = 3) -> str:
    """A number with ``digits`` significant figures, with an exponent from 1e4 up and below 1e-3: "0.5", "1.23e4"."""
    value = float(value)
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e4 or size < 1e-3:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    text = f"{value:.{digits}g}"
    if "e" in text:  # 999.6 rounds to 1e+03
        text = f"{float(text):.0f}"
    return text.replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign: "+0.031", "−2.1", "0"."""
    return f"{'+' if value > 0 else ''}{number(value, digits)}"


def share(part: float, digits: int | None = None) -> str:
    """A share of a whole in per cent: "62 %", "99.4 %"; only the whole of it is "100 %".

    Without ``digits``, three significant figures, two under 10 %. A share that is not finite is "no part".
    """
    if not math.isfinite(part):
        return "no part"
    if 0.9995 <= part < 1 - 1e-12:
        return "over 99.9 %"
    return f"{number(100 * part, digits or (2 if abs(part) < 0.1 else 3))} %"


def count(amount: float, noun: str) -> str:
    """An amount of something, plural but for one: "1 sample", "1,024 samples", "0.25 tokens"."""
    shown = f"{amount:,}" if isinstance(amount, int) else number(amount)
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"


def over_seeds(amount: int) -> str:
    """What a mean was taken over: "one seed", "mean of 3 seeds"."""
    return "one seed" if amount == 1 else f"mean of {amount} seeds"


def listed(words: Sequence[str]) -> str:
    """A list in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def capital(text: str) -> str:
    """The text with a capital first letter and the rest as it is."""
    return text[:1].upper() + text[1:]


def subscripted(symbol: str, index: int) -> str:
    """A symbol with an index in Unicode: "c₁₂", "φ₀"."""
    return symbol + str(index).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def memory_size(amount: float) -> str:
    """An amount of memory in binary units: "512 bytes", "1.5 KiB", "84 MiB"."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if amount >= 1024**power:
            return f"{number(amount / 1024**power)} {unit}"
    return count(round(amount), "byte")


def file_size(amount: float) -> str:
    """The size of a file in decimal units: "3 kB", "1.2 MB"."""
    return f"{amount / 1e6:.1f} MB" if amount >= 1e6 else f"{max(1, round(amount / 1000))} kB"


def duration(seconds: float) -> str:
    """A time: "3.2 ms", "1.4 s"."""
    return f"{number(1000 * seconds)} ms" if seconds < 1 else f"{number(seconds)} s"
