"""Numbers, shares, counts and sizes as people read them."""

from __future__ import annotations

import pytest

from idviz import words


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (0.5, "0.5"), (-2, "−2"), (999.6, "1000"), (12345, "1.23e4"), (-0.00042, "−4.20e−4"),
     (float("nan"), "not a number"), (float("inf"), "∞"), (float("-inf"), "−∞")],
)  # fmt: skip
def test_number(value, said):
    assert words.number(value) == said


@pytest.mark.parametrize(
    ("part", "said"),
    [(1.0, "100 %"), (0.99999, "over 99.9 %"), (0.9995, "over 99.9 %"), (0.9994, "99.9 %"), (0.967, "96.7 %"),
     (0.0312, "3.1 %"), (0.0001, "0.01 %"), (0.0, "0 %"), (-0.25, "−25 %"), (1.5, "150 %"), (float("nan"), "no part")],
)  # fmt: skip
def test_only_all_of_it_is_called_100_percent(part, said):
    assert words.share(part) == said


def test_counts_sizes_and_lists():
    assert [words.count(n, "sample") for n in (0, 1, 2, 12345)] == [
        "0 samples",
        "1 sample",
        "2 samples",
        "12,345 samples",
    ]
    assert words.count(0.25, "token") == "0.25 tokens" and words.count(1.0, "token") == "1 token"
    assert [words.memory_size(n) for n in (1, 900, 2048, 57 * 2**20, 1000 * 2**20, 3 * 2**30)] == [
        "1 byte", "900 bytes", "2 KiB", "57 MiB", "1000 MiB", "3 GiB",
    ]  # fmt: skip
    assert [words.file_size(n) for n in (10, 1499, 20_000_000)] == ["1 kB", "1 kB", "20.0 MB"]
    assert words.duration(0.0123) == "12.3 ms" and words.duration(2.5) == "2.5 s"
    assert [words.listed(list("abc")[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    assert words.capital("s4D") == "S4D" and words.subscripted("c", 12) == "c₁₂" and words.signed(0.5) == "+0.5"
    assert words.over_seeds(1) == "one seed" and words.over_seeds(3) == "mean of 3 seeds"
