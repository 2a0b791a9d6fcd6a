"""The learned half, in PyTorch: the layer of the paper, its rivals, and a decoder (E15–E20).

Modes and their discretisation (E15)
    initial_modes, zoh_ratio, discretise; DiagonalModes, the core's parameters

The three equal forms of the core (E16, E17)
    Core, the parameters of a head; InterdomainState, initial_state; interdomain_step (the recurrence and reference),
    interdomain_materialised with materialised_states (FFT), interdomain_chunked (matrix products: to train with)

From the residual stream to the core (E18, E19)
    ShortConvolution, normalise, FeatureMap; rope_table, rotate

Token mixers, all with one interface, Mixer
    InterdomainMixer; S4DMixer with s4d_kernel_reference and s4d_kernel; SoftmaxMixer; LinearAttentionMixer; MIXERS by
    name; state_bytes, the memory of a state (E20)

The decoder
    DecoderConfig, Decoder, build, pick_device; generate, one token at a time; parameter_groups for an optimiser;
    SCALES, preset, sizes: equal parameter counts for every mixer (E20)

A layer looked into (E16, E17)
    capture -> Capture: what a core was given, from one run; trace -> Trace and trace_core -> CoreTrace: states, basis
    weights, token weights; mode_kernels, lag_kernel
"""

from idviz.learned.capturing import Capture, capture
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
from idviz.learned.s4d_mixer import s4d_kernel, s4d_kernel_reference
from idviz.learned.tracing import CoreTrace, Trace, lag_kernel, mode_kernels, trace, trace_core

__all__ = [
    "MIXERS",
    "SCALES",
    "Capture",
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
    "capture",
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
    "s4d_kernel_reference",
    "sizes",
    "state_bytes",
    "trace",
    "trace_core",
    "zoh_ratio",
]
