"""The self-checks: the right answer passes, an untouched exercise is "not yet", each usual mistake is named."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from idviz.course import Verdict, check
from tests.course import answers_exact, answers_learned, answers_models
from tests.course.answers_exact import legs_pair, readout, running_mean
from tests.course.answers_learned import hold, next_start, normal_part
from tests.course.answers_models import text_perplexity, units
from tests.course.engine import cases

SUBJECTS = (answers_exact.ANSWERS, answers_learned.ANSWERS, answers_models.ANSWERS)


@pytest.mark.parametrize(
    ("exercise", "answer", "state", "words"), [case for answers in SUBJECTS for case in cases(answers)]
)
def test_verdict(exercise, answer, state, words):
    verdict = getattr(check, exercise)(answer)
    assert verdict.state == state and verdict.passed == (state == "right"), verdict.message
    assert verdict.message.strip() and words.lower() in verdict.message.lower(), verdict.message


@pytest.mark.parametrize("answers", SUBJECTS, ids=lambda answers: answers.modules[0])
def test_every_exercise_has_a_right_answer_and_mistakes(answers):
    assert answers.exercises == set(answers.right) == {exercise for exercise, _, _ in answers.mistakes}


def test_every_exercise_belongs_to_a_subject():
    assert sorted(check.__all__) == sorted(exercise for answers in SUBJECTS for exercise in answers.right)


def test_half_a_pair_is_not_yet():
    assert check.legs_pair(lambda order: (legs_pair(order)[0], ...)).state == "not yet"
    assert check.hold(lambda lam, delta: (hold(lam, delta)[0], ...)).state == "not yet"


def test_an_unknown_mistake_is_located():
    def nearly(signal):
        out = np.array(running_mean(signal))
        out[3] += 0.25
        return out

    message = check.running_mean(nearly).message
    assert "[3]" in message and "yours is 3.25" in message and "should be 3" in message


def test_an_unknown_mistake_in_a_complex_answer_is_located():
    def nearly(start, x, a_bar, b_bar):
        out = next_start(start, x, a_bar, b_bar)
        out[2, 1] = 1.25 - 40j
        return out

    message = check.next_start(nearly).message
    assert "[2, 1]" in message and "yours is 1.25 − 40i" in message


def test_nan_is_located():
    def one_nan(s, gamma, eta):
        out = readout(s, gamma, eta)
        out[1, 0] = np.nan
        return out

    assert "[1, 0]" in check.readout(one_nan).message


def test_complex_numbers_do_not_pass_for_real_ones():
    verdict = check.normal_part(lambda order: normal_part(order).astype(complex))
    assert verdict.state == "off" and "real numbers" in verdict.message
    with_gradients = check.complex_readout(lambda *given: torch.ones(2, requires_grad=True))
    assert "cannot be read as real numbers" in with_gradients.message


def test_a_learner_who_overwrites_the_arguments_does_no_harm():
    def greedy(signal):
        means = running_mean(signal)
        signal[:] = 0
        return means

    assert check.running_mean(greedy).passed and check.running_mean(greedy).passed


def test_verdict_reads_well_in_text_and_in_html():
    verdict = Verdict("off", "A < B & so on")
    assert repr(verdict) == "✗ off: A < B & so on"
    assert "A &lt; B &amp; so on" in verdict._repr_html_() and 'role="status"' in verdict._repr_html_()
    assert not verdict and Verdict("right", "well done")


def test_the_checks_need_no_torch():
    """The exact half's notebooks import them too."""
    code = "import sys; import idviz.course.checks; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_numbers_of_the_field_reports():
    """e² for seven tokens in windows of four; 20 nats in three units."""
    assert text_perplexity([[1, 1, 1, 5], [2, 2]]) == pytest.approx(7.389, abs=5e-4)
    assert units(20, 10, 5, 25) == pytest.approx((7.389, 54.598, 1.154), abs=5e-4)
