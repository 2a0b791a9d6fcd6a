"""Fresh decoders whose every part does something."""

from __future__ import annotations

import torch


def awake(module, seed=0):
    """The module with every D and every mixer's output projection drawn.

    At their start, 0, they would pass nothing on and hide a fault.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.split(".")[-1] == "D":
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
            elif name.endswith("to_out.project.weight") and not parameter.any():
                drawn = torch.randn(parameter.shape, generator=generator)
                parameter.copy_(0.25 * parameter.shape[1] ** -0.5 * drawn)
    return module
