"""The sizes: nominal, equal across mixers, equal state budgets, and what ``idviz sizes`` prints of them."""

from __future__ import annotations

import sys
from itertools import groupby

import pytest
import torch
from typer.testing import CliRunner

from idviz.cli import app
from idviz.learned import MIXERS, SCALES, preset, presets, sizes
from idviz.learned.decoder import DecoderConfig, build


@pytest.fixture(scope="module")
def rows():
    return list(sizes(4096))


def test_parameter_counts_and_state_budgets(rows):
    """Built on the meta device: within 2 % of each other, 5 % of nominal; Interdomain and S4D hold as much (E20)."""
    assert [row.scale for row in rows[:: len(MIXERS)]] == ["nano", "tiny", "small", "125M", "350M", "760M", "1.3B"]
    nominal = {"nano": 0.53e6, "small": 30e6, "125M": 125e6, "350M": 350e6, "760M": 760e6, "1.3B": 1.3e9}
    for scale, group in groupby(rows, key=lambda row: row.scale):
        by_mixer = {row.mixer: row for row in group}
        assert list(by_mixer) == list(MIXERS)
        counts = [row.parameters for row in by_mixer.values()]
        assert max(counts) <= 1.02 * min(counts)
        if scale == "tiny":
            assert 1e6 <= min(counts) and max(counts) <= 2e6
        else:
            assert all(abs(count / nominal[scale] - 1) < 0.05 for count in counts)
        assert by_mixer["interdomain"].state == by_mixer["s4d"].state
        config = by_mixer["softmax"].config
        assert by_mixer["softmax"].state == 2 * 4096 * config.dim
        assert config.vocabulary == {"nano": 1024, "tiny": 1024, "small": 8192}.get(scale, 32_000)
        shapes = {
            (row.config.vocabulary, row.config.dim, row.config.depth, row.config.heads) for row in by_mixer.values()
        }
        assert len(shapes) == 1  # only the SwiGLU width differs


def test_no_baseline_gets_a_narrower_feedforward_layer(rows):
    for row in rows:
        if row.mixer != "interdomain":
            assert row.config.feedforward >= preset(row.scale, "interdomain").feedforward


def test_counting_costs_no_memory_and_is_the_real_count():
    assert all(p.is_meta for p in presets.meta(preset("tiny")).parameters())
    for kind in MIXERS:
        config = preset("tiny", kind)
        decoder = build(config, device="cpu")
        assert sum(p.numel() for p in decoder.parameters()) == presets.meta(config).parameter_count()
        with torch.no_grad():
            assert decoder(torch.arange(10)[None])[0].shape == (1, 10, 1024)
        assert decoder.state_size(10) == config.depth * decoder.state_per_layer(10)


def test_options_that_a_mixer_refuses_are_refused_at_any_depth():
    presets.check_options(DecoderConfig(64, 16, 10**9, 2, 16, "interdomain", {"modes": 4}))  # built with one layer
    with pytest.raises(ValueError, match="modes must be a whole number of at least 1, not 0"):
        presets.check_options(DecoderConfig(64, 16, 2, 2, 16, "interdomain", {"modes": 0}))


@pytest.mark.parametrize(
    "options", [{"readout": "fixed"}, {"inputs": "value"}, {"denominator": True}, {"modes": 8}, {"output_norm": True}]
)
def test_ablations_keep_the_count(options):
    counts = [presets.meta(preset("tiny", "interdomain", **o)).parameter_count() for o in ({}, options)]
    assert abs(counts[1] / counts[0] - 1) < 0.02
    assert preset("tiny", **options).mixer_options.items() >= options.items()


def test_another_vocabulary_keeps_the_count():
    config = preset("tiny", "s4d", vocabulary=500)
    assert config.vocabulary == 500
    assert abs(presets.meta(config).parameter_count() / SCALES["tiny"].parameters - 1) < 0.01
    with pytest.raises(ValueError, match="vocabulary must leave room for the layers: with 9000 tokens"):
        preset("tiny", vocabulary=9000)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("huge",), {}, "scale must be one of nano, tiny, small, 125M, 350M, 760M, 1.3B, not 'huge'"),
        (("tiny", "rnn"), {}, "mixer must be one of interdomain, s4d, softmax, linear, not 'rnn'"),
        (("tiny", "s4d"), {"readout": "fixed"}, "the s4d mixer takes the options modes, .* not 'readout'"),
        (("tiny",), {"vocabulary": 0}, "vocabulary must be a whole number of at least 1, not 0"),
    ],
)
def test_bad_presets_are_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        preset(*arguments, **options)


def test_the_command_prints_every_number_whole(rows, monkeypatch):
    monkeypatch.setattr(presets, "sizes", lambda: iter(rows))
    done = CliRunner().invoke(app, ["sizes"])
    assert done.exit_code == 0
    assert "…" not in done.output
    for row in rows:
        assert f"{row.parameters:,}" in done.output and f"{row.state:,}" in done.output
    assert all(name in done.output for name in (*SCALES, *MIXERS))


def test_the_command_says_what_is_missing_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("idviz.learned")]:
        monkeypatch.delitem(sys.modules, name)
    done = CliRunner().invoke(app, ["sizes"])
    assert done.exit_code == 2
    assert "the learned half needs PyTorch, which is not installed here: pip install" in done.output
    assert "Traceback" not in done.output
