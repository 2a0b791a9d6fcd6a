"""The exact half: NumPy and SciPy, float64, never torch. Equations are tagged E1–E14 as in notebook 00."""

from idviz.exact.attention import attention_weights, kernel_attention, softmax_attention
from idviz.exact.checks import MAX_ORDER, METHODS
from idviz.exact.discrete import discrete_basis, discrete_compress
from idviz.exact.error import ReadoutError, readout_error
from idviz.exact.features import (
    EluFeatures,
    FeatureMap,
    PolynomialFeatures,
    RBFFeatures,
    SoftmaxFeatures,
    SoftmaxKernel,
)
from idviz.exact.legendre import legendre_basis, legendre_cell_integrals
from idviz.exact.legs import legs_matrices, legs_merge, legs_project, legs_reconstruct, legs_transition
from idviz.exact.readout import (
    CompressedState,
    DenominatorReport,
    basis_weights,
    compress,
    denominator_report,
    impulse_responses,
    linear_readout,
    ratio_readout,
    token_weights,
)
from idviz.exact.trajectory import LegsState, legs_trajectory

__all__ = [
    "MAX_ORDER",
    "METHODS",
    "CompressedState",
    "DenominatorReport",
    "EluFeatures",
    "FeatureMap",
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
