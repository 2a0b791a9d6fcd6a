"""The rules by which our numbers agree with what the paper claims; notebooks and README judge by the same ones."""

from __future__ import annotations

from idviz.lab.studies import Variant

FLAT = 1.02  # the ratio of perplexities up to which a curve counts as flat
MARKED = 1.10  # the ratio from which perplexity counts as markedly worse
EQUAL = 0.02  # the share by which two perplexities may differ and count as about equal
GAIN = 0.13  # by how much, at least, the paper's perplexity is lower than S4D's


def costs(variant: Variant) -> bool:
    """Whether the variant's loss is larger than the first one's, by more than the seeds' spread."""
    return bool(variant.differences.clear) and variant.difference > 0


def about_equal(variant: Variant) -> bool:
    """Whether the variant's perplexity and the first one's are within ``EQUAL`` of each other."""
    return abs(variant.first_is_lower_by) <= EQUAL
