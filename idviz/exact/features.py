"""Finite feature maps ξ with K(q, k) ≈ ξ(q)ᵀξ(k) (E2), and softmax itself as the exact reference."""

from __future__ import annotations

import numpy as np

from idviz.exact.checks import number_within, vectors, whole_number

_LARGEST_EXPONENT = 700.0  # exp(709.8) is the last finite float64


def _finite(what: str, array: np.ndarray) -> np.ndarray:
    if not np.isfinite(array).all():
        raise ValueError(f"{what} overflow float64 (at most {np.finfo(float).max:.3g}): scale queries and keys down")
    return array


class KernelFeatures:
    """A finite feature map ξ of a kernel (E2), the base of those below.

    ``features(x, role)`` -> (n, r) float64 for x (n, d_k). ``role`` is ``"key"`` or ``"query"`` and matters only to
    maps that shift their exponents: a shift per query cancels in E1, and so does one shift that all keys share; a shift
    per key would not.

    Attributes
    ----------
    name : str
    positive : bool
        Whether every kernel value ξ(q)ᵀξ(k) is ≥ 0, so that the denominator is safe.
    d_k, r : int
        Channels of a key, and features.

    Raises
    ------
    ValueError
        x of another width or not finite; an unknown role; features that overflow.
    """

    name = "feature map"
    positive = False

    def __init__(self, d_k: int, r: int):
        self.d_k = whole_number("d_k", d_k, 1)
        self.r = r

    def __call__(self, x, role: str = "key") -> np.ndarray:
        if role not in ("key", "query"):
            raise ValueError(f"role must be 'key' or 'query', not {role!r}")
        x = vectors("x", x, self.d_k)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite("features", self._features(x, role))

    def kernel(self, q, k) -> np.ndarray:
        """The kernel that the features approximate, (n_q, n_k)."""
        q, k = vectors("q", q, self.d_k), vectors("k", k, self.d_k)
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite("kernel values", self._kernel(q, k))

    def pair(self, q, k) -> tuple[np.ndarray, np.ndarray]:
        """ξ(q) (n_q, r) and ξ(k) (n_k, r), ready for the references and for ``compress``."""
        return self(q, role="query"), self(k, role="key")

    def _features(self, x: np.ndarray, role: str) -> np.ndarray:
        raise NotImplementedError

    def _kernel(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(d_k={self.d_k}, r={self.r})"


def _softmax_kernel(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    logits = q @ k.T / np.sqrt(q.shape[1])
    if logits.max() > _LARGEST_EXPONENT:
        raise ValueError(
            f"exp(qᵀk/√d_k) overflows: the largest exponent is {logits.max():.4g}, at most {_LARGEST_EXPONENT:g} fits. "
            "Use softmax_attention or pair(), which shift it away"
        )
    return np.exp(logits)


def _random_rotation(d: int, rng: np.random.Generator) -> np.ndarray:
    """A uniformly drawn orthogonal matrix (d, d). QR alone has biased signs, and so would be the features."""
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.sign(np.diag(R))


class SoftmaxFeatures(KernelFeatures):
    """Positive random features of exp(qᵀk/√d_k): exp(ωᵢᵀx − ‖x‖²/2)/√r with x scaled by d_k^{-1/4} (E2).

    Parameters
    ----------
    d_k, r : int
        Key channels and features, each at least 1.
    seed : int
        Seed of the draws ω; equal seeds give equal features.
    orthogonal : bool
        Draw ω in orthogonal blocks of d_k, with the norms of independent draws (less variance, no bias).

    Notes
    -----
    Shifted: from each query's exponents its largest is subtracted, from all keys' exponents one shared largest. Both
    cancel in E1, so that the features approximate the kernel up to a factor per query. The largest over all keys looks
    ahead; token by token, set ``key_shift`` to a number chosen before the first key, e.g. max ‖ωᵢ‖²/2, which no
    exponent exceeds. Source: Choromanski et al., "Rethinking Attention with Performers", 2021.
    """

    name = "positive random features"
    positive = True

    key_shift: float | None = None

    def __init__(self, d_k: int, r: int, seed: int = 0, orthogonal: bool = True):
        super().__init__(d_k, whole_number("r", r, 1))
        rng = np.random.default_rng(whole_number("seed", seed, 0))
        if orthogonal:
            blocks = [_random_rotation(self.d_k, rng) for _ in range(-(-self.r // self.d_k))]
            norms = np.linalg.norm(rng.standard_normal((self.r, self.d_k)), axis=1)
            self.omega = np.concatenate(blocks)[: self.r] * norms[:, None]
        else:
            self.omega = rng.standard_normal((self.r, self.d_k))

    def exponents(self, x) -> np.ndarray:
        """ωᵢᵀx − ‖x‖²/2 with x scaled, (n, r): the features before the shift, as logarithms."""
        x = vectors("x", x, self.d_k) / self.d_k**0.25
        return x @ self.omega.T - 0.5 * np.sum(x**2, axis=1, keepdims=True)

    def _features(self, x: np.ndarray, role: str) -> np.ndarray:
        exponents = self.exponents(x)
        if role == "query":
            shift = exponents.max(axis=1, keepdims=True)
        else:
            shift = (
                exponents.max() if self.key_shift is None else number_within("key_shift", self.key_shift, -1e300, 1e300)
            )
        if exponents.max() - np.max(shift) > _LARGEST_EXPONENT:
            raise ValueError(
                f"key_shift {self.key_shift:g} is too small for an exponent of {exponents.max():.4g}: "
                f"at most {_LARGEST_EXPONENT:g} may be left"
            )
        return np.exp(exponents - shift) / np.sqrt(self.r)

    def _kernel(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return _softmax_kernel(q, k)


class EluFeatures(KernelFeatures):
    """elu(x) + 1 for each channel: positive, no draws; its kernel is ξ(q)ᵀξ(k) itself (E2).

    Source: Katharopoulos et al., "Transformers are RNNs", 2020.
    """

    name = "elu + 1"
    positive = True

    def __init__(self, d_k: int):
        super().__init__(d_k, whole_number("d_k", d_k, 1))

    def _features(self, x: np.ndarray, role: str) -> np.ndarray:
        return np.where(x > 0, x + 1.0, np.exp(np.minimum(x, 0.0)))

    def _kernel(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return self._features(q, "query") @ self._features(k, "key").T


class RBFFeatures(KernelFeatures):
    """Random Fourier features of exp(−‖q−k‖²/(2ℓ²)): sines and cosines, so that K(x, x) = 1 exactly (E2).

    Parameters
    ----------
    d_k, r : int
        Key channels; features, even and at least 2 (a sine and a cosine for each frequency).
    lengthscale : float
        ℓ from 1e-100 to 1e100, in the units of x.
    seed : int

    Notes
    -----
    Not positive: estimates of small kernel values scatter around 0. Source: Rahimi & Recht, 2007.
    """

    name = "Gaussian RBF random features"
    positive = False

    def __init__(self, d_k: int, r: int, lengthscale: float = 1.0, seed: int = 0):
        super().__init__(d_k, whole_number("r", r, 2))
        if self.r % 2:
            raise ValueError(f"r must be even (a sine and a cosine for each frequency), not {self.r}")
        self.lengthscale = number_within("lengthscale", lengthscale, 1e-100, 1e100)
        rng = np.random.default_rng(whole_number("seed", seed, 0))
        self.omega = rng.standard_normal((self.r // 2, self.d_k)) / self.lengthscale

    def _features(self, x: np.ndarray, role: str) -> np.ndarray:
        phases = x @ self.omega.T
        return np.concatenate([np.sin(phases), np.cos(phases)], axis=1) / np.sqrt(self.r // 2)

    def _kernel(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        difference = (q[:, None] - k[None]) / self.lengthscale  # no ‖q‖²+‖k‖²−2qᵀk: that cancels for near points
        return np.exp(-0.5 * np.sum(difference**2, axis=2))


class PolynomialFeatures(KernelFeatures):
    """All products of ``degree`` channels: ξ(q)ᵀξ(k) = (qᵀk)^degree exactly; degree 1 is the identity map (E2).

    r = d_k^degree, at most 65 536. Not positive for odd degrees: the denominator can then change sign.
    """

    name = "polynomial"

    def __init__(self, d_k: int, degree: int = 1):
        self.degree = whole_number("degree", degree, 1, 8)
        d_k = whole_number("d_k", d_k, 1)
        if d_k**self.degree > 65_536:
            raise ValueError(f"degree {self.degree} of {d_k} channels needs {d_k**self.degree} features, at most 65536")
        super().__init__(d_k, d_k**self.degree)
        self.name = "identity" if self.degree == 1 else f"polynomial of degree {self.degree}"
        self.positive = self.degree % 2 == 0  # the kernel is then (qᵀk)^even ≥ 0, whatever the signs of the features

    def _features(self, x: np.ndarray, role: str) -> np.ndarray:
        features = x
        for _ in range(self.degree - 1):
            features = (features[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        return features

    def _kernel(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return (q @ k.T) ** self.degree


class SoftmaxKernel(KernelFeatures):
    """Softmax itself, with no approximation: the exact reference (E1).

    exp(qᵀk/√d_k) has no finite feature map for all queries, but it has one for a given set of them: let feature i of a
    key be its kernel with query i. ``pair(q, k)`` returns that: ξ(q) = I (n_q, n_q) and ξ(k) (n_k, n_q), each query's
    exponents shifted by their largest. Compressing these features, only the order M loses anything.
    """

    name = "softmax (exact kernel)"
    positive = True

    def __init__(self, d_k: int):
        super().__init__(d_k, 0)

    def _features(self, x: np.ndarray, role: str) -> np.ndarray:
        raise ValueError("the softmax kernel has no finite feature map; use pair(q, k), or SoftmaxFeatures")

    def _kernel(self, q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return _softmax_kernel(q, k)

    def pair(self, q, k) -> tuple[np.ndarray, np.ndarray]:
        q, k = vectors("q", q, self.d_k), vectors("k", k, self.d_k)
        logits = k @ q.T / np.sqrt(self.d_k)
        return np.eye(len(q)), np.exp(logits - logits.max(axis=0))
