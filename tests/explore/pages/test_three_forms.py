"""Explorable *Three forms*: equal outputs, honest measurements, weights that are the layer's."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from idviz.explore.pages.three_forms import EXPLORABLE
from idviz.numbers import three_forms as three_forms_numbers
from idviz.numbers.three_forms import FORMS, problem, window_weights
from idviz.numbers.timing import enough, peak_bytes


@pytest.mark.parametrize("values", [{}, {"length": "64", "chunk": "128", "heads": "4"}, {"modes": "4", "chunk": "8"}])
def test_the_three_outputs_agree(values):
    result = EXPLORABLE.result(**values)
    assert [form.name for form in result.forms] == list(FORMS)
    assert result.differences[0] == 0 and 0 < max(result.differences) < 1e-5
    for form in result.forms:
        assert form.output.shape == (1, result.heads, result.length, 16)
        assert form.seconds > 0 and 1 <= form.repetitions <= 15
    assert len({id(form.output) for form in result.forms}) == 3


def test_what_try_this_says_of_a_tiny_chunk():
    (tip,) = (tip for tip in EXPLORABLE.try_this if tip.label == "A tiny chunk")
    shares = []
    for chunk in (tip.values["chunk"], "32"):
        result = EXPLORABLE.result(**tip.values | {"chunk": chunk})
        row = np.abs(result.row)
        shares.append(f"{100 * row[: result.chunk_start].sum() / row.sum():.0f} %")
    assert re.findall(r"\d+ %", tip.look_for) == shares


@pytest.mark.parametrize("length", ["64", "256"])
@pytest.mark.parametrize("position", [1, 33, 64])
def test_the_row_gives_the_layer_s_output(length, position):
    """o_t = Σ_j a_tj v_j + D v_t with the weights that are drawn, and nothing from the future."""
    result = EXPLORABLE.result(length=length, position=position)
    _, _, v, core = problem(int(length), 32, 2)
    values = v[0, 0].double().numpy()
    t = position - 1
    o = result.row @ values + core.D[0].double().numpy() * values[t]
    np.testing.assert_allclose(o, result.form("chunked").output[0, 0, t], atol=2e-6)
    assert not result.row[position:].any()


def test_windows_meet_and_the_last_one_is_short_enough():
    first, second = (window_weights(256, 8, 1, start) for start in (0, 128))
    assert first.shape == second.shape == (128, 256)
    result = EXPLORABLE.result(modes="8", heads="1", position=129)
    np.testing.assert_array_equal(result.row, second[0])
    assert EXPLORABLE.result(length="64", position=64).weights.shape == (64, 64)


def test_nothing_is_measured_anew_when_only_the_query_moves(monkeypatch):
    before = EXPLORABLE.result(position=3)
    calls = []
    monkeypatch.setattr(three_forms_numbers, "peak_bytes", lambda *args: calls.append(args))
    after = EXPLORABLE.result(position=250)
    assert calls == [] and after.forms == before.forms
    other = {"chunk": "16"}
    monkeypatch.undo()
    again = EXPLORABLE.result(**other)
    assert again.form("step") is before.form("step")  # a chunk is none of its business
    assert again.form("chunked") is not before.form("chunked")


def test_the_number_of_threads_is_as_it_was():
    before = torch.get_num_threads()
    EXPLORABLE.result(length="64", modes="16", heads="1")
    assert torch.get_num_threads() == before


def test_a_slow_machine_is_not_kept_waiting():
    assert not enough([]) and not enough([0.2, 0.2]) and enough([0.2, 0.2, 0.2])
    assert enough([0.6]) and not enough([0.001] * 14) and enough([0.001] * 15)


def test_peak_memory_counts_what_lives_at_once():
    x = torch.zeros(1000)  # 4000 bytes

    def run():
        a = x + 1  # 4000
        b = a * 2  # 8000
        del a  # 4000
        c = b + b  # 8000
        d = torch.cat([b, c])  # 16000: b, c, d
        del b, c
        view = d.view(2, 1000)[0]  # nothing new
        return view.clone(), None  # 12000

    peak, output = peak_bytes(run, (x,))
    assert peak == 16000 and output.shape == (1000,)
    assert peak_bytes(lambda: (x[:10].view(2, 5), None), (x,))[0] == 0


def test_materialised_holds_every_state_and_the_others_do_not():
    result = EXPLORABLE.result(length="1024", position=800)
    T, H, M = 1024, 2, 32
    states = 8 * T * H * M * 16  # complex64, of the values alone
    assert result.form("materialised").bytes > 2 * states
    assert result.form("chunked").bytes < states
    assert result.form("step").bytes < result.form("chunked").bytes
    shorter = EXPLORABLE.result()
    assert result.form("materialised").bytes > 3 * shorter.form("materialised").bytes


def test_stripes_melt_with_few_modes():
    """The second Try this: between the repeats of its symbol a query of 4 modes reads nearly as much as on them."""
    lags = np.arange(1, 64)

    def contrast(modes):
        row = EXPLORABLE.result(modes=modes, position=200).row[199 - lags]
        return np.abs(row[lags % 16 != 0]).max() / np.abs(row[15])

    assert contrast("32") < 0.3 < 0.7 < contrast("4")


@pytest.mark.parametrize("values", [{}, *(case.values for case in EXPLORABLE.try_this), {"position": 5}])
def test_the_caption_is_true(values):
    result = EXPLORABLE.result(**values)
    text = EXPLORABLE.describe(result)
    assert len(re.findall(r"[.] (?=[A-Z])|[.]$", text)) == 2 and len(text) < 600
    assert f"On {result.length} tokens" in text
    assert "(1 thread," in text
    for form in result.forms:
        said = re.search(rf"{form.name} ([\d.]+) (ms|s)\b", text)
        assert float(said.group(1)) == pytest.approx(form.seconds * (1000 if said.group(2) == "ms" else 1), rel=6e-3)
    share = re.search(r"weight, (\S+) % lies on tokens before its chunk", text)
    row = np.abs(result.row)
    before = row[: (result.position - 1) // result.chunk * result.chunk].sum() / row.sum()
    if share:
        assert float(share.group(1)) == pytest.approx(100 * before, rel=6e-3)
    else:
        assert before == 0 and "no state is carried to it yet" in text
    assert result.state_numbers == result.heads * 2 * result.modes * 32  # E20


def test_without_pytorch_the_pages_say_what_is_missing_and_the_exact_half_works():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from idviz.explore import explorable, slugs\n"
        "for slug in slugs():\n"
        "    it = explorable(slug)\n"
        "    if it.group == 'The exact half': it.result(); continue\n"
        "    try: it.result()\n"
        "    except ValueError as error: assert 'needs PyTorch' in str(error), error\n"
        "    else:\n"
        "        if it.group == 'The learned half': sys.exit(slug)\n"  # saved results are drawn without it
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
