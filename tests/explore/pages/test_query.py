"""Explorable 3: a query on compressed attention, held to the library's references and to what it says in words."""

from __future__ import annotations

import re

import numpy as np
import pytest

from idviz.exact import (
    PolynomialFeatures,
    attention_weights,
    basis_weights,
    compress,
    denominator_report,
    discrete_compress,
    kernel_attention,
    ratio_readout,
    readout_error,
    token_weights,
)
from idviz.explore.pages.query import EXPLORABLE, SONNET
from idviz.explore.tokens import token_html
from idviz.numbers.query import FEATURES, METHOD_NAMES, _feature_map, _source, _warnings, compute
from idviz.samples.text import MAX_TOKENS

DEFAULTS = EXPLORABLE.resolve()
MAPS = [name for name, _ in FEATURES]
METHODS = [name for name, _ in METHOD_NAMES]
TEXTS = {
    "emoji": "👩‍👩‍👧 says 👍🏽 to 🇩🇪 and é",
    "right to left": "שלום עולם\nمرحبا بالعالم",
    "script": "<script>alert('1')</script> & $x$",
    "one": "x",
}


def direct(values):
    """The same query by the library's own functions, one after the other."""
    n = values["position"]
    keys = ("source", "text", "needle_length", "needle_position", "sharpness", "seed")
    _, head = _source(*(values[name] for name in keys))
    xi_q, xi_k = _feature_map(values["features"], values["n_features"], values["seed"]).pair(
        head.queries[:n], head.keys[:n]
    )
    v = head.values[:n]
    if values["method"] == "discrete":
        state = discrete_compress(xi_k, v, min(values["order"], n))
    else:
        state = compress(xi_k, v, values["order"], values["method"])
    return xi_q[-1:], xi_k, v, state


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize(("order", "position"), [(1, 171), (16, 171), (16, 7), (40, 90)])
def test_agrees_with_the_library_for_every_map_and_method(features, method, order, position):
    if method == "euler" and order > 16:
        position = 171  # before that Euler's state is about 1e27, and two routes share no digits
    values = EXPLORABLE.resolve(features=features, method=method, order=order, position=position)
    result = compute(**values)
    xi_q, xi_k, v, state = direct(values)
    used = result.order
    assert used == (min(order, position) if method == "discrete" else order)

    def near(ours, wanted, tolerance=1e-9):
        np.testing.assert_allclose(ours, wanted, atol=tolerance * max(1e-300, np.abs(wanted).max()), rtol=0)

    loose = 1e-5 if method == "euler" else 1e-9
    near(result.s, basis_weights(xi_q, state)[0], loose)
    near(result.eta, state.eta, loose)
    near(result.readout, ratio_readout(xi_q, state)[0], loose)
    near(result.row, token_weights(xi_q, state)[0], loose)
    near(result.full_row, attention_weights(xi_q, xi_k)[0])
    near(result.full_readout, kernel_attention(xi_q, xi_k, v)[0])
    near(result.error, np.linalg.norm(result.readout - result.full_readout) / result.scale, loose)
    largest = max(1.0, np.abs(result.row).max())
    assert abs(result.row.sum() - 1) < 1e-9 * largest
    near(result.row @ v, result.readout, 1e-9 * largest if method != "euler" else 1e-5 * largest)


@pytest.mark.parametrize("features", MAPS)
@pytest.mark.parametrize("position", [3, 60, 171])
def test_bound_is_that_of_e13_and_holds_at_every_order(features, position):
    values = EXPLORABLE.resolve(features=features, position=position)
    result = compute(**values)
    xi_q, xi_k, v, _ = direct(values)
    for order in (1, 5, 16, 64):
        wanted = readout_error(xi_q, xi_k, v, order)
        np.testing.assert_allclose(
            result.curve_error[order - 1] * result.scale, np.linalg.norm(wanted.error[0]), rtol=1e-7, atol=1e-11
        )
        np.testing.assert_allclose(
            result.curve_bound[order - 1] * result.scale, np.linalg.norm(wanted.bound[0]), rtol=1e-5, atol=1e-6
        )
    assert np.all(result.curve_error <= result.curve_bound * (1 + 1e-9) + 1e-12)


def test_discrete_bound_holds_and_ends_at_nothing():
    result = EXPLORABLE.result(method="discrete", order=128, position=100)
    assert len(result.curve_error) == result.order == 100
    assert np.all(result.curve_error <= result.curve_bound * (1 + 1e-9) + 1e-11)
    assert result.error < 1e-11 < result.curve_error[98] and result.bound < 1e-9
    assert any("100 functions" in warning for warning in result.warnings)
    assert "machine precision" in EXPLORABLE.describe(result)


