"""The exact half: NumPy and SciPy in float64, never torch. E1–E14 are the equations' tags, as in notebook 00.

Attention, the dense references (E1, E2)
    attention_weights, kernel_attention, softmax_attention

Feature maps ξ with K(q, k) ≈ ξ(q)ᵀξ(k) (E2)
    KernelFeatures, the base; SoftmaxFeatures (positive random features), EluFeatures, RBFFeatures,
    PolynomialFeatures; SoftmaxKernel, softmax itself

The basis on [0, 1] (E3)
    legendre_basis; legendre_cell_integrals, in closed form (E6)

HiPPO-LegS, the projection of a signal's whole past (E4–E9)
    legs_matrices: A and B of the ODE (E5); legs_project: closed form (E6); legs_transition: the stretch ρ^A (E7, E8);
    legs_merge: two adjacent windows into one (E9); legs_trajectory: the state at many instants, and the labelled
    approximations; LegsState: the streaming twin; legs_reconstruct: the signal that a state stands for (E4)

The state and its readouts (E10–E12)
    compress -> CompressedState (E10); basis_weights, linear_readout, ratio_readout (E11); token_weights,
    impulse_responses (E12); denominator_report -> DenominatorReport

The error, as an identity and as a bound (E13)
    readout_error -> ReadoutError

Attention recovered at M = N (E14)
    discrete_basis, discrete_compress

Limits
    MAX_ORDER, the largest M; METHODS, the names that ``method=`` takes
"""

from idviz.exact.attention import attention_weights, kernel_attention, softmax_attention
from idviz.exact.checks import MAX_ORDER, METHODS
from idviz.exact.discrete import discrete_basis, discrete_compress
from idviz.exact.error import ReadoutError, readout_error
from idviz.exact.features import (
    EluFeatures,
    KernelFeatures,
    PolynomialFeatures,
    RBFFeatures,
    SoftmaxFeatures,
    SoftmaxKernel,
)
from idviz.exact.legendre import legendre_basis, legendre_cell_integrals
from idviz.exact.legs import legs_matrices, legs_merge, legs_project, legs_reconstruct, legs_transition
from idviz.exact.readout import (
    DenominatorReport,
    basis_weights,
    compress,
    denominator_report,
    impulse_responses,
    linear_readout,
    ratio_readout,
    token_weights,
)
from idviz.exact.state import CompressedState
from idviz.exact.trajectory import LegsState, legs_trajectory

__all__ = [
    "MAX_ORDER",
    "METHODS",
    "CompressedState",
    "DenominatorReport",
    "EluFeatures",
    "KernelFeatures",
    "LegsState",
    "PolynomialFeatures",
    "RBFFeatures",
    "ReadoutError",
    "SoftmaxFeatures",
    "SoftmaxKernel",
    "attention_weights",
    "basis_weights",
    "compress",
    "denominator_report",
    "discrete_basis",
    "discrete_compress",
    "impulse_responses",
    "kernel_attention",
    "legendre_basis",
    "legendre_cell_integrals",
    "legs_matrices",
    "legs_merge",
    "legs_project",
    "legs_reconstruct",
    "legs_trajectory",
    "legs_transition",
    "linear_readout",
    "ratio_readout",
    "readout_error",
    "softmax_attention",
    "token_weights",
]
