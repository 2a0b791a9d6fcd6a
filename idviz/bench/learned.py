"""Benchmarks of the learned half: the chunked form against FFT, a step loop and softmax attention."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from idviz.bench.table import Row
from idviz.learned.chunked import interdomain_chunked
from idviz.learned.forms import Core, feedthrough, interdomain_materialised, interdomain_step
from idviz.learned.modes import DiagonalModes

BATCH, HEADS, CHANNELS, MODES = 4, 4, 32, 32
SIZE = f"float32, B={BATCH}, H={HEADS}, d_k=d_v={CHANNELS}, M={MODES}"


def problem(T: int, gradients: bool = False, device: str = "cpu") -> tuple[Tensor, Tensor, Tensor, Core]:
    """Seeded inputs and a core at its initialisation."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(BATCH, HEADS, T, CHANNELS, generator=generator).to(device) for _ in range(3))
    with torch.no_grad():
        core = DiagonalModes(HEADS, MODES, CHANNELS).to(device)()
    leaves = [x.detach().clone().requires_grad_(gradients) for x in (q, k, v, *core)]
    return *leaves[:3], Core(*leaves[3:])


def step_loop(q: Tensor, k: Tensor, v: Tensor, core: Core) -> Tensor:
    """The fastest plain loop over tokens that we could write: one state for keys and values, in place if it may be."""
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


def medians(calls: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Median seconds of each call, taking turns; after one run of each that does not count."""
    for call, _ in calls.values():
        call()
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(max(repeats for _, repeats in calls.values())):
        for name, (call, repeats) in calls.items():
            if turn < repeats:
                start = time.perf_counter()
                call()
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def forward_only(form, T: int) -> Callable[[], object]:
    inputs = problem(T)
    return torch.no_grad()(lambda: form(*inputs))


def with_backward(form, T: int) -> Callable[[], object]:
    inputs = problem(T, gradients=True)
    leaves = [*inputs[:3], *inputs[3]]
    return lambda: torch.autograd.grad(form(*inputs).sum(), leaves)


def speed(threads: str) -> Iterator[Row]:
    """At T = 1024, forwards and with backwards."""
    for label, prepare, fft_goal, loop_goal in (
        ("forward", forward_only, 15.0, 4.0),
        ("forward + backward", with_backward, 12.0, 4.0),
    ):
        found = medians(
            {
                "chunked": (prepare(chunked, 1024), 7),
                "loop": (prepare(step_loop, 1024), 3),
                "fft": (prepare(materialised, 1024), 1),
            }
        )
        how = ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in found.items())
        for name, against, goal in (("FFT", "fft", fft_goal), ("step loop", "loop", loop_goal)):
            yield Row(
                f"{name} / chunked, {label}, T=1024, {threads}",
                found[against] / found["chunked"],
                ">=",
                goal,
                "×",
                f"medians of 7, 3 and 1 in turn: {how}; {SIZE}",
            )


def linear_cost(threads: str) -> Iterator[Row]:
    """Forwards and backwards at 16 times the length."""
    found = medians({str(T): (with_backward(chunked, T), 3) for T in (1024, 16384)})
    short, long = found["1024"] / 1024, found["16384"] / 16384
    yield Row(
        f"chunked, forward + backward, time per token at T=16384 / T=1024, {threads}",
        long / short,
        "<=",
        1.5,
        "×",
        f"medians of 3 in turn: {1e6 * long:.1f} µs and {1e6 * short:.1f} µs a token; {SIZE}",
    )


def against_softmax(threads: str) -> Iterator[Row]:
    """The forward pass at T = 8192, and the length from which on the chunked form is the faster one."""
    crossing = None
    for T in (64, 128, 256, 512, 1024, 2048, 4096):
        found = medians({"chunked": (forward_only(chunked, T), 3), "softmax": (forward_only(softmax, T), 3)})
        if found["chunked"] < found["softmax"]:
            crossing = crossing or T
        else:
            crossing = None
    found = medians({"chunked": (forward_only(chunked, 8192), 3), "softmax": (forward_only(softmax, 8192), 2)})
    yield Row(
        f"scaled_dot_product_attention / chunked, forward, T=8192, {threads}",
        found["softmax"] / found["chunked"],
        ">=",
        3.0,
        "×",
        f"chunked {found['chunked']:.3f} s, softmax {found['softmax']:.3f} s, causal; of 64, 128, … tokens chunked "
        f"is the faster one from T={crossing or 8192} on; {SIZE}",
    )


def decoding(threads: str) -> Iterator[Row]:
    """A token at position 65 536 beside one at position 64, the state and the cache beside each other."""
    early, late, steps = 64, 65_536, 200
    q, k, v, core = problem(steps)
    calls, sizes = {}, {}
    with torch.no_grad():
        for T in (early, late):
            *past, _ = problem(T)
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
        found = medians(calls)
    ratio = found[f"softmax {late}"] / found[f"softmax {early}"]
    per_token = {T: 1e6 * found[f"interdomain {T}"] / steps for T in (early, late)}
    yield Row(
        f"decoding, time per token at position 65536 / position 64, {threads}",
        per_token[late] / per_token[early],
        "<=",
        1.1,
        "×",
        f"{per_token[late]:.0f} and {per_token[early]:.0f} µs a token, 5×{steps} tokens; softmax's ratio "
        f"{ratio:.0f}×; state {sizes[late][0] / 2**20:.2f} MiB at both, KV cache {sizes[early][1] / 2**20:.2f} and "
        f"{sizes[late][1] / 2**20:.0f} MiB; {SIZE}",
    )


def memory() -> Iterator[Row]:
    """Peak memory of a forward pass, each form in a process of its own."""
    peak = {}
    for name in ("chunked", "materialised"):
        command = [sys.executable, "-m", "idviz.bench.learned", name]
        peak[name] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    yield Row(
        "peak memory of FFT / of chunked, forward, T=1024",
        peak["materialised"] / peak["chunked"],
        ">=",
        14.0,
        "×",
        f"largest resident size beyond that before the call, in fresh processes, one thread: "
        f"{peak['materialised']:.0f} and {peak['chunked']:.0f} MiB; {SIZE}",
    )


def _peak(form: Callable) -> float:
    """MiB that a forward pass at T = 1024 adds to the process's largest resident size, after a small one."""
    torch.set_num_threads(1)
    inputs, small = problem(1024), problem(64)
    with torch.no_grad():
        form(*small)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        form(*inputs)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def rows() -> Iterator[Row]:
    """All rows of this part, on one thread and on all cores."""
    cores = torch.get_num_threads()
    yield from memory()
    for count, label in ((1, "one thread"), (cores, f"{cores} threads")):
        if count == 1 and label != "one thread":
            continue
        torch.set_num_threads(count)
        yield from speed(label)
        yield from linear_cost(label)
        yield from against_softmax(label)
        yield from decoding(label)


if __name__ == "__main__":
    print(_peak({"chunked": chunked, "materialised": materialised}[sys.argv[1]]))
