"""A Llama-style decoder around any mixer: RMSNorm before each layer, SwiGLU, tied embeddings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from idviz.exact.checks import choice
from idviz.learned.checks import has_values, head_size, seed_of, whole_number
from idviz.learned.generate import generate
from idviz.learned.mixers import MIXERS, Mixer

State = tuple  # one mixer state per layer


@dataclass(frozen=True)
class DecoderConfig:
    """The shape of a decoder; ``DecoderConfig(**config.to_dict())`` is an equal one, also by way of JSON.

    Attributes
    ----------
    vocabulary, dim, depth, heads : int
        Tokens, d, layers, H.
    feedforward : int
        Width of the SwiGLU layer.
    mixer : {"interdomain", "s4d", "softmax", "linear"}
    mixer_options : dict
        More arguments of that mixer: ``modes``, ``rope``, ``readout`` …

    Raises
    ------
    ValueError
        A number out of range, an unknown mixer, an option that the mixer does not have.
    """

    vocabulary: int
    dim: int
    depth: int
    heads: int
    feedforward: int
    mixer: str = "interdomain"
    mixer_options: dict = field(default_factory=dict, hash=False)

    def __post_init__(self):
        for name in ("vocabulary", "dim", "depth", "heads", "feedforward"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        head_size(self.dim, self.heads)
        known = mixer_options(self.mixer)
        options = {}
        for name, value in self.mixer_options.items():
            if name not in known:
                raise ValueError(f"the {self.mixer} mixer takes the options {', '.join(known)}, not {name!r}")
            options[name] = tuple(value) if isinstance(value, list) else value  # JSON has no tuples
        object.__setattr__(self, "mixer_options", options)

    def to_dict(self) -> dict:
        """Plain values, for JSON."""
        return asdict(self)


def mixer_options(mixer: str) -> tuple[str, ...]:
    """The names that ``mixer_options`` may hold for a mixer."""
    parameters = inspect.signature(MIXERS[choice("mixer", mixer, tuple(MIXERS))]).parameters
    return tuple(name for name in parameters if name not in ("dim", "heads"))


class RMSNorm(nn.Module):
    """x/RMS(x) with a gain, computed in at least float32; shape and dtype of x."""

    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        return F.rms_norm(x.to(wide), self.weight.shape, self.weight.to(wide), eps=1e-6).to(x.dtype)


class SwiGLU(nn.Module):
    """down(SiLU(gate x) ⊙ up x), x (…, d)."""

    def __init__(self, dim: int, width: int):
        super().__init__()
        self.gate, self.up = nn.Linear(dim, width, bias=False), nn.Linear(dim, width, bias=False)
        self.down = nn.Linear(width, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """x + mixer(norm x), then x + SwiGLU(norm x)."""

    def __init__(self, config: DecoderConfig):
        super().__init__()
        self.mixer_norm, self.feedforward_norm = RMSNorm(config.dim), RMSNorm(config.dim)
        self.mixer: Mixer = MIXERS[config.mixer](config.dim, config.heads, **config.mixer_options)
        self.feedforward = SwiGLU(config.dim, config.feedforward)

    def forward(self, x: Tensor, state=None, *, step: bool = False):
        mix = self.mixer.step if step else self.mixer
        y, state = mix(self.mixer_norm(x), state)
        x = x + y
        return x + self.feedforward(self.feedforward_norm(x)), state


class Decoder(nn.Module):
    """Tokens (B, T) -> logits (B, T, V), and a state that carries the past from call to call.

    Every position gets the same logits whether the text is read whole, in pieces or token by token. The embedding is
    also the output layer. ``seed`` is that of the initial weights; the global generator is left as it was.

    Raises ``ValueError`` for tokens of a wrong shape, dtype or device, or outside the vocabulary, and for a state of
    another decoder or batch.
    """

    def __init__(self, config: DecoderConfig, *, seed: int = 0):
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(seed))
            self.embedding = nn.Embedding(config.vocabulary, config.dim)
            # a ModuleList, whose items torch types as any module
            self.blocks = cast(Sequence[Block], nn.ModuleList(Block(config) for _ in range(config.depth)))
            self.norm = RMSNorm(config.dim)
            self._initialise()

    def _initialise(self) -> None:
        """Normal weights, σ = 0.5/√fan-in (0.018 at d = 768); less where a layer writes to the residual stream.

        There a feed-forward layer's are divided by √(2·depth), and a mixer's, of every kind, start at 0: a fresh
        decoder reads nothing but the last token, and each mixer is let in as fast as it helps.
        """
        nn.init.normal_(self.embedding.weight, std=0.02)
        for block in self.blocks:
            for module in block.modules():
                if isinstance(module, nn.Linear):
                    nn.init.normal_(module.weight, std=0.5 * module.in_features**-0.5)
            with torch.no_grad():
                block.feedforward.down.weight.mul_((2 * self.config.depth) ** -0.5)
                block.mixer.to_out.project.weight.zero_()

    def forward(
        self, tokens: Tensor, state: State | None = None, *, chunk: int | None = None, last_only: bool = False
    ) -> tuple[Tensor, State]:
        """Logits of the next token at every position, and the state after the last.

        Parameters
        ----------
        tokens : (B, T) int Tensor
        state : tuple, optional
            From an earlier call; the empty past if None.
        chunk : int, optional
            Read the tokens in pieces of this many, as for a long prompt; the logits are the same.
        last_only : bool
            Return the logits (B, 1, V) of the last position only.
        """
        self._check(tokens, state)
        T = tokens.shape[1]
        pieces = tokens.split(T if chunk is None else whole_number("chunk", chunk), dim=1)
        hidden: list[Tensor] = []
        after = state or ()
        for piece in pieces:
            h, after = self._hidden(piece, after)
            hidden = [h[:, -1:]] if last_only else [*hidden, h]
        return self._logits(torch.cat(hidden, dim=1)), after

    def step(self, tokens: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """One token per sequence, by the mixers' recurrences: tokens (B,) int -> logits (B, V), state."""
        if not isinstance(tokens, Tensor) or tokens.ndim != 1:
            raise ValueError(f"step takes tokens (B,), one per sequence, not {_kind(tokens)}")
        self._check(tokens[:, None], state)
        h, state = self._hidden(tokens[:, None], state, step=True)
        return self._logits(h)[:, 0], state

    def generate(self, prompt, max_new: int, **options) -> Iterator[int]:
        """Stream new tokens; see :func:`idviz.learned.generate.generate`."""
        return generate(self, prompt, max_new, **options)

    def initial_state(self, batch: int = 1) -> State:
        """The empty past of each layer."""
        return tuple(block.mixer.initial_state(batch) for block in self.blocks)

    def state_size(self, T: int) -> int:
        """Real numbers of recurrent state after T tokens in all layers, convolution state excluded (E20)."""
        return sum(block.mixer.state_size(T) for block in self.blocks)

    def state_per_layer(self, T: int) -> int:
        """Real numbers of recurrent state after T tokens in one layer, convolution state excluded (E20)."""
        return self.blocks[0].mixer.state_size(T)

    def parameter_count(self) -> int:
        """Number of parameters; the tied embedding counts once."""
        return sum(parameter.numel() for parameter in self.parameters())

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    def _hidden(self, tokens: Tensor, state: State | None, step: bool = False) -> tuple[Tensor, State]:
        x = self.embedding(tokens)
        states = []
        for block, past in zip(self.blocks, state or [None] * len(self.blocks), strict=True):
            x, after = block(x, past, step=step)
            states.append(after)
        return self.norm(x), tuple(states)

    def _logits(self, h: Tensor) -> Tensor:
        return F.linear(h, self.embedding.weight)

    def _check(self, tokens, state) -> None:
        if not isinstance(tokens, Tensor) or tokens.ndim != 2:
            raise ValueError(f"tokens must be a tensor (B, T), not {_kind(tokens)}")
        if tokens.dtype not in (torch.int64, torch.int32):
            raise ValueError(f"tokens must be whole numbers (int64 or int32), not {tokens.dtype}")
        if tokens.numel() == 0:
            raise ValueError(f"tokens are empty (shape {tuple(tokens.shape)}); at least one is needed")
        if tokens.device != self.device:
            raise ValueError(f"tokens are on {tokens.device}, the decoder on {self.device}; they must be on one device")
        has_values("the decoder", self.device)
        if state is not None and (not isinstance(state, tuple) or len(state) != len(self.blocks)):
            layers = f"{len(state)} layers" if isinstance(state, tuple) else type(state).__name__
            raise ValueError(f"state must be a tuple of {len(self.blocks)} layers' states, not {layers}")
        # not at training steps on a GPU, each of which would have to wait for the answer
        if tokens.device.type == "cpu" or not torch.is_grad_enabled():
            check_vocabulary(tokens, self.config.vocabulary)


def check_vocabulary(tokens: Tensor, vocabulary: int) -> None:
    """``ValueError`` with the first token outside the vocabulary, and its position."""
    outside = (tokens < 0) | (tokens >= vocabulary)
    if outside.any():
        where = tuple(outside.nonzero()[0].tolist())
        raise ValueError(
            f"tokens must be from 0 to {vocabulary - 1}, not {int(tokens[where])} at position {list(where)}"
        )


def _kind(value) -> str:
    return f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def pick_device(device: str | torch.device = "auto") -> torch.device:
    """A torch device; "auto" is a CUDA card where there is one, else the CPU.

    Raises ``ValueError`` for a device that torch does not know, and for a CUDA card that is not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(f"device must be auto, cpu or cuda, not {device!r}") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {device!r} is asked for, but torch sees no CUDA card here; auto takes the CPU")
    return chosen


def build(config: DecoderConfig, *, device: str | torch.device = "auto", seed: int = 0) -> Decoder:
    """A decoder with fresh weights on a device; equal seeds give equal weights on any device."""
    return Decoder(config, seed=seed).to(pick_device(device))
