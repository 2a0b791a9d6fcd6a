"""The token mixers by name, all with one interface (see :class:`Mixer`)."""

from __future__ import annotations

from idviz.learned.attention_mixers import LinearAttentionMixer, SoftmaxMixer
from idviz.learned.interdomain_mixer import InterdomainMixer
from idviz.learned.mixer_parts import Mixer, state_bytes
from idviz.learned.s4d_mixer import S4DMixer

MIXERS: dict[str, type[Mixer]] = {
    "interdomain": InterdomainMixer,
    "s4d": S4DMixer,
    "softmax": SoftmaxMixer,
    "linear": LinearAttentionMixer,
}

__all__ = ["MIXERS", "InterdomainMixer", "LinearAttentionMixer", "Mixer", "S4DMixer", "SoftmaxMixer", "state_bytes"]
