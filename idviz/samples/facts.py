"""Facts: readable English whose only difficulty is memory, unlimited, from a seed.

``Quin plays harp . Ada drinks juice . Quin now plays drums . Quin plays drums .``

A document has a few people of its own. Each (person, verb) has one object, drawn uniformly when the document begins and
kept until a sentence with *now* changes it. So an object can be known only from the sentence that said it last: what
other documents said of the same person tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from idviz.exact.checks import number_within, whole_number

NAMES = (
    "Ada Ben Cleo Dan Eva Finn Gus Hana Ida Jon Kit Lea Max Nia Otto Pia Quin Rosa Sam Tess Uma Vic Wim Zoe"
).split()
OBJECTS = {
    "drinks": "tea milk cocoa juice water coffee cider lemonade".split(),
    "visits": "Rome Paris Oslo Kyoto Lima Cairo Delhi Perth".split(),
    "plays": "chess violin tennis cards harp football flute drums".split(),
    "grows": "roses tomatoes beans tulips pears garlic mint pumpkins".split(),
    "paints": "boats horses clouds bridges faces towers birds hills".split(),
    "mends": "clocks shoes chairs nets kites lamps bicycles fences".split(),
    "sells": "honey candles hats soap wool pots maps ropes".split(),
    "studies": "stars law music rocks bees rivers Latin storms".split(),
}
BEGIN, STOP, NOW = "<bos>", ".", "now"
BEGIN_TOKEN, STOP_TOKEN, NOW_TOKEN, FIRST_NAME = range(4)  # tokens of these three, and of the first name
SENTENCE = 4  # tokens of a sentence without "now"


@dataclass(frozen=True)
class FactsTask:
    """What a document of facts is made of; the defaults are those of the course's models.

    Attributes
    ----------
    names : int
        From how many names the people of a document are drawn, 1 to 24.
    people : (int, int)
        The least and the largest number of people in one document; every number between is equally likely.
    verbs : int
        1 to 8.
    objects : int
        Of each verb, 2 to 8; no object belongs to two verbs.
    change : float
        The share of sentences that change a fact ("Quin now plays drums"), from 0 to below 1.

    Raises
    ------
    ValueError
        A value outside its range, named with what is allowed.
    """

    names: int = 24
    people: tuple[int, int] = (1, 4)
    verbs: int = 4
    objects: int = 8
    change: float = 0.0

    def __post_init__(self):
        set_ = object.__setattr__
        set_(self, "names", whole_number("names", self.names, 1, len(NAMES)))
        set_(self, "verbs", whole_number("verbs", self.verbs, 1, len(OBJECTS)))
        set_(self, "objects", whole_number("objects", self.objects, 2, 8))
        set_(self, "change", number_within("change", self.change, 0.0, 1.0, open_high=True))
        if isinstance(self.people, str | bytes) or not hasattr(self.people, "__len__") or len(self.people) != 2:
            raise ValueError(f"people must be two whole numbers, the least and the largest, not {self.people!r}")
        low = whole_number("the least number of people", self.people[0], 1, self.names)
        high = whole_number("the largest number of people", self.people[1], low, self.names)
        set_(self, "people", (low, high))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The vocabulary, by token: the beginning, the stop, "now", names, verbs, then each verb's objects."""
        verbs = [*OBJECTS][: self.verbs]
        objects = [word for verb in verbs for word in OBJECTS[verb][: self.objects]]
        return (BEGIN, STOP, NOW, *NAMES[: self.names], *verbs, *objects)

    @property
    def vocabulary(self) -> int:
        """V, the number of different tokens."""
        return self.first_object + self.verbs * self.objects

    @property
    def first_verb(self) -> int:
        """The token of the first verb."""
        return FIRST_NAME + self.names

    @property
    def first_object(self) -> int:
        """The token of the first verb's first object; each verb's objects stand together."""
        return self.first_verb + self.verbs

    def name_token(self, name: int) -> int:
        return FIRST_NAME + name

    def verb_token(self, verb: int) -> int:
        return self.first_verb + verb

    def object_token(self, verb: int, item: int) -> int:
        return self.first_object + verb * self.objects + item

    def encode(self, text: str) -> np.ndarray:
        """Tokens (T,) of a text; words are separated by white space, the stop may stand at a word's end.

        Raises
        ------
        ValueError
            A word that is not in the vocabulary.
        """
        known = {word: token for token, word in enumerate(self.words)}
        words = text.replace(STOP, f" {STOP} ").split()
        for word in words:
            if word not in known:
                raise ValueError(f"{word!r} is no word of these facts; they have {', '.join(self.words[FIRST_NAME:])}")
        return np.array([known[word] for word in words], dtype=np.int64)

    def decode(self, tokens) -> str:
        """The text of tokens."""
        return " ".join(self.words[int(token)] for token in tokens)

    def to_dict(self) -> dict:
        """For JSON and TOML."""
        return asdict(self) | {"people": list(self.people)}


