"""The README's results: written from the files between two marks, and in step with them."""

from __future__ import annotations

import json
import math

import pytest

from idviz.course import results_table
from idviz.course.results_claims import WORDS
from idviz.numbers import measured
from idviz.numbers.claims import Verdict
from tests.helpers import measured_results

HOLDS, PART, CANT_TELL, NOT, REVERSES = (WORDS[verdict] for verdict in Verdict)
README = f"# A title\n\n{results_table.BEGIN}\nstale words\n{results_table.END}\n\nThe rest.\n"


@pytest.fixture
def folder(tmp_path):
    measured_results.write(tmp_path)
    (tmp_path / "README.md").write_text(README, "utf-8")
    return tmp_path


def run(folder, *options):
    return results_table.main(["--readme", str(folder / "README.md"), "--results", str(folder), *options])


def change(folder, name, result):
    (folder / f"{name}.json").write_text(json.dumps(result), "utf-8")


def claims(folder):
    assert run(folder) == 0
    text = (folder / "README.md").read_text("utf-8")
    return [line for line in text.splitlines() if line.startswith("- Paper:")]


def test_writes_between_the_marks_and_check_sees_a_step_out(folder, capsys):
    assert run(folder, "--check") == 1 and "out of step" in capsys.readouterr().err
    assert (folder / "README.md").read_text() == README  # a check changes nothing
    assert run(folder) == 0 and run(folder, "--check") == 0
    text = (folder / "README.md").read_text("utf-8")
    assert text.startswith("# A title\n") and text.endswith("\n\nThe rest.\n") and "stale" not in text
    change(folder, "mixers", measured_results.study("mixers", {"interdomain": [3.3, 3.4]}))
    assert run(folder, "--check") == 1


def test_the_tables_hold_the_numbers(folder):
    run(folder)
    text = (folder / "README.md").read_text("utf-8")
    assert (
        "| Interdomain | 1,000 | 256 | 3.100 ± 0.100 | 22.20 | 1.000 (1.000 to 1.000) | 1.010 (1.010 to 1.010) |"
        in text
    )
    assert "| Softmax | 1,000 | 256 | 3.090 ± 0.100 | 21.98 | 1.200 | 1.500 |" in text  # one seed measured for length
    assert "× at 224 tokens" in text and "× at 1,024 tokens" in text
    assert "| No query-conditioning | 1,000 | 256 | 3.200 ± 0.100 | +0.100 | +0.100 to +0.100 | paired |" in text
    assert "| Values only | 1,000 | 256 | 3.120 ± 0.100 | +0.020 | +0.020 to +0.020 | paired |" in text
    assert "| Interdomain | 4,096 | 100.0 ± 0.0 | 99.5 ± 0.7 | 40.0 ± 14.1 | up to 8 pairs |" in text
    assert "nats per token" in text and "512 targets" in text and "3 seeds" in text and "2026-01-02" in text


def test_claims_that_hold(folder):
    s4d, softmax, length, query, recall = claims(folder)
    assert HOLDS in s4d and "13 % lower" in s4d and "256 and 256 numbers" in s4d
    assert HOLDS in softmax and "1 % higher" in softmax and "adjusted for 2 claims" in softmax
    assert HOLDS in length and "at 3.5 times" in length
    assert "Interdomain's perplexity is the same to 0.1 %" in length and "softmax's 20 % higher" in length
    assert "at 16 times 1 % higher and 50 % higher" in length
    assert HOLDS in query and "+0.1 nats per token without query-conditioning" in query
    assert "for Interdomain up to 8 pairs, for softmax up to 16 pairs" in recall
    assert CANT_TELL in recall and "points more (95 %, unpaired (Welch))" in recall  # two seeds that differ


def test_of_two_softmaxes_the_claim_is_about_the_one_that_recalls_more(folder):
    recall = measured_results.recall()
    recall["task"]["holds_out"] = "combinations"
    for row in [*recall["rows"]]:
        if row["variant"] == "softmax":
            settings = {**row["settings"], "mixer_options": {"convolution": True}}
            recall["rows"].append({**row, "variant": "with", "settings": settings})
            row["answers"] = [answer | {"accuracy": 1 / answer["pairs"]} for answer in row["answers"]]
    change(folder, "recall", recall)
    assert "softmax, short convolution 99.5" in claims(folder)[-1]
    assert "combinations of keys and values never seen" in results_table.block(folder)


def test_recall_is_judged_by_its_interval(folder):
    recall = measured_results.recall()
    for row in recall["rows"]:
        for answer in row["answers"]:
            if row["variant"] == "interdomain" and answer["pairs"] == 16:
                answer["accuracy"] = 0.4 + 0.01 * row["seed"]
    change(folder, "recall", recall)
    assert HOLDS in claims(folder)[-1]


