"""The parts of every mixer: one interface with its checks, per-head norms, the core's input and output (E18, E19)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from idviz.learned.checks import has_values, head_size, switches, whole_number
from idviz.learned.features import WIDTH, FeatureMap, ShortConvolution
from idviz.learned.rope import rotate


def state_tensors(state) -> Iterator[Tensor]:
    """Every tensor in a (nested) state, in order."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, tuple):
        for part in state:
            yield from state_tensors(part)


def state_bytes(state) -> int:
    """Bytes of a mixer's or a decoder's whole state, convolution pasts included (E20's budget leaves them out)."""
    return sum(tensor.numel() * tensor.element_size() for tensor in state_tensors(state))


Pasts = tuple[Tensor | None, ...]  # of the convolutions of q, k and v: (B, 3, d), None where one is left out


class Mixer(nn.Module):
    """A token mixer: x (B, T, d) and the state of the past -> y (B, T, d) and the state after the last token.

    ``forward(x, state=None) -> (y, state)`` runs over T tokens at once; ``step(x, state)`` over one, x (B, d) or
    (B, 1, d). Any split of a sequence gives the same outputs. States are never changed in place, so that one past may
    be continued twice.

    Raises ``ValueError`` for x of a wrong shape, dtype or device, or without tokens, and for a state that does not fit.
    """

    State: type
    to_out: HeadOutput

    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.d_head = head_size(dim, heads)
        self.dim, self.heads = int(dim), int(heads)

    def forward(self, x: Tensor, state=None):
        self._check(x, state)
        return self._mix(x, self._empty(x) if state is None else state)

    def step(self, x: Tensor, state=None):
        """One token, by the recurrence: x (B, d) or (B, 1, d) -> y of the same shape, state."""
        flat = isinstance(x, Tensor) and x.ndim == 2
        x = x[:, None] if flat else x
        self._check(x, state)
        if x.shape[1] != 1:
            raise ValueError(f"step takes one token, x (B, {self.dim}) or (B, 1, {self.dim}), not {tuple(x.shape)}")
        y, state = self._mix(x, self._empty(x) if state is None else state, step=True)
        return (y[:, 0] if flat else y), state

    def initial_state(self, batch: int = 1):
        """The empty past, on the parameters' device."""
        weight = self._weight
        has_values("the mixer", weight.device)
        return self._empty(weight.new_zeros(whole_number("batch", batch), 1, self.dim))

    def state_size(self, T: int) -> int:
        """Real numbers of recurrent state after T tokens, a layer and a sequence, convolution state excluded (E20)."""
        raise NotImplementedError

    def _empty(self, x: Tensor):
        """The state before the first token, for the batch, device and dtype of x."""
        raise NotImplementedError

    def _shapes(self, batch: int) -> list[tuple[int | None, ...]]:
        """Shapes of the tensors in a state, in order; None for an axis that grows."""
        raise NotImplementedError

    def _mix(self, x: Tensor, state, step: bool = False):
        """y (B, T, d) and the state after the last token, unchecked."""
        raise NotImplementedError

    @property
    def _weight(self) -> Tensor:
        return self.to_out.project.weight

    def _check(self, x, state) -> None:
        if not isinstance(x, Tensor) or x.ndim != 3 or x.shape[-1] != self.dim:
            given = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise ValueError(f"x must be a tensor (B, T, {self.dim}), not {given}")
        if 0 in x.shape:
            raise ValueError(f"x is empty (shape {tuple(x.shape)}); it needs at least one sequence of one token")
        if x.device != self._weight.device:
            raise ValueError(f"x is on {x.device}, the mixer on {self._weight.device}; they must be on one device")
        has_values("the mixer", x.device)
        if x.dtype != self._weight.dtype and not (
            x.is_floating_point() and torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64
        ):
            raise ValueError(f"x must be {self._weight.dtype} as the mixer's weights are, not {x.dtype}")
        if state is not None:
            self._check_state(x, state)

    def _check_state(self, x: Tensor, state) -> None:
        if not isinstance(state, self.State):
            raise ValueError(f"state must be a {self.State.__name__}, not {type(state).__name__}")
        tensors, shapes = list(state_tensors(state)), self._shapes(len(x))
        if len(tensors) != len(shapes):
            raise ValueError(f"state holds {len(tensors)} tensors, this mixer's {len(shapes)}: it is another mixer's")
        wide = torch.promote_types(self._weight.dtype, torch.float32)
        for tensor, shape in zip(tensors, shapes, strict=True):
            if tensor.shape[0] != x.shape[0]:
                raise ValueError(f"state is of {tensor.shape[0]} sequences, x of {x.shape[0]}; they must be as many")
            if tensor.ndim != len(shape) or any(b not in (None, a) for a, b in zip(tensor.shape, shape, strict=True)):
                wanted = ", ".join("T" if size is None else str(size) for size in shape)
                raise ValueError(f"state holds the shape {tuple(tensor.shape)} where this mixer's has ({wanted})")
            if tensor.device != x.device:
                raise ValueError(f"state is on {tensor.device}, x on {x.device}; they must be on one device")
            kind = torch.promote_types(tensor.dtype, torch.float32)  # a low-precision cache serves a wider mixer
            if kind not in (wide, wide.to_complex()):
                raise ValueError(f"state is {tensor.dtype}, the mixer works in {wide}: it is another mixer's")


