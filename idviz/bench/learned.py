"""Benchmarks of the learned half: the chunked form against FFT, a step loop and softmax attention; S4D's kernel."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from idviz.bench.table import Row
from idviz.learned.chunked import interdomain_chunked
from idviz.learned.decoder import pick_device
from idviz.learned.forms import Core, feedthrough, interdomain_materialised, interdomain_step
from idviz.learned.modes import DiagonalModes
from idviz.learned.s4d_mixer import s4d_kernel, s4d_kernel_reference

BATCH, HEADS, CHANNELS, MODES = 4, 4, 32, 32
SIZE = f"float32, B={BATCH}, H={HEADS}, d_k=d_v={CHANNELS}, M={MODES}"


@dataclass(frozen=True)
class Where:
    """The device that is measured, and its name in the rows."""

    device: torch.device
    label: str

    @property
    def cuda(self) -> bool:
        return self.device.type == "cuda"

    def clock(self) -> float:
        """Seconds, read once the device has finished: a card returns from a call before that."""
        if self.cuda:
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


CPU = Where(torch.device("cpu"), "one thread")


def problem(T: int, gradients: bool = False, where: Where = CPU) -> tuple[Tensor, Tensor, Tensor, Core]:
    """Seeded inputs (q, k, v) and a core at its initialisation."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(BATCH, HEADS, T, CHANNELS, generator=generator).to(where.device) for _ in range(3))
    with torch.no_grad():
        core = DiagonalModes(HEADS, MODES, CHANNELS).to(where.device)()
    leaves = [x.detach().clone().requires_grad_(gradients) for x in (q, k, v, *core)]
    return *leaves[:3], Core(*leaves[3:])


def step_loop(q: Tensor, k: Tensor, v: Tensor, core: Core) -> Tensor:
    """The fastest plain loop over tokens we could write: one state for keys and values, in place where possible."""
    a, b, w, d = core.a_bar[:, :, None], core.b_bar[:, :, None], core.w[:, :, None], q.shape[-1]
    x, asked = torch.cat([k, v], -1).to(a.dtype), q.to(a.dtype)
    state = a.new_zeros(*q.shape[:2], a.shape[1], x.shape[-1])
    outputs = []
    in_place = not torch.is_grad_enabled()
    for q_t, x_t in zip(asked.unbind(2), x.unbind(2), strict=True):
        if in_place:
            state.mul_(a).addcmul_(b, x_t[:, :, None])
        else:
            state = torch.addcmul(b * x_t[:, :, None], a, state)
        s = (state[..., :d] @ q_t[..., None]) * w
        outputs.append((s.conj() * state[..., d:]).real.sum(2))
    return feedthrough(torch.stack(outputs, 2), v, core)


def chunked(*problem) -> Tensor:
    return interdomain_chunked(*problem)[0]


def materialised(*problem) -> Tensor:
    return interdomain_materialised(*problem)[0]


def softmax(q: Tensor, k: Tensor, v: Tensor, core: Core) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def medians(calls: dict[str, tuple[Callable[[], object], int]], where: Where = CPU) -> dict[str, float]:
    """Median seconds of each call, the calls taking turns, after one run of each that does not count."""
    for call, _ in calls.values():
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(max(repeats for _, repeats in calls.values())):
        for name, (call, repeats) in calls.items():
            if turn < repeats:
                start = where.clock()
                call()
                taken[name].append(where.clock() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def forward_only(form, T: int, where: Where = CPU) -> Callable[[], object]:
    inputs = problem(T, where=where)
    return torch.no_grad()(lambda: form(*inputs))


def with_backward(form, T: int, where: Where = CPU) -> Callable[[], object]:
    inputs = problem(T, gradients=True, where=where)
    leaves = [*inputs[:3], *inputs[3]]
    return lambda: torch.autograd.grad(form(*inputs).sum(), leaves)


def speed(where: Where) -> Iterator[Row]:
    """FFT and step loop against chunked at T = 1024, forward, and forward with backward."""
    for label, prepare, fft_goal, loop_goal in (
        ("forward", forward_only, 15.0, 4.0),
        ("forward + backward", with_backward, 12.0, 4.0),
    ):
        seconds = medians(
            {
                "chunked": (prepare(chunked, 1024, where), 7),
                "loop": (prepare(step_loop, 1024, where), 3),
                "fft": (prepare(materialised, 1024, where), 1),
            },
            where,
        )
        how = ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in seconds.items())
        for name, against, goal in (("FFT", "fft", fft_goal), ("step loop", "loop", loop_goal)):
            yield Row(
                f"{name} / chunked, {label}, T=1024, {where.label}",
                seconds[against] / seconds["chunked"],
                ">=",
                goal,
                "×",
                f"medians of 7, 3 and 1 in turn: {how}; {SIZE}",
            )


