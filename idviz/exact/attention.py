"""Attention as kernel regression: the dense references (E1, E2)."""

from __future__ import annotations

import numpy as np

from idviz.exact.checks import keys_and_values, vectors


def _kernel_rows(kernel: np.ndarray, causal: bool) -> np.ndarray:
    """Rows divided by their sums; with ``causal`` row n sees columns ≤ n only."""
    if causal:
        if kernel.shape[0] != kernel.shape[1]:
            raise ValueError(
                f"causal attention needs as many queries as keys, not {kernel.shape[0]}, {kernel.shape[1]}"
            )
        kernel = np.tril(kernel)
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
    xi_k : (N, r) array
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
    return _kernel_rows(xi_q @ xi_k.T, causal)


def kernel_attention(xi_q, xi_k, v, causal: bool = False) -> np.ndarray:
    """o(q) = Σ_n K(q, k_n) v_n / Σ_n K(q, k_n), K = ξ(q)ᵀξ(k): the dense reference (E1, E2).

    Parameters
    ----------
    xi_q : (n_q, r) array
    xi_k : (N, r) array
    v : (N, d) array
    causal : bool
        Query n sees tokens ≤ n only; needs n_q = N.

    Returns
    -------
    (n_q, d) float64

    Raises
    ------
    ValueError
        Shapes that do not fit, numbers that are not finite, or a row that sums to exactly 0.
    """
    xi_k, v = keys_and_values(xi_k, v)
    return attention_weights(xi_q, xi_k, causal) @ v


def softmax_attention(q, k, v, causal: bool = False) -> np.ndarray:
    """Softmax attention, E1 with K = exp(qᵀk/√d_k); the largest logit of each row is subtracted first.

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
        if len(q) != len(k):
            raise ValueError(f"causal attention needs as many queries as keys, not {len(q)}, {len(k)}")
        logits = np.where(np.tri(len(q), dtype=bool), logits, -np.inf)
    return _kernel_rows(np.exp(logits - logits.max(axis=1, keepdims=True)), False) @ v
