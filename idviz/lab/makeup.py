"""What a run's model is made of, read from its configuration with the mixer's own defaults."""

from __future__ import annotations

import inspect
from dataclasses import asdict

from idviz.lab.config import TrainingConfig
from idviz.lab.studies.makeup import Makeup
from idviz.learned.mixers import MIXERS


def makeup(settings: TrainingConfig, vocabulary: int | None = None) -> Makeup:
    """The parts of a run's model; ``vocabulary``: tokens, where the tokenizer has another number than the settings."""
    config = settings.decoder(vocabulary or settings.vocabulary)
    defaults = {name: one.default for name, one in inspect.signature(MIXERS[config.mixer]).parameters.items()}
    options = defaults | config.mixer_options
    options.setdefault("convolution", True)  # softmax alone can do without
    made = {"mixer_options": options, "makeup": {"feedforward": config.feedforward}}
    made["makeup"]["learning_rate"] = settings.learning_rate
    return Makeup.from_row(made)


def makeup_dict(settings: TrainingConfig, vocabulary: int | None = None) -> dict:
    """The same for JSON, without what the mixer has not."""
    return {name: value for name, value in asdict(makeup(settings, vocabulary)).items() if value is not None}
