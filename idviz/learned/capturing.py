"""What a layer's core was given and what it gave, captured in one run of the model (E18, E19)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from idviz.learned.attention_mixers import SoftmaxMixer
from idviz.learned.checks import as_tokens, indices
from idviz.learned.interdomain_mixer import InterdomainMixer
from idviz.learned.mixer_parts import CoreMixer, Mixer


@dataclass(frozen=True, eq=False)
class Capture:
    """One layer on one sequence of T tokens: all heads at once, no gradients.

    Attributes
    ----------
    layer : int
        Its number, from 0.
    mixer : Mixer
        Its ``core()``, where it has one, gives ā, b̄, w and D.
    q, k : (H, T, d_k) Tensors, or None where the mixer has none
        Queries and keys as they enter the core: after feature map, norm, bias and RoPE (E18, E19). Softmax's are
        recomputed in float64.
    v : (H, T, d_v) Tensor
    s : (H, T or 1, M) Tensor or None
        Basis weights that do not come from the keys (the Interdomain mixer's ablations).
    output : (H, T, d_v) Tensor
        The core's output as the layer computed it, D⊙v included, before the output projection.
    """

    layer: int
    mixer: Mixer
    q: Tensor | None
    k: Tensor | None
    v: Tensor
    s: Tensor | None
    output: Tensor


def mixers_of(model: nn.Module) -> list[Mixer]:
    """A decoder's mixers in the order of its layers, or the one mixer itself; ``ValueError`` where there is none."""
    mixers = [module for module in model.modules() if isinstance(module, Mixer)]
    if not mixers:
        raise ValueError(f"a trace needs a decoder or a mixer, not {type(model).__name__}")
    return mixers


def in_double(x: Tensor) -> np.ndarray:
    """A tensor as a NumPy array in double precision, float64 or complex128."""
    wide = torch.promote_types(x.dtype, torch.float64)
    return np.asarray(x.detach().resolve_conj().cpu().to(wide).numpy())


def one_sequence(model: nn.Module, tokens) -> Tensor:
    """``tokens`` as a batch of one on the model's device: (1, T) ints, or (1, T, d) for a mixer."""
    ids = as_tokens("tokens", tokens)
    axes = 2 if isinstance(model, Mixer) else 1
    ids = ids[None] if ids.ndim == axes else ids
    if ids.ndim != axes + 1 or ids.shape[0] != 1 or not ids.shape[1]:
        raise ValueError(f"tokens must be one sequence of at least one token, not of shape {tuple(ids.shape)}")
    return ids.to(next(model.parameters()).device)


def capture(model: nn.Module, tokens, layer: int) -> Capture:
    """Run a decoder (or one mixer) on one sequence, up to and including a layer, and keep what its core was given.

    Parameters
    ----------
    model : Module
        A decoder, or a :class:`Mixer` by itself.
    tokens : (T,) or (1, T) ints; for a mixer (T, d) or (1, T, d)
    layer : int
        Negative ones count from the end.

    Raises
    ------
    ValueError
        More than one sequence, or none; a layer out of range.
    """
    (chosen,) = indices("layers", [layer], len(mixers_of(model))).tolist()
    kept: list[Capture] = []
    capture_each(model, one_sequence(model, tokens), [chosen], kept.append)
    return kept[0]


def capture_each(model: nn.Module, ids: Tensor, layers: Iterable[int], then: Callable[[Capture], None]) -> None:
    """Run the model once, up to the last of ``layers``, and hand each one's capture to ``then`` as it is made."""
    mixers = mixers_of(model)
    wanted = {int(layer) for layer in layers}
    entered: dict[int, tuple] = {}
    handles = []
    for layer in wanted:
        mixer = mixers[layer]

        def enter(_module, arguments, result=None, layer=layer):
            entered[layer] = arguments if result is None else result

        def leave(_module, arguments, layer=layer, mixer=mixer):
            then(_captured(layer, mixer, entered.pop(layer), arguments[0][0]))
            wanted.remove(layer)
            if not wanted:
                raise _Enough

        if isinstance(mixer, CoreMixer):
            handles.append(mixer.input.register_forward_hook(enter))
        else:
            handles.append(mixer.register_forward_pre_hook(enter))
        handles.append(mixer.to_out.register_forward_pre_hook(leave))
    try:
        with torch.no_grad():
            model(ids)
    except _Enough:
        pass
    finally:
        for handle in handles:
            handle.remove()


class _Enough(Exception):
    """Every layer that was asked for has been captured."""


def _captured(layer: int, mixer: Mixer, entered: tuple, output: Tensor) -> Capture:
    if isinstance(mixer, SoftmaxMixer):
        entered = copy.deepcopy(mixer).double().queries_keys_values(entered[0].double())[:3]
    q, k = (None if part is None else part[0] for part in entered[:2])
    s = mixer.given_weights(entered[0]) if isinstance(mixer, InterdomainMixer) else None
    return Capture(layer, mixer, q, k, entered[2][0], None if s is None else s[0], output)
