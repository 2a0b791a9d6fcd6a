"""E18: short convolution, SiLU, normalise."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from idviz.learned.features import NORMS, WIDTH, FeatureMap, ShortConvolution, normalise


def test_the_convolution_is_torchs_own_causal_one():
    torch.manual_seed(0)
    convolution = ShortConvolution(6).double()
    x = torch.randn(2, 11, 6, dtype=torch.float64)
    padded = F.pad(x.transpose(1, 2), (WIDTH - 1, 0))
    wanted = F.silu(F.conv1d(padded, convolution.weight[:, None], groups=6)).transpose(1, 2)
    got, _ = convolution(x)
    assert (got - wanted).abs().max() <= 1e-15


@pytest.mark.parametrize("split", [(11,), (1,) * 11, (2, 3, 6), (10, 1)], ids=str)
@pytest.mark.parametrize("norm", NORMS)
def test_any_split_gives_the_same_features(split, norm):
    torch.manual_seed(0)
    features = FeatureMap(2, 3, norm).double()
    x = torch.randn(2, 11, 6, dtype=torch.float64)
    wanted, end = features(x)
    assert wanted.shape == (2, 2, 11, 3)
    outputs, past = [], None
    for piece in x.split(split, 1):
        y, past = features(piece, past)
        outputs.append(y)
    assert (torch.cat(outputs, 2) - wanted).abs().max() <= 1e-15
    assert torch.equal(past, end)


def test_norms():
    x = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    assert normalise(x, "l2").tolist()[0] == pytest.approx([0.6, 0.8], abs=1e-6)
    assert normalise(x, "l2_squared").tolist()[0] == pytest.approx([3 / 25, 4 / 25], abs=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_a_zero_vector_stays_zero_with_a_finite_gradient(norm):
    x = torch.zeros(2, 3, requires_grad=True)
    y = normalise(x, norm)
    y.sum().backward()
    assert torch.equal(y, torch.zeros(2, 3))
    assert torch.isfinite(x.grad).all()


def test_the_two_norms_agree_on_keys_after_rms_norm():
    """E18: RMSNorm takes the scale out, so that the exponent matters up to its eps only."""
    torch.manual_seed(0)
    x = torch.randn(50, 16, dtype=torch.float64)
    after = [F.rms_norm(normalise(x, norm), (16,), eps=1e-12) for norm in NORMS]
    assert (after[0] - after[1]).abs().max() <= 1e-8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ShortConvolution(0), "channels must be a whole number of at least 1, not 0"),
        (lambda: FeatureMap(0, 3), "heads must be a whole number of at least 1, not 0"),
        (lambda: FeatureMap(2, 1.5), "d must be a whole number of at least 1, not 1.5"),
        (lambda: FeatureMap(2, 3)(torch.ones(1, 4, 5)), r"x must be a real tensor \(B, T, 6\), not torch.float32 of"),
        (lambda: FeatureMap(2, 3)(torch.ones(4, 6)), r"x must be a real tensor \(B, T, 6\)"),
        (lambda: FeatureMap(2, 3)(torch.ones(1, 4, 6).long()), "not torch.int64"),
        (lambda: FeatureMap(2, 3)([1.0]), "x must be a real tensor .* not list"),
        (lambda: FeatureMap(2, 3)(torch.ones(1, 4, 6, device="meta")), "x is on meta, the convolution's weight on cpu"),
        (lambda: FeatureMap(2, 3)(torch.ones(1, 4, 6), torch.ones(1, 2, 6)), r"past must have the shape \(1, 3, 6\)"),
        (lambda: FeatureMap(2, 3)(torch.ones(2, 4, 6), torch.ones(1, 3, 6)), r"past must have the shape \(2, 3, 6\)"),
        (lambda: FeatureMap(2, 3, "l1"), "norm must be one of l2, l2_squared, not 'l1'"),
        (lambda: normalise(torch.ones(1, 2), "max"), "norm must be one of"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