def test_error_keeps_falling_past_n_but_slowly_the_floor():
    result = EXPLORABLE.result()
    bound = result.curve_bound
    assert bound[0] > bound[15] > bound[170] > bound[-1] > 0.01 * bound[0]


@pytest.mark.parametrize("source", ["characters", "words"])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("order", [1, 16, 128])
def test_any_text_draws_and_says_something(name, source, order):
    result = EXPLORABLE.result(text=TEXTS[name], source=source, order=order)
    assert result.n == len(result.tokens) and abs(result.row.sum() - 1) < 1e-10
    assert "".join(result.tokens) == TEXTS[name]
    for view in EXPLORABLE.tokens(result):
        assert len(view.tokens) == len(view.weights) and view.query == result.n - 1
        assert "<script" not in token_html(view)
    EXPLORABLE.draw(result).canvas.draw()


def test_tokens_after_the_query_are_not_read_and_change_nothing():
    result = EXPLORABLE.result(position=50)
    full, compressed = EXPLORABLE.tokens(result)
    assert np.isnan(full.weights[50:]).all() and np.isfinite(full.weights[:50]).all()
    assert np.isnan(compressed.weights[50:]).all() and compressed.signed and not full.signed
    cut = EXPLORABLE.result(text=SONNET[:50], position=50)
    np.testing.assert_allclose(result.row, cut.row, atol=1e-13)
    assert "untrained" in full.label and "untrained" in EXPLORABLE.prose


@pytest.mark.parametrize(
    ("source", "text", "says"),
    [
        ("characters", "", "empty"),
        ("characters", " \n", "not a space"),
        ("characters", "x" * 100_000, "100,000 characters; at most 512"),
        ("words", "x " * 50_000, "100,000 characters; at most 512 words"),
        ("words", "x " * 513, "513 words; at most 512"),
        ("characters", "​", "only spaces"),
        ("characters", 7, "must be text"),
    ],
)
def test_text_that_does_not_fit_is_refused_and_replaced(source, text, says):
    with pytest.raises(ValueError, match=says):
        EXPLORABLE.resolve(source=source, text=text)
    values, problems = EXPLORABLE.settle({"source": source, "text": text})
    assert len(problems) == 1 and says in problems[0]
    result = compute(**values)
    if "at most" in says:  # the beginning of what was given
        assert result.tokens[0].strip() == "x" and len(result.tokens) <= MAX_TOKENS
    EXPLORABLE.describe(result)


def test_position_follows_the_text_and_the_needle():
    assert EXPLORABLE.control("position").limits(DEFAULTS) == (1, len(SONNET)) == (1, DEFAULTS["position"])
    for given, most in (({"source": "needle", "needle_length": 9}, 9), ({"text": "x"}, 1), ({"source": "words"}, 36)):
        values = EXPLORABLE.resolve(**given)
        assert EXPLORABLE.control("position").limits(values)[1] == most
        assert values["needle_position"] <= values["needle_length"]
    with pytest.raises(ValueError, match="from 1 to 171"):
        EXPLORABLE.resolve(position=172)


def test_controls_that_mean_nothing_say_why():
    def reasons(**given):
        values = EXPLORABLE.resolve(**given)
        return {control.name for control in EXPLORABLE.controls if control.why_disabled(values)}

    assert reasons() == {"needle_length", "needle_position", "n_features", "seed"}
    assert reasons(source="needle") == {"text", "n_features"}
    assert reasons(features="rbf") == {"needle_length", "needle_position"}
    assert sum(control.main for control in EXPLORABLE.controls) == 5


def test_a_denominator_that_is_negative_throughout_does_not_change_sign():
    features = PolynomialFeatures(1)
    for sign, said in ((-1.0, "The denominator is negative for 2 of the 2"), (0.5, "The denominator changes sign")):
        report = denominator_report([[-1.0], [sign]], compress([[1.0], [2.0]], [1.0, 2.0], 1))
        warnings = list(_warnings(1, 1, "exact", np.ones(1), features, report))
        assert len(warnings) == 1 and warnings[0].startswith(said)


def test_a_denominator_that_changes_sign_is_flagged_and_kept():
    result = EXPLORABLE.result(features="identity")
    assert not result.report.safe and any("changes sign" in warning for warning in result.warnings)
    assert result.denominator < 0  # kept, not clamped
    assert not EXPLORABLE.result().warnings
    rest = [EXPLORABLE.result(features=name) for name in ("random", "elu")]
    assert all(other.report.safe and other.denominator > 0 for other in rest)


def test_a_query_of_zeros_on_the_identity_map_is_refused_in_words():
    with pytest.raises(ValueError, match="denominator of exactly 0"):
        EXPLORABLE.result(features="identity", sharpness=0)
    assert EXPLORABLE.result(sharpness=0).error < 1e-12  # softmax: a flat row is one number


