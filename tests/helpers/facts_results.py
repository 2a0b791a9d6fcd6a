"""A small study of facts, as ``idviz ablate facts`` writes it: answers, an ideal reader's floor, what models are."""

from __future__ import annotations

from tests.helpers.measured_results import study

FLOOR = 0.8
LOSSES = {  # nats of five seeds, share of repeated facts answered right
    "interdomain": (0.88, 0.87),
    "s4d": (0.98, 0.63),
    "softmax": (0.96, 0.62),
    "softmax_convolution": (0.90, 0.8),
    "fixed_readout": (1.00, 0.60),
    "fixed_readout_2m": (0.99, 0.64),
}
MIXERS = {"s4d": "s4d", "softmax": "softmax", "softmax_convolution": "softmax"}


def facts() -> dict:
    """Every variant's loss differs a little from seed to seed, the same way in all of them."""
    losses = {name: [loss + 0.004 * seed for seed in range(5)] for name, (loss, _) in LOSSES.items()}
    body = study("facts", losses, MIXERS)
    for row in body["rows"]:
        right = LOSSES[row["variant"]][1] + 0.01 * (row["seed"] - 2)
        near, far = round(100 * min(right + 0.1, 1)), round(100 * (right - 0.2))
        row |= {
            "floor": FLOOR,
            "answers": {"right": right, "asked": 200, "by_distance": {"1-16": [near, 100], "17-32": [far, 100]}},
            "slices": {"repeat": {"loss": 0.3, "targets": 200}},
            "makeup": {"feedforward": 192, "convolution": row["variant"] != "softmax", "output_norm": True},
        }
    return body
