"""Attention as kernel regression: the dense references (E1, E2)."""

from __future__ import annotations

import numpy as np

from idviz.exact.checks import keys_and_values, vectors


def _causal_mask(n_queries: int, n_keys: int) -> np.ndarray:
    """(N, N) bool: query n sees keys ≤ n."""
    if n_queries != n_keys:
        raise ValueError(f"causal attention needs as many queries as keys, not {n_queries}, {n_keys}")
    return np.tri(n_keys, dtype=bool)


def _normalised_rows(kernel: np.ndarray) -> np.ndarray:
    """Each row divided by its sum (E1)."""
    totals = kernel.sum(axis=1, keepdims=True)
    zero = np.flatnonzero(totals[:, 0] == 0)
    if len(zero):
        raise ValueError(f"the kernel row of query {int(zero[0])} sums to 0, so that its weights are undefined (E1)")
    return kernel / totals


def attention_weights(xi_q, xi_k, causal: bool = False) -> np.ndarray:
    """The attention row of each query: K(q, k_n) / Σ_n K(q, k_n) with K = ξ(q)ᵀξ(k) (E1, E2).

    Parameters
    ----------
    xi_q : (n_q, r) array
        Query features.
    xi_k : (N, r) array
        Key features.
    causal : bool
        Query n sees keys ≤ n only; needs n_q = N.

    Returns
    -------
    (n_q, N) float64, rows sum to 1

    Raises
    ------
    ValueError
        Shapes that do not fit, numbers that are not finite, or a row that sums to exactly 0.
    """
    xi_k = vectors("xi_k", xi_k)
    xi_q = vectors("xi_q", xi_q, xi_k.shape[1])
    kernel = xi_q @ xi_k.T
    return _normalised_rows(np.where(_causal_mask(*kernel.shape), kernel, 0.0) if causal else kernel)


def kernel_attention(xi_q, xi_k, v, causal: bool = False) -> np.ndarray:
    """o(q) = Σ_n K(q, k_n) v_n / Σ_n K(q, k_n), K = ξ(q)ᵀξ(k): the dense reference (E1, E2).

    :func:`attention_weights` times the values v (N, d) -> (n_q, d) float64; the same arguments and errors.
    """
    xi_k, v = keys_and_values(xi_k, v)
    return attention_weights(xi_q, xi_k, causal) @ v


def softmax_attention(q, k, v, causal: bool = False) -> np.ndarray:
    """Softmax attention: E1 with K = exp(qᵀk/√d_k), the largest logit of each row subtracted first.

    Parameters
    ----------
    q : (n_q, d_k) array
    k : (N, d_k) array
    v : (N, d) array
    causal : bool
        Query n sees tokens ≤ n only; needs n_q = N.

    Returns
    -------
    (n_q, d) float64

    Raises
    ------
    ValueError
        Shapes that do not fit or numbers that are not finite.
    """
    k, v = keys_and_values(k, v, "k")
    q = vectors("q", q, k.shape[1])
    logits = q @ k.T / np.sqrt(k.shape[1])
    if causal:
        logits = np.where(_causal_mask(*logits.shape), logits, -np.inf)
    return _normalised_rows(np.exp(logits - logits.max(axis=1, keepdims=True))) @ v