def linear_cost(where: Where) -> Iterator[Row]:
    """Time per token, forward and backward, at 16 times the length."""
    seconds = medians({str(T): (with_backward(chunked, T, where), 3) for T in (1024, 16384)}, where)
    short, long = seconds["1024"] / 1024, seconds["16384"] / 16384
    yield Row(
        f"chunked, forward + backward, time per token at T=16384 / T=1024, {where.label}",
        long / short,
        "<=",
        1.5,
        "×",
        f"medians of 3 in turn: {1e6 * long:.1f} µs and {1e6 * short:.1f} µs a token; {SIZE}",
    )


def against_softmax(where: Where) -> Iterator[Row]:
    """Softmax attention against chunked, forward, at T = 8192; and the length from which chunked is the faster one."""

    def contest(T: int, repeats: int):
        return {"chunked": (forward_only(chunked, T, where), 3), "softmax": (forward_only(softmax, T, where), repeats)}

    crossing = None
    for T in (64, 128, 256, 512, 1024, 2048, 4096):
        seconds = medians(contest(T, 3), where)
        if seconds["chunked"] < seconds["softmax"]:
            crossing = crossing or T
        else:
            crossing = None
    seconds = medians(contest(8192, 2), where)
    yield Row(
        f"scaled_dot_product_attention / chunked, forward, T=8192, {where.label}",
        seconds["softmax"] / seconds["chunked"],
        ">=",
        3.0,
        "×",
        f"chunked {seconds['chunked']:.3f} s, softmax {seconds['softmax']:.3f} s, causal; of 64, 128, … tokens chunked "
        f"is the faster one from T={crossing or 8192} on; {SIZE}",
    )


def decoding(where: Where) -> Iterator[Row]:
    """Decoding a token at position 65 536 against one at position 64; the state's size against the cache's."""
    early, late, steps = 64, 65_536, 200
    q, k, v, core = problem(steps, where=where)
    calls, sizes = {}, {}
    with torch.no_grad():
        for T in (early, late):
            *past, _ = problem(T, where=where)
            _, state = interdomain_chunked(*past, core)
            cache = [torch.cat([x, x.new_zeros(*x.shape[:2], 1, x.shape[3])], 2) for x in past[1:]]
            sizes[T] = [sum(x.numel() * x.element_size() for x in pair) for pair in (state, past[1:])]

            def interdomain(state=state):
                with torch.no_grad():
                    for t in range(steps):
                        _, state = interdomain_step(*(x[:, :, t : t + 1] for x in (q, k, v)), core, state)

            def cached(cache=cache):
                with torch.no_grad():
                    for t in range(20):
                        for x, new in zip(cache, (k, v), strict=True):
                            x[:, :, -1:] = new[:, :, t : t + 1]
                        F.scaled_dot_product_attention(q[:, :, t : t + 1], *cache)

            calls[f"interdomain {T}"], calls[f"softmax {T}"] = (interdomain, 5), (cached, 3)
        seconds = medians(calls, where)
    ratio = seconds[f"softmax {late}"] / seconds[f"softmax {early}"]
    per_token = {T: 1e6 * seconds[f"interdomain {T}"] / steps for T in (early, late)}
    yield Row(
        f"decoding, time per token at position 65536 / position 64, {where.label}",
        per_token[late] / per_token[early],
        "<=",
        1.1,
        "×",
        f"{per_token[late]:.0f} and {per_token[early]:.0f} µs a token, 5×{steps} tokens; softmax's ratio "
        f"{ratio:.0f}×; state {sizes[late][0] / 2**20:.2f} MiB at both, KV cache {sizes[early][1] / 2**20:.2f} and "
        f"{sizes[late][1] / 2**20:.0f} MiB; {SIZE}",
    )


