"""The learned half, in PyTorch: the layer of the paper, its three equal forms, its rivals, a decoder (E15–E20)."""

from idviz.learned.chunked import interdomain_chunked
from idviz.learned.decoder import Decoder, DecoderConfig, build, pick_device
from idviz.learned.features import FeatureMap, ShortConvolution, normalise
from idviz.learned.forms import (
    Core,
    InterdomainState,
    initial_state,
    interdomain_materialised,
    interdomain_step,
    materialised_states,
)
from idviz.learned.generate import generate
from idviz.learned.mixers import (
    MIXERS,
    InterdomainMixer,
    LinearAttentionMixer,
    Mixer,
    S4DMixer,
    SoftmaxMixer,
    state_bytes,
)
from idviz.learned.modes import DiagonalModes, discretise, initial_modes, parameter_groups, zoh_ratio
from idviz.learned.presets import SCALES, preset, sizes
from idviz.learned.rope import rope_table, rotate
from idviz.learned.s4d_mixer import s4d_kernel
from idviz.learned.tracing import CoreTrace, Trace, lag_kernel, mode_kernels, trace, trace_core

__all__ = [
    "MIXERS",
    "SCALES",
    "Core",
    "CoreTrace",
    "Decoder",
    "DecoderConfig",
    "DiagonalModes",
    "FeatureMap",
    "InterdomainMixer",
    "InterdomainState",
    "LinearAttentionMixer",
    "Mixer",
    "S4DMixer",
    "ShortConvolution",
    "SoftmaxMixer",
    "Trace",
    "build",
    "discretise",
    "generate",
    "initial_modes",
    "initial_state",
    "interdomain_chunked",
    "interdomain_materialised",
    "interdomain_step",
    "lag_kernel",
    "materialised_states",
    "mode_kernels",
    "normalise",
    "parameter_groups",
    "pick_device",
    "preset",
    "rope_table",
    "rotate",
    "s4d_kernel",
    "sizes",
    "state_bytes",
    "trace",
    "trace_core",
    "zoh_ratio",
]
