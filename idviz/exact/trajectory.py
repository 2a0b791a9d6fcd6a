"""The state at many instants: exactly by merges (E9), approximately by stepping; and its streaming twin, LegsState."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from idviz.exact.checks import METHODS, choice, increasing_edges, order_of, real_array, rows, samples_seen, whole_number
from idviz.exact.legendre import cell_rows, gauss_nodes
from idviz.exact.legs import legs_project, merge_many
from idviz.exact.stepping import steps

LEAF = 64  # samples in a leaf: from an anchor at most this far, an instant is reached in closed form
_TABLE = 2**19  # numbers in a table at once: 4 MiB


def legs_trajectory(signal, order: int, *, method: str = "exact", edges=None, at=None) -> np.ndarray:
    """LegS states after the first n samples, for each n in ``at`` (E6, E9; approximations as labelled).

    Parameters
    ----------
    signal : (T,) or (T, d) array
    order : int
        M, 1 to 1024.
    method : {"exact", "bilinear", "backward_euler", "euler"}
        ``"exact"`` never steps: states of leaves of 64 samples are merged up a binary tree, prefixes down it, and an
        instant within a leaf is reached from its anchor in closed form, so that 200 instants of a million samples are
        200 short walks. The other methods step through E5 from a zero state and are approximations.
    edges : (T+1,) array, optional
        Times of irregular samples ("exact" only).
    at : (n,) ints, optional
        Numbers of samples seen, 1…T, in any order; every one if left out.

    Returns
    -------
    (len(at), M, d) float64

    Raises
    ------
    ValueError
        Bad order, method, signal, edges or instants; edges with a method other than "exact".
    """
    order = order_of(order)
    signal = rows("signal", signal)
    method = choice("method", method, METHODS)
    count = len(signal)
    seen = samples_seen(at, count)
    if method != "exact":
        if edges is not None:
            raise ValueError(f"edges (irregular sampling) need method 'exact', not {method!r}")
        return _stepped(signal, order, method, seen)
    if edges is not None:
        edges = increasing_edges(edges, count)
    instants, where = np.unique(seen, return_inverse=True)
    states = _exact(signal, order, edges, instants)
    return states if len(instants) == len(seen) and np.array_equal(instants, seen) else states[where]


def _stepped(signal: np.ndarray, order: int, method: str, seen: np.ndarray) -> np.ndarray:
    out = np.empty((len(seen), order, signal.shape[1]))
    wanted = np.argsort(seen, kind="stable")
    position = 0
    for n, state in enumerate(steps(signal[: seen.max()], order, method), start=1):
        while position < len(wanted) and seen[wanted[position]] == n:
            out[wanted[position]] = state
            position += 1
    return out


def _exact(signal: np.ndarray, order: int, edges: np.ndarray | None, instants: np.ndarray) -> np.ndarray:
    channels = signal.shape[1]
    leaf = LEAF  # larger leaves where their states would outgrow 16 MiB (long signal, many channels, few instants)
    while len(instants) * leaf < len(signal) and (len(signal) // leaf) * order * channels > 2**21:
        leaf *= 2
    anchors, which = np.unique(instants // leaf, return_inverse=True)
    levels, bounds = leaf_tree(signal[: anchors[-1] * leaf], order, edges, leaf)
    anchor_states = prefixes(levels, bounds, anchors)
    nodes, w, phi = gauss_nodes(order)
    at_nodes = np.tensordot(w[:, None] * phi.T, anchor_states, 1).transpose(1, 0, 2)  # (anchors, M, d)
    out = np.empty((len(instants), order, channels))
    shared = 2 * len(anchors) <= len(instants)  # where many instants share an anchor, they share the terms of the sum
    every = np.arange(len(instants))
    for group in np.split(every, np.flatnonzero(np.diff(which)) + 1) if shared else [every]:
        reach = max(1, int(np.max(instants[group] - anchors[which[group]] * leaf)))
        at_once = max(1, _TABLE // (order + reach))
        for i in range(0, len(group), at_once):
            part = group[i : i + at_once]
            starts = anchors[which[part]] * leaf
            chosen = which[part[:1]] if shared else which[part]
            terms = np.concatenate([at_nodes[chosen], _falls(signal, starts[: len(chosen)], reach)], axis=1)
            seen = np.minimum(starts[:, None] + np.arange(reach), instants[part, None])
            now = instants[part, None].astype(float) if edges is None else (edges[instants[part]] - edges[0])[:, None]
            x = (seen if edges is None else edges[seen] - edges[0]) / now  # x[:, 0] is ρ, the anchor's share
            _project_instants(x, nodes, terms[0] if shared else terms, out[part[0] : part[-1] + 1])
    return out


def _falls(signal: np.ndarray, starts: np.ndarray, reach: int) -> np.ndarray:
    """By how much the signal falls at each edge from ``start`` on: (n, reach, d), with 0 before the first sample.

    Σ_k f_k ∫_{cell k} φ_m = Σ_k (f_{k−1} − f_k) F_m(x_k) with F_m the antiderivative that is 0 at x = 1 (E6 by parts).
    """
    own = signal[np.minimum(starts[:, None] + np.arange(reach), len(signal) - 1)]
    falls = np.empty_like(own)
    falls[:, :1] = -own[:, :1]
    np.subtract(own[:, :-1], own[:, 1:], out=falls[:, 1:])
    return falls


def _project_instants(x: np.ndarray, nodes: np.ndarray, terms: np.ndarray, out: np.ndarray) -> None:
    """Fill ``out`` (n, M, d): ρ Φ(ρ nodes) @ the anchor's window + F(x) @ the falls since, for n instants at once.

    The same sum as E9's, one degree at a time so that it stays in cache. For degree m, one array holds ρ P_m on the
    nodes and −(1−y²) P'_m on the edges, which is F_m up to a constant and 0 at both ends to the last bit. Both follow
    three-term recurrences in y, scaled to R_{m+1} = 2y R_m − β_m R_{m−1}; the scales go to the small factor, ``terms``.
    """
    order, M = out.shape[1], len(nodes)
    rho = x[:, :1]
    twice_y = 4.0 * np.concatenate([rho * nodes, x], axis=1) - 2.0
    previous, current, scratch = np.zeros_like(twice_y), np.empty_like(twice_y), np.empty_like(twice_y)
    current[:, :M], current[:, M:] = rho, x - 1.0  # m = 0: F_0 = x − 1
    beta, scale = _instant_recurrence(order, M, twice_y.shape[1])
    scaled = np.empty_like(terms)
    for m in range(order):
        np.multiply(terms, scale[m], out=scaled)
        if terms.ndim == 3:
            np.matmul(current[:, None], scaled, out=out[:, m : m + 1])
        else:
            np.matmul(current, scaled, out=out[:, m])
        if m + 1 == order:
            break
        np.multiply(twice_y, current, out=scratch)
        if m == 0:
            scratch[:, M:] = 4.0 * x * (x - 1.0)  # −(1−y²) P'_1
        else:
            previous *= beta[m]
            scratch -= previous
        previous, current, scratch = current, scratch, previous


@lru_cache(maxsize=16)
def _instant_recurrence(order: int, nodes: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """β (M, columns) and the scales (M, columns, 1) that turn the recurrence's R into √(2m+1) P_m and F_m."""
    m = np.arange(order)[:, None]
    on_nodes = np.arange(columns) < nodes
    k_step = 2.0 * (m + 1) / (2 * m + 1)  # R = k_m P_m, k_{m+1} / k_m
    l_step = np.where(m > 0, 2.0 * m / (2 * m + 1), 1.0)  # R = −l_m (1−y²) P'_m, l_{m+1} / l_m
    k = np.cumprod(np.concatenate([[[1.0]], k_step[:-1]]), axis=0)
    l = np.cumprod(np.concatenate([[[1.0]], l_step[:-1]]), axis=0)
    later, before = np.maximum(m, 1), np.roll(np.arange(order), 1)
    beta_nodes = k_step * k_step[before] * m / (m + 1)
    beta_edges = np.where(m > 1, l_step * l_step[before] * (m + 1) / later, 0.0)
    scale_edges = np.where(m > 0, np.sqrt(2 * m + 1) / (2 * later * (m + 1) * l), 1.0)
    scale = np.where(on_nodes, np.sqrt(2 * m + 1) / k, scale_edges)
    return np.where(on_nodes, beta_nodes, beta_edges), scale[..., None]