class HeadNorm(nn.Module):
    """RMSNorm with a gain, and a bias, per head: x (B, H, T, d) -> the same shape (E19). Either can be left out.

    Gains start at ``gain``, biases at 0; both are stored flat, (H·d,), so that weight decay spares them like other
    vectors.
    """

    def __init__(self, heads: int, d: int, *, norm: bool = True, bias: bool = False, gain: float = 1.0):
        super().__init__()
        self.heads, self.d = heads, d
        self.weight = nn.Parameter(torch.full((heads * d,), gain)) if norm else None
        self.bias = nn.Parameter(torch.zeros(heads * d)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if self.weight is not None:
            x = F.rms_norm(x, (self.d,), eps=1e-6) * self.weight.view(self.heads, 1, self.d)
        return x if self.bias is None else x + self.bias.view(self.heads, 1, self.d)


class CoreInput(nn.Module):
    """From the residual stream to the core's q, k, v (E18, E19), the same for every mixer with a fixed-size state.

    In order: projection; short convolution and SiLU on q, k and v alike, as in DeltaNet; q and k normalised (ξ), v not;
    RMSNorm and per-head bias on the key half and the value half of [ξ(k); v], not on queries; RoPE on the features of q
    and k, unless there are no keys for a query to turn against. The gain on keys starts at d_k^{-1/2}, so that a key
    enters the core with norm 1, as the feature map made it, and the readout starts as the average that E17 asks for.

    ``forward(x, past, position)``: x (B, T, d) -> q, k, v, each (B, H, T, d/H) in at least float32, or None where left
    out; and the convolutions' new pasts.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        queries: bool = True,
        keys: bool = True,
        norm: str = "l2",
        rope: bool = True,
        input_norm: bool = True,
        biases: bool = True,
    ):
        super().__init__()
        d = head_size(dim, heads)
        switches(rope=rope, input_norm=input_norm, biases=biases)
        self.dim, self.heads, self.d, self.rope = dim, heads, d, rope and queries and keys
        if self.rope and d % 2:
            raise ValueError(f"RoPE turns features in pairs: dim/heads must be even, not {d}; or set rope=False")
        self.to_q = nn.Linear(dim, dim, bias=False) if queries else None
        self.to_k = nn.Linear(dim, dim, bias=False) if keys else None
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.map_q = FeatureMap(heads, d, norm) if queries else None
        self.map_k = FeatureMap(heads, d, norm) if keys else None
        self.map_v = ShortConvolution(dim)
        self.norm_k = HeadNorm(heads, d, norm=input_norm, bias=biases, gain=d**-0.5) if keys else None
        self.norm_v = HeadNorm(heads, d, norm=input_norm, bias=biases)

    def empty(self, x: Tensor) -> Pasts:
        """The convolutions' pasts before the first token: zeros."""
        zeros = x.new_zeros(x.shape[0], WIDTH - 1, self.dim, dtype=torch.promote_types(x.dtype, torch.float32))
        return tuple(None if project is None else zeros for project in (self.to_q, self.to_k, self.to_v))

    def shapes(self, batch: int) -> list[tuple[int, ...]]:
        """Shapes of the pasts, for those convolutions that there are."""
        present = [project for project in (self.to_q, self.to_k, self.to_v) if project is not None]
        return [(batch, WIDTH - 1, self.dim)] * len(present)

    def forward(self, x: Tensor, past: Pasts, position: int) -> tuple[Tensor | None, Tensor | None, Tensor, Pasts]:
        q, k, v = (None if project is None else _wide(project(x)) for project in (self.to_q, self.to_k, self.to_v))
        past_q, past_k, past_v = past
        with torch.autocast(x.device.type, enabled=False):
            if q is not None and self.map_q is not None:
                q, past_q = self.map_q(q, past_q)
            if k is not None and self.map_k is not None and self.norm_k is not None:
                k, past_k = self.map_k(k, past_k)
                k = self.norm_k(k)
            v, past_v = self.map_v(v, past_v)
            v = self.norm_v(v.unflatten(-1, (self.heads, self.d)).transpose(1, 2))
            if self.rope and q is not None and k is not None:
                q, k = rotate(q, position), rotate(k, position)
        past = past_q, past_k, past_v
        if x.shape[1] > 1:  # a copy: a view of three rows would keep the whole sequence alive
            past = tuple(None if rows is None else rows.clone() for rows in past)
        return q, k, v, past


def _wide(x: Tensor) -> Tensor:
    """``x`` in at least float32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class HeadOutput(nn.Module):
    """From the heads back to the residual stream: optional RMSNorm per head, then the output projection."""

    def __init__(self, dim: int, heads: int, *, norm: bool):
        super().__init__()
        switches(output_norm=norm)
        self.norm = HeadNorm(heads, dim // heads) if norm else None
        self.project = nn.Linear(dim, dim, bias=False)

    def forward(self, o: Tensor) -> Tensor:
        """o (B, H, T, d/H) -> (B, T, d)."""
        o = o if self.norm is None else self.norm(o)
        o = o.transpose(1, 2).flatten(2)
        return self.project(o if torch.is_autocast_enabled(o.device.type) else o.to(self.project.weight.dtype))


class CoreMixer(Mixer):
    """A mixer around a core with a fixed-size state: :class:`CoreInput`, core, :class:`HeadOutput`.

    Its ``State`` is a named tuple: the convolutions' pasts, what the core keeps, and how many tokens it has seen, which
    is the position that RoPE continues from. A subclass says what the core does, in ``_core``.
    """

    input: CoreInput

    def _core(self, q, k, v, state, step: bool) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:
        """The core's output o (B, H, T, d/H), and what it keeps."""
        raise NotImplementedError

    def _mix(self, x: Tensor, state, step: bool = False):
        q, k, v, past = self.input(x, state.past, state.position)
        with torch.autocast(x.device.type, enabled=False):  # the core runs in at least float32
            o, kept = self._core(q, k, v, state, step)
        return self.to_out(o), self.State(past, kept, state.position + x.shape[1])