def test_euler_blows_up_with_a_warning_and_the_picture_survives():
    result = EXPLORABLE.result(method="euler", order=64, position=30)
    assert any("blown up" in warning for warning in result.warnings)
    EXPLORABLE.draw(result).canvas.draw()
    assert "nan" not in EXPLORABLE.describe(result).lower()


CORNERS = [
    {},
    {"position": 1},
    {"position": 1, "order": 1, "method": "bilinear"},
    {"position": 2, "order": 128},
    {"order": 1},
    {"text": "x", "order": 128},
    {"source": "needle"},
    {"source": "needle", "needle_length": 2, "needle_position": 2},
    {"source": "words", "order": 128},
    {"features": "random", "n_features": 2},
    {"features": "identity"},
    {"method": "discrete", "order": 128},
]


@pytest.mark.parametrize("given", CORNERS, ids=str)
def test_description_is_true(given):
    """Every number in the sentences is recomputed from the arrays, to the digits that are shown."""
    result = EXPLORABLE.result(**given)
    text = EXPLORABLE.describe(result).replace("over 99.9 %", "99.9 %")
    assert len(re.findall(r"[.] |[.]$", text)) == 2 and "  " not in text

    def shown(pattern):
        match = re.search(pattern, text)
        return match and [float(part.replace("−", "-")) for part in match.groups()]

    def close(said, true):
        return abs(said - true) <= 0.06 * abs(true) + 1e-12

    if result.n == 1:
        assert "one token to read" in text
    else:
        weight, token = shown(r"puts (\S+) % on [^(]*\(token (\d+)\)")
        at = int(token) - 1
        assert abs(result.full_row[at]) == np.abs(result.full_row).max() and close(weight, 100 * result.full_row[at])
        peak = int(np.argmax(np.abs(result.row)))
        if "there too" in text:
            assert peak == at and close(shown(r"there too, (\S+) %")[0], 100 * result.row[at])
        else:
            own, largest, token = shown(r"gets (\S+) % and the largest weight is (\S+) %, on [^(]*\(token (\d+)\)")
            assert int(token) - 1 == peak and close(own, 100 * result.row[at])
            assert close(largest, 100 * result.row[peak])
    off = shown(r"off by (\S+) %")
    assert (off is None) == (result.error < 1e-12) and (off is None or close(off[0], 100 * result.error))
    bound = shown(r"\(bound (\S+) %\)")
    assert bound is None or (close(bound[0], 100 * result.bound) and result.error <= result.bound + 1e-12)
    assert shown(r"weights sum to ([\d.]+)")[0] == 1
    assert ("random features alone" in text) == ("random" in given.values())


def test_random_features_are_compared_with_softmax():
    errors = [EXPLORABLE.result(features="random", n_features=r, sharpness=0.5).feature_error for r in (2, 256)]
    assert errors[1] < errors[0] and EXPLORABLE.result().feature_error is None


@pytest.mark.parametrize("choice", EXPLORABLE.try_this, ids=lambda choice: choice.label)
def test_what_try_this_promises(choice):
    result = EXPLORABLE.result(**choice.values)
    if choice.label.startswith("A needle"):
        assert result.full_row[59] > 0.9 and result.row[59] < 0.2 and result.needle == 60
        assert EXPLORABLE.result(source="needle", order=128).row[59] > 2 * result.row[59]
    elif choice.label.startswith("Attention"):
        assert result.error < 1e-11 and EXPLORABLE.result(**{**choice.values, "order": 127}).error > 1e-9
    else:
        assert any("changes sign" in warning for warning in result.warnings)


def test_formula_holds_the_live_numbers():
    formula = EXPLORABLE.formula(EXPLORABLE.result())
    assert formula.tag == "E11" and r"\frac" in formula.numbers and "−" not in formula.numbers
    result = EXPLORABLE.result()
    assert f"{result.denominator:.3g}" in formula.numbers and f"{result.full_readout[0]:.3g}" in formula.numbers


def test_shared_arrays_are_read_only_and_moving_the_position_is_quick(monkeypatch):
    import idviz.numbers.query as numbers

    EXPLORABLE.result(position=10)
    calls = []
    monkeypatch.setattr(numbers, "heads", lambda *given: calls.append(given))
    for position in EXPLORABLE.instants(DEFAULTS):
        EXPLORABLE.result(position=position)
    assert calls == []
    _, head = _source("characters", SONNET, 200, 60, 1.5, 0)
    with pytest.raises(ValueError, match="read-only"):
        head.values[0] = 0


def test_table_has_the_numbers_behind_the_picture():
    result = EXPLORABLE.result(position=20)
    table = EXPLORABLE.table(result)
    assert list(table["token"]) == list(SONNET[:20]) and len(table["s"]) == 16
    np.testing.assert_array_equal(table["compressed_weight"], result.row)