@lru_cache(maxsize=16)
def _leaf_table(order: int, leaf: int) -> np.ndarray:
    """Cell integrals of ``leaf`` equal cells, (M, leaf)."""
    table = cell_rows(order, np.arange(leaf + 1) / leaf)
    table.setflags(write=False)
    return table


def leaf_states(signal: np.ndarray, order: int, edges: np.ndarray | None, leaf: int) -> np.ndarray:
    """States of consecutive windows of ``leaf`` samples, in closed form (E6): (n·leaf, d) -> (M, n, d)."""
    n, channels = len(signal) // leaf, signal.shape[1]
    if n == 0:
        return np.empty((order, 0, channels))
    blocks = signal.reshape(n, leaf, channels)
    if edges is None:  # equal windows share one table, so that projecting them all is one matrix product
        return np.tensordot(_leaf_table(order, leaf), blocks, axes=(1, 1))
    out = np.empty((order, n, channels))
    at_once = max(1, _TABLE // (order * leaf))
    for i in range(0, n, at_once):
        j = min(i + at_once, n)
        own = edges[i * leaf + np.arange(j - i)[:, None] * leaf + np.arange(leaf + 1)]
        tables = cell_rows(order, (own - own[:, :1]) / (own[:, -1:] - own[:, :1]))
        out[:, i:j] = (tables @ blocks[i:j]).transpose(1, 0, 2)
    return out


def leaf_tree(
    signal: np.ndarray, order: int, edges: np.ndarray | None, leaf: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """The binary tree of windows, and the leaves' bounds; level j: states (M, n, d) of leaves i·2^j … (i+1)·2^j − 1."""
    levels = [leaf_states(signal, order, edges, leaf)]
    n = levels[0].shape[1]
    bounds = np.arange(n + 1.0) if edges is None else edges[: n * leaf + 1 : leaf] - edges[0]
    while levels[-1].shape[1] > 1:
        below, size = levels[-1], 2 ** (len(levels) - 1)
        pairs = below.shape[1] // 2
        firsts = 2 * size * np.arange(pairs)
        begin, middle, end = bounds[firsts], bounds[firsts + size], bounds[firsts + 2 * size]
        shares = (middle - begin) / (end - begin)
        levels.append(merge_many(below[:, 0 : 2 * pairs : 2], below[:, 1 : 2 * pairs : 2], shares))
    return levels, bounds


def prefixes(levels: list[np.ndarray], bounds: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """States of the first ``leaves[i]`` leaves, (M, n, d); they share the walk down the tree, ≤ log₂ merges each."""
    order, _, channels = levels[0].shape
    ends, states = np.zeros(1, dtype=np.int64), np.zeros((order, 1, channels))
    for level in reversed(range(len(levels))):
        size = 2**level
        wanted = np.unique(leaves // size * size)
        parents = states[:, np.searchsorted(ends, wanted // (2 * size) * (2 * size))]
        grow = np.flatnonzero(wanted // size % 2 == 1)
        states = parents.copy()
        if len(grow):
            old = wanted[grow] - size
            states[:, grow] = merge_many(
                parents[:, grow], levels[level][:, old // size], bounds[old] / bounds[wanted[grow]]
            )
        ends = wanted
    return states[:, np.searchsorted(ends, leaves)]


class LegsState:
    """A LegS state fed in pieces: any chunking gives the same state, bit for bit (E6, E9).

    Samples wait in a leaf of 64; full leaves are merged like a binary counter (two windows of equal length become one),
    so that rounding errors grow with log T instead of T. ``coefficients`` merges what there is into one state.

    Parameters
    ----------
    order : int
        M, 1 to 1024.
    channels : int
        d, at least 1.
    """

    def __init__(self, order: int, channels: int = 1):
        self.order = order_of(order)
        self.channels = whole_number("channels", channels, 1)
        self._waiting = np.empty((0, self.channels))
        self._windows: list[tuple[int, np.ndarray]] = []  # (leaves, state), oldest first, lengths falling powers of two
        self._seen = 0

    @property
    def time(self) -> int:
        """Number of samples seen."""
        return self._seen

    def update(self, samples) -> LegsState:
        """Take in samples (n, d), or (n,) or a number for one channel; return the state itself.

        Raises
        ------
        ValueError
            The wrong number of channels or numbers that are not finite; the state stays as it was.
        """
        samples = np.asarray(samples)
        if samples.ndim == 0:
            samples = samples[None]
        if samples.ndim == 1 and self.channels > 1 and len(samples) == self.channels:
            samples = samples[None]
        if samples.size == 0 and samples.ndim in (1, 2) and samples.shape[1:] in ((), (self.channels,)):
            return self  # an empty chunk changes nothing
        samples = rows("samples", real_array("samples", samples, (1, 2)), self.channels)
        self._seen += len(samples)
        self._waiting = np.concatenate([self._waiting, samples])
        full = len(self._waiting) // LEAF * LEAF
        if full:
            table = _leaf_table(self.order, LEAF)
            for leaf in self._waiting[:full].reshape(-1, LEAF, self.channels):
                self._carry(table @ leaf)  # one by one: a product of another shape may round differently
            self._waiting = self._waiting[full:].copy()
        return self

    def _carry(self, state: np.ndarray) -> None:
        leaves = 1
        while self._windows and self._windows[-1][0] == leaves:
            older = self._windows.pop()[1]
            state = merge_many(older[:, None], state[:, None], np.array([0.5]))[:, 0]
            leaves *= 2
        self._windows.append((leaves, state))

    @property
    def coefficients(self) -> np.ndarray:
        """The state now, (M, d). ``ValueError`` before the first sample: there is no window yet."""
        if not self._seen:
            raise ValueError("the state has seen 0 samples; it needs at least 1 to have coefficients")
        windows = [(leaves * LEAF, window) for leaves, window in self._windows]
        if len(self._waiting):
            windows.append((len(self._waiting), legs_project(self._waiting, self.order)))
        length, state = windows[0]
        for more, window in windows[1:]:
            state = self._joined(state, length, window, more)
            length += more
        return state.copy()

    @staticmethod
    def _joined(left, left_length, right, right_length) -> np.ndarray:
        share = left_length / (left_length + right_length)
        return merge_many(left[:, None], right[:, None], np.array([share]))[:, 0]
