"""The exercises' self-checks, one per exercise. Each takes the learner's function (or value), returns a ``Verdict``.

A check lists the right answer beside what the usual mistakes would give, so that it can name the mistake.

>>> from idviz.course import check
>>> check.running_mean(my_function)
"""

from __future__ import annotations

from idviz.course.checks_attention import positive_features, running_attention, safe_mean
from idviz.course.checks_layer import complex_readout, feature_map, next_start
from idviz.course.checks_legs import basis, project, step
from idviz.course.checks_modes import hold, normal_part, time_and_bandwidth
from idviz.course.checks_notation import constant_state, legs_pair, running_mean, unit
from idviz.course.checks_readout import lost, readout, token_weights

__all__ = [
    "basis",
    "complex_readout",
    "constant_state",
    "feature_map",
    "hold",
    "legs_pair",
    "lost",
    "next_start",
    "normal_part",
    "positive_features",
    "project",
    "readout",
    "running_attention",
    "running_mean",
    "safe_mean",
    "step",
    "time_and_bandwidth",
    "token_weights",
    "unit",
]
