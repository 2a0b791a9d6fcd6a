"""Facts: the documents are what they say, and the ideal reader's probabilities are exact."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pytest

from idviz.samples.facts import CHANGED, FIRST, NAMES, OBJECTS, REPEAT, FactsTask, document, documents
from idviz.samples.ideal_reader import IdealReader, read_all

EPS = np.finfo(np.float64).eps


def all_documents(task: FactsTask, sentences: int):
    """Every document of so many sentences with its probability: plain enumeration of how facts are made."""
    names, verbs, objects = range(task.names), range(task.verbs), range(task.objects)
    low, high = task.people
    changes = [(False, 0, 1 - task.change)]
    if task.change:
        changes += [(True, step, task.change / (task.objects - 1)) for step in range(1, task.objects)]
    for k in range(low, high + 1):
        sets = list(itertools.combinations(names, k))
        for people in sets:
            for start in itertools.product(objects, repeat=k * task.verbs):
                facts = dict(zip(itertools.product(people, verbs), start, strict=True))
                p = 1 / (high - low + 1) / len(sets) / task.objects ** (k * task.verbs)
                for said in itertools.product(itertools.product(people, verbs, changes), repeat=sentences):
                    now, tokens, weight = dict(facts), [0], p
                    for name, verb, (changed, step, chance) in said:
                        weight *= chance / k / task.verbs
                        now[name, verb] = (now[name, verb] + step) % task.objects
                        tokens.append(task.name_token(name))
                        tokens += [2] * changed
                        tokens += [task.verb_token(verb), task.object_token(verb, now[name, verb]), 1]
                    yield tokens, weight


@pytest.mark.parametrize(
    ("task", "sentences"),
    [
        (FactsTask(names=3, people=(1, 2), verbs=1, objects=2, change=0.3), 3),
        (FactsTask(names=3, people=(1, 3), verbs=1, objects=3), 3),
        (FactsTask(names=2, people=(1, 2), verbs=2, objects=2, change=0.25), 3),
        (FactsTask(names=4, people=(2, 3), verbs=1, objects=2), 4),
    ],
    ids=str,
)
def test_the_ideal_reader_is_exact(task, sentences):
    """Every window of every document, read from its beginning or from anywhere, against plain enumeration."""
    weights: dict = defaultdict(lambda: np.zeros(task.vocabulary))
    for tokens, weight in all_documents(task, sentences):
        for start in range(len(tokens) - 1):
            for end in range(start + 1, len(tokens)):
                weights[start, tuple(tokens[start:end])][tokens[end]] += weight
    assert len(weights) > 400
    for (_, window), row in weights.items():
        reader = IdealReader(task)
        for token in window:
            reader.read(token)
        np.testing.assert_allclose(
            reader.probabilities(), row / row.sum(), rtol=0, atol=1000 * EPS, err_msg=str(window)
        )


def test_nothing_read_is_a_place_far_into_a_document():
    task = FactsTask(names=5, verbs=2, objects=3, change=0.2)
    counts = np.zeros(task.vocabulary)
    for n in range(200):
        counts += np.bincount(document(task, 400, [0, n]).tokens[1:], minlength=task.vocabulary)
    expected = IdealReader(task).probabilities()
    assert abs(expected.sum() - 1) < 10 * EPS and expected[0] == 0
    spread = np.sqrt(expected * (1 - expected) / 200)  # of 200 documents, each of which shares its people and facts
    assert (np.abs(counts / counts.sum() - expected) < 4 * spread / np.sqrt(10) + 1e-3).all()


def test_a_document_says_what_its_marks_say():
    task = FactsTask(change=0.2)
    for n in range(20):
        made = document(task, 200, [3, n])
        words = task.decode(made.tokens).split()
        assert words[0] == "<bos>" and len(words) == 201
        facts, said = {}, {}
        sentence: list[str] = []
        for place, word in enumerate(words[1:], 1):
            sentence.append(word)
            kind = made.kind[place]
            if word in {o for those in OBJECTS.values() for o in those}:
                name, verb, changed = sentence[0], sentence[-2], "now" in sentence
                before = facts.get((name, verb))
                assert kind == (CHANGED if changed else FIRST if before is None else REPEAT)
                assert before is None or (word == before) != changed
                assert made.distance[place] == (place - said[name, verb] if kind == REPEAT else 0)
                facts[name, verb], said[name, verb] = word, place
                assert word in OBJECTS[verb]
            else:
                assert kind == 0 and made.distance[place] == 0
            if word == ".":
                sentence = []
        assert len({name for name, _ in facts}) <= 4


def test_documents_depend_on_seed_and_number_alone():
    task = FactsTask()
    few = list(itertools.islice(documents(task, 64, seed=5), 8))
    later = next(documents(task, 64, seed=5, first=7))
    assert (few[7].tokens == later.tokens).all() and not (few[6].tokens == later.tokens).all()
    assert (document(task, 200, [5, 7]).tokens[:4] == later.tokens[:4]).all()
    assert len({tuple(made.tokens) for made in few}) == 8


def test_no_table_betrays_an_object():
    """Counting (person, verb) → object in other documents predicts an object no better than chance."""
    task = FactsTask()
    table = np.zeros((task.vocabulary, task.vocabulary, task.vocabulary), np.int32)

    def facts_of(first, count):
        for made in itertools.islice(documents(task, 128, seed=1, first=first), count):
            at = np.flatnonzero(made.kind == FIRST)
            yield made.tokens[at - 2], made.tokens[at - 1], made.tokens[at]

    for rows in facts_of(0, 1500):
        np.add.at(table, rows, 1)
    right = total = 0
    for name, verb, item in facts_of(10_000, 1500):
        right += int((table[name, verb].argmax(-1) == item).sum())
        total += len(item)
    assert total > 5000
    assert abs(right / total - 1 / 8) < 4 * np.sqrt(7 / 64 / total)


def test_the_ideal_readers_loss_is_the_least_and_falls_with_context():
    task = FactsTask(change=0.1)
    tokens = document(task, 400, 0).tokens
    whole = read_all(task, tokens)
    assert np.abs(whole.sum(1) - 1).max() < 100 * EPS
    losses = -np.log(whole[np.arange(400), tokens[1:]])
    assert np.isfinite(losses).all()
    short = []
    for end in range(100, 400):
        short.append(-np.log(read_all(task, tokens[end - 8 : end])[-1][tokens[end]]))
    assert np.isfinite(short).all()
    assert losses[99:].mean() < np.mean(short) - 0.2


def test_words_go_there_and_back():
    task = FactsTask(names=24, verbs=8)
    assert task.vocabulary == len(task.words) == len(set(task.words)) == 3 + 24 + 8 + 64
    text = "Quin plays harp. Ada drinks juice . Quin now plays drums ."
    assert task.decode(task.encode(text)) == text.replace("harp.", "harp .")
    with pytest.raises(ValueError, match="'Zelda' is no word"):
        task.encode("Zelda plays harp .")
    assert FactsTask(**task.to_dict()) == task


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"names": 0}, "names must be a whole number from 1 to 24"),
        ({"names": 25}, "names must be a whole number from 1 to 24"),
        ({"verbs": 9}, "verbs must be a whole number from 1 to 8"),
        ({"objects": 1}, "objects must be a whole number from 2 to 8"),
        ({"objects": True}, "objects must be a whole number"),
        ({"people": (0, 2)}, "least number of people"),
        ({"people": (3, 2)}, "largest number of people must be a whole number from 3 to 24"),
        ({"people": 4}, "people must be two whole numbers"),
        ({"people": "14"}, "people must be two whole numbers"),
        ({"change": 1.0}, "change must be in"),
        ({"change": -0.1}, "change must be in"),
    ],
)
def test_bad_input(given, says):
    with pytest.raises(ValueError, match=says):
        FactsTask(**given)
    with pytest.raises(ValueError, match="length must be a whole number"):
        document(FactsTask(), 0, 0)


@pytest.mark.parametrize("text", ["plays plays", "harp Ada", "Ada Ben", "drinks harp", "<bos> plays", "now now"])
def test_what_cannot_follow_is_refused(text):
    reader, task = IdealReader(FactsTask()), FactsTask()
    with pytest.raises(ValueError, match=r"cannot stand|belongs to"):
        for token in task.encode(text):
            reader.read(int(token))
    assert len(NAMES) == 24


def test_more_people_than_a_document_has_are_refused():
    task = FactsTask(people=(1, 2))
    reader = IdealReader(task)
    for token in task.encode("Ada drinks tea . Ben drinks tea . Ada plays harp ."):
        reader.read(int(token))
    with pytest.raises(ValueError, match=r"'Cleo' is one name too many: .* at most 2 people"):
        reader.read(int(task.encode("Cleo")[0]))
    assert abs(reader.probabilities().sum() - 1) < 10 * EPS  # what was read before still stands


def test_what_contradicts_a_cut_sentence_is_refused():
    """With one name there is nobody else whom the cut sentence could be about."""
    task = FactsTask(names=1, people=(1, 1))
    reader = IdealReader(task)
    for token in task.encode("drinks tea . Ada drinks"):
        reader.read(int(token))
    assert reader.probabilities()[task.encode("tea")[0]] == 1
    with pytest.raises(ValueError, match="'milk' contradicts what was read"):
        reader.read(int(task.encode("milk")[0]))
