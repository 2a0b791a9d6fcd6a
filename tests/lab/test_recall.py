"""Recall: questions that a dictionary answers, splits that no guess can use, chance beside every figure."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
import torch

from idviz.lab.recall import (
    NO_LABEL,
    SPLITS,
    Accuracy,
    NeedleTask,
    RecallTask,
    exact_strings,
    needle_accuracy,
    predict,
    recall_accuracy,
    recall_loss,
    recall_table,
)
from idviz.learned import MIXERS, DecoderConfig, build

torch.set_num_threads(1)
TASK = RecallTask(pairs=4, distance=3, keys=16, values=24, fillers=5, held_out=0.25)
SMALL = RecallTask(pairs=3, keys=9, values=10, held_out=0.25)
HAY = list(b"It was the best of times, it was the worst of times. " * 20)


def rng(seed=0):
    return np.random.default_rng(seed)


def encode(text):
    return list(text.encode())


class Answers(torch.nn.Module):
    """A model that says what a function of the tokens says."""

    device = torch.device("cpu")

    def __init__(self, answer, vocabulary):
        super().__init__()
        self.answer, self.vocabulary = answer, vocabulary

    def forward(self, tokens):
        return torch.nn.functional.one_hot(self.answer(tokens).clamp(min=0), self.vocabulary).float(), ()


def bound(task, tokens):
    """Keys and values (B, n), as they stand in the sequences."""
    return tokens[:, 0 : 2 * task.pairs : 2].numpy(), tokens[:, 1 : 2 * task.pairs : 2].numpy() - task.keys


@pytest.mark.parametrize("split", ["train", "held-out"])
def test_a_sequence_is_what_the_task_says(split):
    questions = TASK.draw(50, rng(), split)
    tokens, labels = questions.tokens, questions.labels
    assert tokens.shape == labels.shape == (50, TASK.length) == (50, 4 * 4 + 3)
    keys, values = bound(TASK, tokens)
    first_filler = TASK.keys + TASK.values
    for row in range(50):
        known = dict(zip(keys[row].tolist(), (values[row] + TASK.keys).tolist(), strict=True))
        assert len(known) == len(set(known.values())) == 4
        assert all(0 <= key < TASK.keys <= value < first_filler for key, value in known.items())
        asked = tokens[row, 8 + 3 :: 2].tolist()
        assert sorted(asked) == sorted(known)
        # the label is on the query's own position: no further shift
        assert labels[row, 8 + 3 :: 2].tolist() == [known[key] for key in asked]
    labelled = (labels != NO_LABEL).nonzero()[:, 1].unique().tolist()
    assert labelled == [11, 13, 15, 17]
    rest = torch.cat([tokens[:, 8:11], tokens[:, 12::2]], dim=1)
    assert ((rest >= first_filler) & (rest < TASK.vocabulary)).all() and len(rest.unique()) == 5
    orders = {tuple(np.argsort(row)) for row in tokens[:, 11::2].numpy()}
    assert len(orders) > 10  # the queries do not follow the order of the pairs


# -- what is held out --------------------------------------------------------------------------------------------------
def sets(of, n):
    """Every set of n of the first numbers: (sets, n)"""
    return np.array([*combinations(range(of), n)])


def all_combinations(task):
    """Every set of keys with every set of values: (K, V, n) each, and whether each combination is held out, (K, V)."""
    keys, values = np.broadcast_arrays(sets(task.keys, task.pairs)[:, None], sets(task.values, task.pairs)[None])
    return keys, values, task.held(keys, values)


def test_a_combination_of_keys_and_values_lies_in_one_split_whichever_key_has_which_value():
    keys, values, held = all_combinations(SMALL)
    turned = np.random.default_rng(0).permuted(keys, axis=-1)
    np.testing.assert_array_equal(SMALL.held(turned, values[..., ::-1]), held)
    # a share of held_out, to five standard deviations of as many coins
    assert abs(held.mean() - SMALL.held_out) < 5 * (0.25 * 0.75 / held.size) ** 0.5
    # whatever the distance; another seed moves them
    np.testing.assert_array_equal(replace(SMALL, distance=40).held(keys, values), held)
    assert (replace(SMALL, split_seed=1).held(keys, values) != held).any()


@pytest.mark.parametrize("pairs", [1, 2, 3, 6])
def test_the_splits_share_no_sequence_and_leave_none_out(pairs):
    task, found = RecallTask(pairs, keys=6, values=7, held_out=0.25), {}
    for split in SPLITS:
        keys, values = bound(task, task.draw(4000, rng(), split).tokens)
        assert (task.held(keys, values) == (split == "held-out")).all()
        found[split] = {(frozenset(k), frozenset(v)) for k, v in zip(keys.tolist(), values.tolist(), strict=True)}
    held = all_combinations(task)[2]
    assert not found["train"] & found["held-out"]
    assert len(found["train"]) > 0.95 * (~held).sum() and len(found["held-out"]) > 0.95 * held.sum()


@pytest.mark.parametrize(("pairs", "tokens"), [(2, 32), (3, 12)])
def test_every_binding_is_in_both_splits_as_often_as_any_other(pairs, tokens):
    task = RecallTask(pairs, keys=tokens, values=tokens, held_out=0.5)
    held = all_combinations(task)[2]
    has = (sets(tokens, pairs)[..., None] == np.arange(tokens)).any(1)  # (sets, tokens)
    together = has.sum(0)[0] ** 2  # combinations that have a key and a value: 961, 3025
    for chosen in (held, ~held):
        # of these, a share 1/n of the sequences binds the one to the other: the same for all
        often = has.T.astype(int) @ chosen @ has
        assert (often > 0).all()
        assert np.abs(often - together / 2).max() < 5 * (0.25 * together) ** 0.5  # as even as that many coins


@pytest.mark.parametrize("split", SPLITS)
def test_all_ways_to_bind_are_equally_likely_so_that_values_without_keys_are_right_once_in_n(split):
    keys, values = bound(TASK, TASK.draw(1, rng(), split).tokens)
    ways = np.array([*permutations(values[0])])  # (24, 4): every one belongs to the split
    assert (TASK.held(np.broadcast_to(keys, ways.shape), ways) == (split == "held-out")).all()
    for reader in range(20):  # knows both sets, and names one value for each key by a rule of its own
        names = rng(reader).choice(values[0], 4)
        assert (ways == names).sum() == ways.size * TASK.chance_among_seen


@pytest.mark.parametrize("pairs", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("split", SPLITS)
def test_a_reader_with_the_values_but_not_whose_is_right_exactly_once_in_n(pairs, split):
    task = RecallTask(pairs, 5, keys=24, values=32)

    def a_value_of_the_sequence(tokens):
        return tokens[:, 1 : 2 * pairs : 2].amin(1, keepdim=True).expand_as(tokens)

    found = recall_accuracy(Answers(a_value_of_the_sequence, task.vocabulary), task, split=split, sequences=50)
    assert (found.correct, found.asked) == (50, 50 * pairs) and found.accuracy == found.chance_among_seen


@pytest.mark.parametrize("pairs", [2, 4])
def test_a_table_of_what_training_bound_is_no_help_and_no_harm(pairs):
    task = RecallTask(pairs, keys=8, values=8, held_out=0.5)
    often = np.zeros((8, 8), int)
    np.add.at(often, bound(task, task.draw(20_000, rng(1)).tokens), 1)

    def by_table(tokens):  # of the values seen, the one most often bound to this key
        seen = tokens[:, 1 : 2 * pairs : 2].numpy() - 8
        scores = np.take_along_axis(often[tokens.clamp(max=7).numpy()], seen[:, None], 2)
        return torch.from_numpy(np.take_along_axis(seen, scores.argmax(2), 1)) + 8

    found = recall_accuracy(Answers(by_table, task.vocabulary), task, sequences=4000)
    assert abs(found.accuracy - 1 / pairs) < 5 * (0.25 / 4000) ** 0.5


def test_the_same_for_a_seed_whatever_happens_outside():
    first = TASK.draw(9, rng(4))
    torch.manual_seed(1)
    second = TASK.draw(9, rng(4))
    assert torch.equal(first.tokens, second.tokens) and torch.equal(first.labels, second.labels)
    assert not torch.equal(first.tokens, TASK.draw(9, rng(5)).tokens)
    stream = rng(4)
    assert not torch.equal(TASK.draw(9, stream).tokens, TASK.draw(9, stream).tokens)


@pytest.mark.parametrize("pairs, distance", [(1, 0), (4, 0), (6, 25), (16, 3)])
def test_the_dictionary_answers_every_question(pairs, distance):
    task = RecallTask(pairs, distance, keys=16, values=64)
    oracle = Answers(task.oracle, task.vocabulary)
    for split in ("train", "held-out"):
        found = recall_accuracy(oracle, task, split=split, sequences=40)
        assert found.accuracy == 1 and found.asked == 40 * pairs
        assert found.interval[0] < 1 == found.interval[1]


def test_chance_is_what_guessing_gets():
    def any_value(tokens):
        return torch.from_numpy(guess.integers(TASK.keys, TASK.keys + TASK.values, tuple(tokens.shape)))

    def a_seen_one(tokens):
        values = tokens[:, 1 : 2 * TASK.pairs : 2].numpy()
        return torch.from_numpy(np.take_along_axis(values, guess.integers(4, size=tuple(tokens.shape)), 1))

    guess = rng(8)
    for answer, chance in ((any_value, TASK.chance), (a_seen_one, TASK.chance_among_seen)):
        found = recall_accuracy(Answers(answer, TASK.vocabulary), TASK, sequences=1000)
        assert abs(found.accuracy - chance) < 4 * (chance * (1 - chance) / 4000) ** 0.5
    assert (TASK.chance, TASK.chance_among_seen) == (1 / 24, 1 / 4)
    # the loss of knowing the values without their keys is ln n
    questions = TASK.draw(30, rng())
    logits = torch.full((30, TASK.length, TASK.vocabulary), -1e9)
    logits.scatter_(2, questions.tokens[:, None, 1:8:2].expand(-1, TASK.length, -1), 0.0)
    assert recall_loss(logits, questions.labels).item() == pytest.approx(np.log(4))


def test_train_held_out_and_chance_side_by_side_at_other_lengths():
    oracle = Answers(TASK.oracle, TASK.vocabulary)  # keys, values and fillers are the same tokens at every length
    rows = recall_table(oracle, TASK, pairs=[2, 6], distances=[0, 30], sequences=5, seed=3)
    told = [json.loads(json.dumps(row.to_dict())) for row in rows]
    assert [(row["pairs"], row["distance"], row["split"]) for row in told] == [
        (n, d, split) for n in (2, 6) for d in (0, 30) for split in ("train", "held-out")
    ]
    assert all(row["accuracy"] == 1 and row["chance"] == 1 / 24 and row["seed"] == 3 for row in told)
    assert [row["chance_among_seen"] for row in told] == [1 / 2] * 4 + [1 / 6] * 4


@pytest.mark.parametrize("kind", MIXERS)
def test_batches_against_one_sequence_at_a_time(kind):
    options = {"modes": 4} if kind in ("interdomain", "s4d") else {}
    model = build(DecoderConfig(TASK.vocabulary, 32, 1, 2, 24, kind, options), device="cpu")
    questions = TASK.draw(10, rng(2))
    found, right = predict(model, questions.tokens, batch=3), 0
    for row in range(10):
        for t in range(TASK.length):
            with torch.no_grad():
                best = model(questions.tokens[row : row + 1, : t + 1])[0][0, -1].argmax()
            assert best == found[row, t]
            right += int(best == questions.labels[row, t])
    assert recall_accuracy(model, TASK, split="train", sequences=10, seed=2).correct == right
    loss = recall_loss(model(questions.tokens)[0], questions.labels)
    loss.backward()
    assert loss.isfinite() and model.embedding.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("depth", [0, 0.3, 1])
def test_a_needle_lies_where_it_is_said(depth):
    task = NeedleTask(encode, context=150, depth=depth, digits=5)
    questions = task.draw(HAY, 20, rng())
    assert questions.tokens.shape == (20, 150)
    cue, numbers = task.cue.encode(), set()
    for tokens, labels in zip(questions.tokens.tolist(), questions.labels.tolist(), strict=True):
        text = bytes(tokens)
        number = bytes(label for label in labels if label != NO_LABEL)
        numbers.add(number)
        assert number.isdigit() and len(number) == 5 and text.count(cue) == 2
        assert text.endswith(cue + number[:-1]) and labels[-5:] == list(number) and set(labels[:-5]) == {NO_LABEL}
        hay = 150 - 2 * len(cue) - 9
        before, after = text[: -len(cue) - 4].split(cue + number)
        assert len(before) == round(depth * hay) and before + after in bytes(HAY)
    assert len(numbers) == 20
    assert torch.equal(questions.tokens, task.draw(HAY, 20, rng()).tokens)


def test_the_needles_oracle_and_half_a_number():
    task = NeedleTask(encode, context=150, depth=0.5)
    found = needle_accuracy(Answers(task.oracle, 256), task, HAY, sequences=12)
    assert (found.correct, found.asked, found.chance) == (12, 12, 1 / 90000)
    assert json.loads(json.dumps(found.to_dict()))["depth"] == 0.5
    half = Answers(lambda tokens: task.oracle(tokens) - torch.eye(150, dtype=int)[-1] * 1, 256)  # last digit off by one
    assert needle_accuracy(half, task, HAY, sequences=12).correct == 0
    wanted = torch.tensor([[-100, 3, 4], [-100, 3, 4]])
    assert exact_strings(torch.tensor([[9, 3, 4], [9, 3, 5]]), wanted) == 1


def test_wilsons_interval():
    # 8 of 10: the textbook's 0.490 to 0.943; 0 of 10: 0 to z²/(n + z²)
    assert Accuracy(8, 10, 0.1, None, {}).interval == pytest.approx((0.490, 0.943), abs=1e-3)
    assert Accuracy(0, 10, 0.1, None, {}).interval == pytest.approx((0, 0.2775), abs=1e-3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: RecallTask(pairs=0), "pairs must be a whole number of at least 1, not 0"),
        (lambda: RecallTask(pairs=9, keys=8), "pairs must be at most 8, the number of keys, not 9"),
        (lambda: RecallTask(pairs=9, values=8), "pairs must be at most 8, the number of values, not 9"),
        (lambda: RecallTask(pairs=8, keys=8, values=8), "pairs must be less than keys or values, .* not 8"),
        (lambda: RecallTask(1, keys=1, values=2, held_out=1e-9).draw(2, rng(), "held-out"), "held-out .* too rare"),
        (lambda: RecallTask(distance=-1), "distance must be a whole number of at least 0, not -1"),
        (lambda: RecallTask(held_out=1.0), "held_out must be between 0 and 1, not 1.0"),
        (lambda: TASK.draw(4, rng(), "test"), "split must be 'train' or 'held-out', not 'test'"),
        (lambda: TASK.draw(4, 0), "generator must be a numpy Generator, not int"),
        (lambda: TASK.draw(0, rng()), "sequences must be a whole number of at least 1, not 0"),
        (lambda: NeedleTask(encode, 100, depth=1.5), "depth must be from 0 to 1, not 1.5"),
        (lambda: NeedleTask(encode, 100, cue=""), "cue must be a string of at least one character"),
        (lambda: NeedleTask(encode, 20).draw(HAY, 1, rng()), "context 20 is too short: needle and question take 53"),
        (lambda: NeedleTask(encode, 100).draw([HAY, HAY], 1, rng()), r"in one row, not of shape \(2, 1060\)"),
        (lambda: NeedleTask(encode, 4000).draw(HAY, 1, rng()), "haystack, which has only 1060"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_model_with_too_small_a_vocabulary_is_refused():
    model = build(DecoderConfig(TASK.vocabulary - 1, 32, 1, 2, 24, "softmax"), device="cpu")
    with pytest.raises(ValueError, match=f"not {TASK.vocabulary - 1} at position"):
        recall_accuracy(model, TASK)