@dataclass(frozen=True, eq=False)
class FactsDocument:
    """One document, and of each of its tokens what there was to know. All arrays (length + 1,).

    Attributes
    ----------
    tokens : int64
        They begin with the token of ``<bos>``; the last sentence may be cut.
    kind : int8
        ``OTHER``, or of an object: ``FIRST`` said for the first time, ``REPEAT`` said again, ``CHANGED`` after "now".
    distance : int64
        Of a ``REPEAT``, how many tokens ago its fact was said last (object to object); else 0.
    """

    tokens: np.ndarray
    kind: np.ndarray
    distance: np.ndarray


OTHER, FIRST, REPEAT, CHANGED = range(4)


def document(task: FactsTask, length: int, seed) -> FactsDocument:
    """A document of ``length`` tokens after ``<bos>``.

    Parameters
    ----------
    task : FactsTask
    length : int
        At least 1.
    seed : int or sequence of ints
        The same seed gives the same document; a longer one begins like a shorter one.

    Raises
    ------
    ValueError
        A length below 1.
    """
    length = whole_number("length", length, 1)
    rng = np.random.default_rng(seed)
    people = rng.choice(task.names, int(rng.integers(task.people[0], task.people[1] + 1)), replace=False)
    sentences = -(-length // SENTENCE)
    item = rng.integers(task.objects, size=(task.names, task.verbs))  # facts at the beginning, said or not
    dice = rng.random((sentences, 4))  # a row a sentence, so that a longer document begins like a shorter one
    who = people[(dice[:, 0] * len(people)).astype(np.int64)]
    verbs = (dice[:, 1] * task.verbs).astype(np.int64)
    changes = dice[:, 2] < task.change
    steps = 1 + (dice[:, 3] * (task.objects - 1)).astype(np.int64)  # to another object, should the fact change
    tokens, kind, distance = [BEGIN_TOKEN], [OTHER], [0]
    said: dict[tuple[int, int], int] = {}
    for name, verb, changed, step in zip(who.tolist(), verbs.tolist(), changes.tolist(), steps.tolist(), strict=True):
        tokens.append(task.name_token(name))
        if changed:
            item[name, verb] = (item[name, verb] + step) % task.objects
            tokens.append(NOW_TOKEN)
        tokens += [task.verb_token(verb), task.object_token(verb, int(item[name, verb])), STOP_TOKEN]
        place, last = len(tokens) - 2, said.get((name, verb))
        new = [OTHER] * (3 + changed)
        new.insert(2 + changed, CHANGED if changed else FIRST if last is None else REPEAT)
        kind += new
        distance += [place - last if what == REPEAT else 0 for what in new] if last is not None else [0] * len(new)
        said[name, verb] = place
    stop = length + 1
    return FactsDocument(
        np.array(tokens[:stop], np.int64), np.array(kind[:stop], np.int8), np.array(distance[:stop], np.int64)
    )


def documents(task: FactsTask, length: int, seed: int, first: int = 0) -> Iterator[FactsDocument]:
    """Documents number ``first``, first + 1, … of a seed, without end; document n depends on (seed, n) alone."""
    number = first
    while True:
        yield document(task, length, [seed, number])
        number += 1