def test_claims_that_do_not_hold_are_said_plainly(folder):
    change(folder, "mixers", measured_results.study(
        "mixers",
        {"interdomain": [3.0, 3.1, 3.2], "s4d": [2.9, 3.0, 3.1], "softmax": [2.5, 2.6, 2.7]},
        {"s4d": "s4d", "softmax": "softmax"},
    ))  # fmt: skip
    change(folder, "ablation", measured_results.study(
        "ablation", {"full": [3.0, 3.1], "fixed_readout": [3.1, 3.0], "value_input": [3.1, 3.2], "no_rope": [3.5, 3.6]}
    ))  # fmt: skip
    length = measured_results.length()
    length["models"][2]["curve"] = measured_results.curve({16: 3.2, 64: 3.0, 224: 3.0, 1024: 3.0})
    change(folder, "length", length)
    s4d, softmax, length, query, _ = claims(folder)
    assert REVERSES in s4d and f"{100 * (math.exp(0.1) - 1):.2g} % higher" in s4d
    assert NOT in softmax and "65 % higher" in softmax
    assert PART in length and "as flat inside training (16 tokens score like 64)" not in length  # so is softmax
    assert CANT_TELL in query and "4 comparisons in all" not in query and "3 comparisons in all" in query


def test_half_a_claim_holds_in_part(folder):
    less = math.log(1.05)
    losses = {"interdomain": [3.0, 3.1, 3.2], "s4d": [3.0 + less, 3.1 + less, 3.2 + less], "softmax": [3.0, 3.1, 3.2]}
    change(folder, "mixers", measured_results.study("mixers", losses, {"s4d": "s4d", "softmax": "softmax"}))
    s4d, softmax, *_ = claims(folder)
    assert PART in s4d and "4.8 % lower" in s4d and HOLDS in softmax


def test_ahead_of_softmax_is_not_equal_to_it(folder):
    less = math.log(1.05)
    losses = {"interdomain": [3.0, 3.1, 3.2], "s4d": [3.2, 3.3, 3.4]}
    losses["softmax"] = [3.0 + less, 3.101 + less, 3.2 + less]
    change(folder, "mixers", measured_results.study("mixers", losses, {"s4d": "s4d", "softmax": "softmax"}))
    _, softmax, *_ = claims(folder)
    assert PART in softmax and "4.8 % lower" in softmax and "ahead, rather than equal" in softmax


def test_query_conditioning_is_the_main_source_only_if_no_part_costs_more(folder):
    cost = {"full": 0, "fixed_readout": 0.1, "value_input": 0.05, "denominator": 1.0}
    losses = {name: [3.0 + nats, 3.1 + nats, 3.2 + nats] for name, nats in cost.items()}
    change(folder, "ablation", measured_results.study("ablation", losses))
    *_, query, _ = claims(folder)
    assert HOLDS in query and "denominator kept" in query  # which is no part
    change(folder, "ablation", measured_results.study("ablation", losses | {"value_input": [3.3, 3.4, 3.5]}))
    *_, query, _ = claims(folder)
    assert PART in query and "more than query-conditioning cost: denominator kept and values only" in query


def test_a_claim_may_reverse(folder):
    losses = {"full": [3.0, 3.1, 3.2], "fixed_readout": [2.93, 3.03, 3.13], "value_input": [3.05, 3.15, 3.25]}
    change(folder, "ablation", measured_results.study("ablation", losses))
    *_, query, _ = claims(folder)
    assert REVERSES in query and "−0.07 nats per token without query-conditioning" in query


def test_a_text_without_headroom_cannot_tell(folder):
    """Softmax gains 0.05 nats from 16 tokens of context to the trained length: less than a text must leave."""
    length = measured_results.length()
    length["models"][2]["curve"] = measured_results.curve({16: 3.05, 64: 3.0, 224: 3.2, 1024: 3.5})
    change(folder, "length", length)
    s4d, softmax, length, query, recall = claims(folder)
    assert all(CANT_TELL in claim for claim in (s4d, softmax, length, query))
    assert "Paper: recall" in recall  # which is about another text


def test_flat_without_using_context_is_not_much(folder):
    length = measured_results.length()
    for model in length["models"][:2]:
        model["curve"] = measured_results.curve({16: 3.0, 64: 3.0, 224: 3.0, 1024: 3.0})
    change(folder, "length", length)
    assert PART in claims(folder)[2] and "as flat inside training (16 tokens score like 64)" in claims(folder)[2]


def test_one_seed_claims_no_spread(folder):
    losses = {"interdomain": [3.0], "s4d": [3.2], "softmax": [3.0]}
    change(folder, "mixers", measured_results.study("mixers", losses, {"s4d": "s4d", "softmax": "softmax"}))
    s4d, *_ = claims(folder)
    assert CANT_TELL in s4d and "one seed, which tells no spread" in s4d
    assert "| S4D | 1,000 | 256 | 3.200 | 24.53 |" in (folder / "README.md").read_text("utf-8")


def test_a_missing_result_or_mark_is_a_message(folder, capsys):
    (folder / "recall.json").unlink()
    assert run(folder) == 2 and "recall.json" in capsys.readouterr().err
    measured_results.write(folder)
    (folder / "README.md").write_text("no marks")
    assert run(folder) == 2 and results_table.BEGIN in capsys.readouterr().err
    (folder / "README.md").write_text(f"{results_table.END}\n{results_table.BEGIN}\n")
    assert run(folder) == 2


@pytest.mark.skipif(
    not all((measured.FOLDER / f"{name}.json").is_file() for name in results_table.NAMES), reason="no measured results"
)
def test_the_readme_is_in_step():
    assert results_table.main(["--check"]) == 0