def s4d_kernels(where: Where) -> Iterator[Row]:
    """S4D's kernel from its formula against the fast one, at the width of ``s4d-tiny``."""
    width, modes, T = 160, 64, 1024
    with torch.no_grad():
        core = DiagonalModes(width, modes, 1)()
        calls = {"formula": (lambda: s4d_kernel_reference(core, T), 3), "fast": (lambda: s4d_kernel(core, T), 15)}
        seconds = medians(calls, where)
    yield Row(
        f"S4D kernel by its formula / fast, T={T}, {where.label}",
        seconds["formula"] / seconds["fast"],
        ">=",
        20.0,
        "×",
        f"medians of 3 and 15 in turn: {1000 * seconds['formula']:.0f} ms and {1000 * seconds['fast']:.1f} ms; "
        f"float32, {width} channels, N_s={modes}",
    )


def memory(where: Where) -> Iterator[Row]:
    """Peak memory of a forward pass, FFT against chunked, each in a process of its own."""
    peak = {}
    for name in ("chunked", "materialised"):
        command = [sys.executable, "-m", "idviz.bench.learned", name, str(where.device)]
        peak[name] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    yield Row(
        "peak memory of FFT / of chunked, forward, T=1024",
        peak["materialised"] / peak["chunked"],
        ">=",
        14.0,
        "×",
        f"largest {'allocation' if where.cuda else 'resident size'} beyond that before the call, in fresh processes: "
        f"{peak['materialised']:.0f} and {peak['chunked']:.0f} MiB; {SIZE}",
    )


def _largest_resident() -> int:
    """Largest resident size in KiB, from VmHWM: Linux's ``ru_maxrss`` includes what the parent held when it forked."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    except (OSError, StopIteration):
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size // 1024 if sys.platform == "darwin" else size


def _peak(form: Callable, where: Where) -> float:
    """MiB by which a forward pass at T = 1024 raises the peak memory of the process, or of the card."""
    torch.set_num_threads(1)
    inputs, small = problem(1024, where=where), problem(64, where=where)
    with torch.no_grad():
        form(*small)
        if where.cuda:
            torch.cuda.reset_peak_memory_stats(where.device)
            before = torch.cuda.memory_allocated(where.device)
            form(*inputs)
            return (torch.cuda.max_memory_allocated(where.device) - before) / 2**20
        before = _largest_resident()
        form(*inputs)
    return (_largest_resident() - before) / 1024


def rows(device: str = "cpu") -> Iterator[Row]:
    """All rows of this part: on the CPU with one thread and with all cores, or on a card."""
    chosen = pick_device(device)
    if chosen.type == "cuda":
        places = [(None, Where(chosen, torch.cuda.get_device_name(chosen)))]
    else:
        cores = torch.get_num_threads()
        places = [(count, Where(chosen, "one thread" if count == 1 else f"{count} threads")) for count in {1, cores}]
    yield from memory(places[0][1])
    for threads, where in places:
        if threads is not None:
            torch.set_num_threads(threads)
        for part in (speed, linear_cost, against_softmax, decoding):
            yield from part(where)
        if threads == 1:
            yield from s4d_kernels(where)


if __name__ == "__main__":
    print(_peak({"chunked": chunked, "materialised": materialised}[sys.argv[1]], Where(torch.device(sys.argv[2]), "")))
