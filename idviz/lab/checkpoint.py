"""Checkpoints that are whole or not there: weights in safetensors, the rest safe to load, damage always reported.

A run's folder ``checkpoints`` holds ``step-00000200/`` with ``model.safetensors``, ``state.pt`` and ``checkpoint.json``
(step, tokens seen, the decoder, the files' sizes). A new checkpoint is written beside it under a name that starts with
a dot, flushed to the disk, and renamed; only then is the old one removed.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from idviz.lab.files import flush, reading
from idviz.learned import Decoder, DecoderConfig

WEIGHTS, STATE, ABOUT = "model.safetensors", "state.pt", "checkpoint.json"
_PREFIXES = ("_orig_mod.", "module.")  # put before names by torch.compile and by DistributedDataParallel
_FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """Path, contents of ``checkpoint.json``, weights, and state, as :func:`read_checkpoint` gives them."""

    path: Path
    step: int
    tokens_seen: int
    decoder: DecoderConfig
    weights: dict[str, Tensor]
    state: dict

    def model(self) -> Decoder:
        """The decoder with these weights, on the CPU."""
        model = Decoder(self.decoder)
        load_weights(model, self.weights, f"weights {str(self.path / WEIGHTS)!r}")
        return model


def save(folder: Path, *, model: nn.Module, state: dict, step: int, tokens_seen: int) -> Path:
    """Write ``folder/step-…`` whole, then remove the ones before it; ``folder`` is made if missing.

    The decoder may be compiled or wrapped. ``state`` holds tensors, numbers, text, and lists and dicts of them: the
    states of the optimiser and of the random generators.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{step:08d}"
    if path.exists():
        raise ValueError(f"checkpoint {str(path)!r} is there already; nothing is written over")
    tidy(folder)
    unfinished = folder / f".writing-{path.name}"
    unfinished.mkdir()
    weights = {bare(name): tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, unfinished / WEIGHTS)
    torch.save(state, unfinished / STATE)
    inner: Any = model
    while not isinstance(inner, Decoder):
        inner = getattr(inner, "_orig_mod", None) or inner.module
    about = {"format": _FORMAT, "step": step, "tokens_seen": tokens_seen, "decoder": inner.config.to_dict()}
    about["bytes"] = {name: (unfinished / name).stat().st_size for name in (WEIGHTS, STATE)}
    (unfinished / ABOUT).write_text(json.dumps(about, indent=2), "utf-8")
    for name in (WEIGHTS, STATE, ABOUT):
        flush(unfinished / name)
    flush(unfinished)
    unfinished.rename(path)
    flush(folder)
    for older in _steps(folder):
        if older != path:
            _remove(older)
    return path


def latest(folder: Path) -> Path | None:
    """The newest checkpoint under ``checkpoints``, or None; half-written ones have other names."""
    return max(_steps(folder), default=None)


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a checkpoint to the CPU.

    Raises ``ValueError``, naming the file, where it is missing, cut short or no checkpoint; never takes another.
    """
    path = Path(path)
    if not path.is_dir():
        raise ValueError(f"checkpoint {str(path)!r} does not exist")
    with reading("checkpoint file", path / ABOUT):
        about = json.loads((path / ABOUT).read_bytes())
        step, seen, sizes = about["step"], about["tokens_seen"], about["bytes"]
        config, version = DecoderConfig(**about["decoder"]), about["format"]
    if version != _FORMAT:
        raise ValueError(f"checkpoint {str(path)!r} has format {version!r}; this idviz reads {_FORMAT}")
    for name in (WEIGHTS, STATE):
        file = path / name
        if not file.is_file():
            raise ValueError(f"checkpoint file {str(file)!r} is missing")
        if file.stat().st_size != sizes.get(name):
            raise ValueError(
                f"checkpoint file {str(file)!r} is damaged: {file.stat().st_size:,} bytes, not {sizes.get(name)!r}"
            )
    weights = read_weights(path / WEIGHTS)
    try:
        state = torch.load(path / STATE, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever the unpickler or the archive's reader met
        raise ValueError(f"checkpoint file {str(path / STATE)!r} is damaged: {error}") from None
    return Checkpoint(path, step, seen, config, weights, state)


def read_weights(path: str | Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file, without prefixes of wrappers. Raises ``ValueError`` naming the file."""
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise ValueError(f"weights {str(path)!r} do not exist") from None
    except (SafetensorError, OSError) as error:
        raise ValueError(f"weights {str(path)!r} are damaged or no safetensors: {error}") from None
    return {bare(name): tensor for name, tensor in tensors.items()}


def load_weights(model: nn.Module, weights: dict[str, Tensor], source: object = "weights") -> None:
    """Put weights into a model, compiled or not. Raises ``ValueError`` for a missing, an unknown or a misshapen key."""
    given = {bare(name): tensor for name, tensor in weights.items()}
    wanted = {bare(name): (name, tensor) for name, tensor in model.state_dict().items()}
    missing, unknown = sorted(wanted.keys() - given.keys()), sorted(given.keys() - wanted.keys())
    if missing or unknown:
        raise ValueError(
            f"{source} do not fit the model: missing {', '.join(missing) or 'none'}; "
            f"unknown {', '.join(unknown) or 'none'}"
        )
    for name, (_, tensor) in wanted.items():
        if tensor.shape != given[name].shape:
            raise ValueError(
                f"{source} do not fit the model: {name} has shape {tuple(given[name].shape)}, not {tuple(tensor.shape)}"
            )
    model.load_state_dict({own: given[name] for name, (own, _) in wanted.items()}, strict=True)


def decoder(path: str | Path, device="cpu") -> Decoder:
    """The trained decoder of a checkpoint, ready to evaluate."""
    return read_checkpoint(path).model().to(device).eval()


def bare(name: str) -> str:
    """A parameter's name without the prefixes that wrappers put before it."""
    while name.startswith(_PREFIXES):
        name = name.split(".", 1)[1]
    return name


def tidy(folder: Path) -> None:
    """Remove what a killed process left half written or half removed."""
    for pattern in (".writing-*", ".removing-*"):
        for path in folder.glob(pattern):
            shutil.rmtree(path)


def _steps(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if path.is_dir())


def _remove(path: Path) -> None:
    leaving = path.with_name(f".removing-{path.name}")  # renamed first, so that it is never half there under its name
    path.rename(leaving)
    shutil.rmtree(leaving)
