"""The compressed state (E10): what stands for N tokens, whatever N is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class CompressedState:
    """The fixed-size state that stands for N tokens (E10).

    Attributes
    ----------
    U : (M, r)
        Projection of the key features ξ(k_n): the inducing variables.
    Gamma : (M, d)
        Projection of the values v_n.
    eta : (M,)
        Projection of the constant 1; e₀ under the exact projection.
    n_tokens : int
        N.
    method : str
        "exact", "bilinear", "backward_euler", "euler", or "discrete" (E14).
    causal : bool
        If true, U, Gamma and eta have a leading axis N: the state after each token.
    """

    U: np.ndarray
    Gamma: np.ndarray
    eta: np.ndarray
    n_tokens: int
    method: str
    causal: bool = False

    @property
    def order(self) -> int:
        """M, the number of basis functions."""
        return self.eta.shape[-1]
