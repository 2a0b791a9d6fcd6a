"""The trace says what the layer did: its token weights give the layer's output, whatever form it ran in."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import torch

from idviz.learned.chunked import interdomain_chunked
from idviz.learned.decoder import Decoder, DecoderConfig
from idviz.learned.forms import Core, interdomain_materialised, interdomain_step
from idviz.learned.interdomain_mixer import InterdomainMixer
from idviz.learned.mixers import MIXERS
from idviz.learned.modes import DiagonalModes
from idviz.learned.tracing import lag_kernel, trace, trace_core
from tests.helpers.decoders import awake

tracing = import_module("idviz.learned.tracing")  # the package may export the function under the module's name
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11}


def problem(dtype, T=70, H=3, M=6, d_k=5, d_v=4, seed=0, initialisation="lin", feedthrough=True):
    generator = torch.Generator().manual_seed(seed)
    modes = DiagonalModes(H, M, d_v, initialisation=initialisation, step_range=(0.02, 0.3), feedthrough=feedthrough)
    modes = awake(modes.to(dtype), seed)
    with torch.no_grad():  # away from the initial values: complex w, uneven decay
        for parameter in modes.parameters():
            parameter.mul_(1 + 0.2 * torch.randn(parameter.shape, generator=generator, dtype=dtype))
        modes.w.add_(0.3 * modes.w.abs().mean() * torch.randn(modes.w.shape, generator=generator, dtype=dtype))
        core = Core(*(None if part is None else part.detach().clone() for part in modes()))
    q, k = (torch.nn.functional.normalize(torch.randn(1, H, T, d_k, generator=generator), dim=-1) for _ in "qk")
    v = torch.randn(1, H, T, d_v, generator=generator)
    return q.to(dtype), k.to(dtype), v.to(dtype), core


def difference(found, wanted):
    return np.abs(found - wanted).max() / np.abs(wanted).max()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("initialisation", ["lin", "inv", "legs"])
@pytest.mark.parametrize("feedthrough", [True, False])
def test_token_weights_reproduce_the_core_s_output(dtype, initialisation, feedthrough):
    """o_t = Σ_j a_tj v_j + D v_t at every position, within chunks and through the state that crosses them."""
    q, k, v, core = problem(dtype, initialisation=initialisation, feedthrough=feedthrough)
    outputs = [interdomain_chunked(q, k, v, core, chunk=chunk)[0] for chunk in (1, 8, 32)]
    outputs += [form(q, k, v, core)[0] for form in (interdomain_step, interdomain_materialised)]
    traced = trace_core(q[0], k[0], v[0], core, positions=range(70))
    by_weights = np.einsum("hpt,htd->hpd", traced.weights, v[0].double().numpy())
    if feedthrough:
        by_weights += core.D.double().numpy()[:, None] * v[0].double().numpy()
    for o in outputs:
        assert difference(by_weights, o[0].double().numpy()) < TOLERANCE[dtype]
        assert difference(traced.output, o[0].double().numpy()) < TOLERANCE[dtype]
    j = np.arange(70)
    assert not traced.weights[:, j[:, None] < j].any()  # nothing from the future
    assert np.abs(traced.weights[:, -1, :32]).max() > 1e-6  # tokens before the last chunk do count


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_states_and_basis_weights_are_those_of_the_recurrence(dtype):
    q, k, v, core = problem(dtype)
    picked = [0, 31, 32, 69]
    traced = trace_core(q[0], k[0], v[0], core, heads=[2, 0], positions=picked)
    assert traced.heads.tolist() == [2, 0] and traced.positions.tolist() == picked
    for p, t in enumerate(picked):
        _, state = interdomain_step(*(x[:, :, : t + 1] for x in (q, k, v)), core)
        u, gamma = (x[0, [2, 0]].numpy() for x in state)
        s = np.einsum("hmd,hd->hm", u, q[0, [2, 0], t].numpy())
        assert difference(traced.u[:, p], u) < TOLERANCE[dtype]
        assert difference(traced.gamma[:, p], gamma) < TOLERANCE[dtype]
        assert difference(traced.s[:, p], s) < TOLERANCE[dtype]


def test_weights_are_the_double_sum_over_lags_of_e17():
    """a_tj = Σ_i (q_t·k_i) G(t−i, t−j)."""
    q, k, v, core = problem(torch.float64)
    traced = trace_core(q[0], k[0], v[0], core, positions=[40], lags=41)
    for h in range(3):
        scores = k[0, h, :41].numpy() @ q[0, h, 40].numpy()
        reversed_g = traced.G[h, ::-1, ::-1]  # indexed by token: lag 40 … 0
        np.testing.assert_allclose(traced.weights[h, 0, :41], scores @ reversed_g, atol=1e-13)


def test_kernels_and_g_are_their_definitions():
    q, k, v, core = problem(torch.float64)
    traced = trace_core(q[0], k[0], v[0], core, lags=9)
    a, b, w = (x.numpy() for x in core[:3])
    for tau in range(9):
        np.testing.assert_allclose(traced.kappa[:, tau], a**tau * b, atol=1e-14)
        for other in range(9):
            wanted = (w * traced.kappa[:, tau] * traced.kappa[:, other].conj()).sum(-1).real
            np.testing.assert_allclose(traced.G[:, tau, other], wanted, atol=1e-14)
    np.testing.assert_allclose(lag_kernel(traced.kappa, w), traced.G, atol=1e-15)


def test_a_kept_denominator_divides_by_eta_s_readout():
    q, k, v, core = problem(torch.float64, feedthrough=False)
    ones = torch.ones_like(v[..., :1])
    numerator, denominator = (interdomain_step(q, k, x, core)[0][0].numpy() for x in (v, ones))
    traced = trace_core(q[0], k[0], v[0], core, positions=range(70), keep_denominator=True)
    np.testing.assert_allclose(traced.denominator, denominator[..., 0], atol=1e-13)
    np.testing.assert_allclose(traced.weights.sum(-1), 1.0, rtol=1e-9)
    assert difference(traced.output * traced.denominator[..., None], numerator) < 1e-11


def test_given_basis_weights_take_the_place_of_the_keys():
    q, k, v, core = problem(torch.float64, feedthrough=False)
    s = torch.randn(3, 6, dtype=torch.complex128, generator=torch.Generator().manual_seed(1))
    traced = trace_core(None, None, v[0], core, positions=[5, 50], s=s[:, None])
    for p, t in enumerate((5, 50)):
        gamma = interdomain_step(*(x[:, :, : t + 1] for x in (q, k, v)), core)[1].gamma[0]
        wanted = torch.einsum("hm,hmd->hd", core.w * s, gamma.conj()).real
        np.testing.assert_allclose(traced.output[:, p], wanted.numpy(), atol=1e-13)


def test_only_what_was_asked_for_is_formed():
    q, k, v, core = problem(torch.float32, T=600, M=16, d_k=16, d_v=16)
    traced = trace_core(q[0], k[0], v[0], core, heads=[1], positions=[-1], lags=4)
    assert traced.positions.tolist() == [599] and traced.u.shape == (1, 1, 16, 16)
    assert traced.weights.shape == (1, 1, 600) and traced.G.shape == (1, 4, 4)
    assert all(not value.flags.writeable for value in vars(traced).values() if value is not None)


def test_wishes_that_do_not_fit_are_named(monkeypatch):
    q, k, v, core = problem(torch.float32)
    args = q[0], k[0], v[0], core
    for bad, message in [
        ({"heads": [3]}, r"heads must be whole numbers from -3 to 2, not 3"),
        ({"positions": [70]}, r"positions must be whole numbers from -70 to 69, not 70"),
        ({"positions": []}, "positions must name at least one of 70"),
        ({"positions": [1.5]}, "not 1.5"),
        ({"heads": [True]}, "not True"),
        ({"lags": 0}, "lags must be a whole number of at least 1, not 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            trace_core(*args, **bad)
    with pytest.raises(ValueError, match=r"q, k, v must be .* H = 3"):
        trace_core(q, k, v, core)
    with pytest.raises(ValueError, match="q, k, v must be"):
        trace_core(q[0], k[0], v[0, :, :-1], core)
    monkeypatch.setattr(tracing, "MOST_BYTES", 2**20)
    with pytest.raises(ValueError, match=r"MiB a layer, more than 1: choose fewer heads, positions or lags"):
        trace_core(*args, positions=list(range(70)) * 10)


# -- whole mixers and decoders ----------------------------------------------------------------------------------------
class TwoLayers(torch.nn.Module):
    """The least that has layers: residual mixers over an embedding."""

    def __init__(self, *mixers):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 16)
        self.mixers = torch.nn.ModuleList(mixers)
        self.runs = 0

    def forward(self, ids):
        x = self.embed(ids)
        for mixer in self.mixers:
            x = x + mixer(x)[0]
        self.runs += 1
        return x


def ablations():
    yield {}
    for switch in ("rope", "input_norm", "biases", "feedthrough"):
        yield {switch: False}
    yield {"output_norm": True, "norm": "l2_squared", "initialisation": "legs", "discretisation": "bilinear"}
    yield {"inputs": "value"}
    yield {"readout": "fixed"}
    yield {"denominator": True}
    yield {"readout": "fixed", "denominator": True, "feedthrough": False}
    yield {"inputs": "value", "denominator": True, "form": "materialised"}


@pytest.mark.parametrize("options", list(ablations()), ids=str)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_token_weights_reproduce_every_layer_s_core_output(options, dtype):
    torch.manual_seed(3)
    model = TwoLayers(*(InterdomainMixer(16, 2, 6, step_range=(0.02, 0.2), **options) for _ in range(2))).to(dtype)
    awake(model)
    ids = torch.randint(11, (53,))
    traced = trace(model, ids, positions=range(53))
    assert list(traced.layers) == [0, 1] and traced.tokens == 53
    for layer, found in traced.layers.items():
        own = traced.outputs[layer]
        assert own.shape == (2, 53, 8) and np.abs(own).max() > 1e-4
        by_hand = np.einsum("hpt,htd->hpd", found.weights, found.v) + found.feedthrough
        # a denominator near zero magnifies rounding by as much
        slack = 1 if found.denominator is None else max(1, 1 / np.abs(found.denominator).min())
        assert difference(by_hand, own) < TOLERANCE[dtype] * slack
        assert (found.denominator is not None) == bool(options.get("denominator"))


def test_choices_are_kept_to_and_the_run_stops_early():
    torch.manual_seed(0)
    model = TwoLayers(*(InterdomainMixer(16, 2, 6) for _ in range(3)))
    ids = list(range(11))
    traced = trace(model, ids, layers=[1], heads=[-1], positions=[3, -1], lags=5)
    assert list(traced.layers) == [1] and model.runs == 0
    found = traced.layers[1]
    assert found.heads.tolist() == [1] and found.positions.tolist() == [3, 10]
    assert found.u.shape == (1, 2, 6, 8) and found.kappa.shape == (1, 5, 6)
    whole = trace(model, torch.tensor([ids])).layers[1]
    np.testing.assert_allclose(found.weights[:, 1], whole.weights[[1], 0], atol=1e-12)
    assert not any(mixer.input._forward_hooks or mixer.to_out._forward_pre_hooks for mixer in model.mixers)
    model(torch.tensor([ids]))
    assert model.runs == 1


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_a_whole_decoder_s_layers_are_reproduced(dtype):
    config = DecoderConfig(vocabulary=11, dim=16, depth=3, heads=2, feedforward=32, mixer_options={"modes": 8})
    decoder = awake(Decoder(config).to(dtype))
    ids = torch.randint(11, (100,), generator=torch.Generator().manual_seed(0))
    traced = trace(decoder, ids, layers=[0, 2], positions=[0, 31, 32, 99])
    assert list(traced.layers) == [0, 2]
    for layer, found in traced.layers.items():
        assert difference(found.output, traced.outputs[layer]) < TOLERANCE[dtype]
    assert trace(decoder, ids.tolist(), layers=[-1]).layers[2].weights.shape == (2, 1, 100)


def test_a_mixer_alone_can_be_traced():
    torch.manual_seed(0)
    mixer = awake(InterdomainMixer(16, 4, 6))
    x = torch.randn(20, 16)
    traced = trace(mixer, x, positions=range(20))
    assert difference(traced.layers[0].output, traced.outputs[0]) < 1e-5


def test_what_cannot_be_traced_is_named():
    model = TwoLayers(InterdomainMixer(16, 2, 6), MIXERS["softmax"](16, 2))
    with pytest.raises(ValueError, match="layer 1 has no Interdomain core to trace: it is a SoftmaxMixer"):
        trace(model, [1, 2, 3])
    assert trace(model, [1, 2, 3], layers=[0]).tokens == 3
    for bad, message in [
        ({"layers": [2]}, r"layers must be whole numbers from -2 to 1, not 2"),
        ({"layers": [0], "positions": [3]}, r"positions must be whole numbers from -3 to 2, not 3"),
        ({"layers": [0], "heads": [2]}, r"heads must be whole numbers from -2 to 1, not 2"),
        ({"layers": [0], "heads": 1}, r"heads must be a list of whole numbers, not 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            trace(model, [1, 2, 3], **bad)
    for tokens in ([[1, 2], [3, 4]], [], [[]]):
        with pytest.raises(ValueError, match="one sequence of at least one token"):
            trace(model, tokens, layers=[0])
    with pytest.raises(ValueError, match="tokens must be a list of tokens, not str 'abc'"):
        trace(model, "abc", layers=[0])
    with pytest.raises(ValueError, match="a decoder or a mixer, not Linear"):
        trace(torch.nn.Linear(2, 2), [1])
    assert not model.mixers[0].input._forward_hooks
