"""The exercises' self-checks, one for each. Each takes the learner's function (or value) and returns a ``Verdict``.

A check lists the right answer beside what the usual mistakes give, so that it can name the mistake.

>>> from idviz.course import check
>>> check.running_mean(my_function)
"""

from __future__ import annotations

from idviz.course.checks_attention import positive_features, running_attention, safe_mean
from idviz.course.checks_language import merge, units
from idviz.course.checks_layer import complex_readout, feature_map, next_start
from idviz.course.checks_legs import basis, project, step
from idviz.course.checks_length import fair_targets, text_perplexity
from idviz.course.checks_modes import hold, normal_part, time_and_bandwidth
from idviz.course.checks_notation import constant_state, legs_pair, running_mean, unit
from idviz.course.checks_parts import nats_below, paired
from idviz.course.checks_readout import lost, readout, token_weights
from idviz.course.checks_recall import guesses, recall_labels

__all__ = [
    "basis", "complex_readout", "constant_state", "fair_targets", "feature_map", "guesses", "hold", "legs_pair", "lost",
    "merge", "nats_below", "next_start", "normal_part", "paired", "positive_features", "project", "readout",
    "recall_labels", "running_attention", "running_mean", "safe_mean", "step", "text_perplexity", "time_and_bandwidth",
    "token_weights", "unit", "units",
]  # fmt: skip
