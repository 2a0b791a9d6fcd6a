"""The ideal reader of facts: the exact probability of every next token, given what it has read and how facts are made.

It knows how :mod:`idviz.samples.facts` makes documents, but nothing of this one beyond the tokens read. What it has
seen said is certain; an object not yet said is uniform over the verb's; the people are inferred from the names so far.
No model can have a lower expected loss.

Reading may begin in the middle of a document, even of a sentence. Then the first, cut sentence may say that *somebody*
plays the harp: the reader keeps the probability of each name for that somebody, and updates it by Bayes' rule.
"""

from __future__ import annotations

from math import comb

import numpy as np

from idviz.samples.facts import BEGIN_TOKEN, FIRST_NAME, NOW, NOW_TOKEN, STOP_TOKEN, FactsTask


class IdealReader:
    """Reads tokens one by one; :meth:`probabilities` gives the next one's.

    Parameters
    ----------
    task : FactsTask
        How the documents are made.
    """

    def __init__(self, task: FactsTask):
        self.task = task
        sizes = range(task.people[0], task.people[1] + 1)
        self._sizes = np.array(sizes, dtype=np.float64)
        # P(a given set of s distinct names is among the K people), times P(K)
        self._among = np.array(
            [[comb(task.names - s, k - s) / comb(task.names, k) if s <= k else 0.0 for k in sizes]
             for s in range(task.people[1] + 2)]
        ) / len(sizes)  # fmt: skip
        self._begin()

    def _begin(self) -> None:
        self.said: dict[tuple[int, int], int] = {}  # (name, verb) -> object, as said last
        self._draws = np.zeros(self.task.names, np.int64)  # how often each name was read
        self._name: int | None = None  # of the sentence being read
        self._verb: int | None = None
        self._now = False
        self._place = "unknown"  # the next token is a "name", "verb", "object", "stop", or nothing is known
        self._somebody: tuple[int, int] | None = None  # (verb, object) of the cut sentence
        self._log_fit = np.zeros(self.task.names)  # log P(later sentences | somebody is this name), up to a constant

    # -- reading ------------------------------------------------------------------------------------------------------
    def read(self, token: int) -> None:
        """Take in the next token.

        Raises
        ------
        ValueError
            A token outside the vocabulary, one that cannot follow, or more people than a document has.
        """
        task = self.task
        if not 0 <= token < task.vocabulary:
            raise ValueError(f"token must be from 0 to {task.vocabulary - 1}, not {token}")
        if token == BEGIN_TOKEN:
            self._begin()
            self._place = "name"
        elif token == STOP_TOKEN:
            self._expect(token, "stop")
            self._place, self._name, self._verb, self._now = "name", None, None, False
        elif token == NOW_TOKEN:
            self._expect(token, "verb")
            if self._now:
                raise ValueError(f"{NOW!r} cannot stand twice in a sentence")
            self._place, self._now = "verb", True
        elif token < task.first_verb:
            self._expect(token, "name")
            self._read_name(token - FIRST_NAME)
            self._now, self._place = False, "verb"
        elif token < task.first_object:
            self._expect(token, "verb")
            self._verb, self._place = token - task.first_verb, "object"
        else:
            self._expect(token, "object")
            self._read_object(*divmod(token - task.first_object, task.objects))
            self._place = "stop"

    def _expect(self, token: int, place: str) -> None:
        if self._place not in (place, "unknown"):
            raise ValueError(f"{self.task.words[token]!r} cannot stand where a {self._place} is due")

    def _read_name(self, name: int) -> None:
        most = self.task.people[1]
        if not self._draws[name] and np.count_nonzero(self._draws) == most:
            new = self.task.words[self.task.name_token(name)]
            raise ValueError(f"{new!r} is one name too many: a document of these facts has at most {most} people")
        self._name = name
        self._draws[name] += 1

    def _read_object(self, verb: int, item: int) -> None:
        if self._verb is not None and verb != self._verb:
            raise ValueError(f"{self.task.words[self.task.object_token(verb, item)]!r} belongs to another verb")
        if self._name is None:
            self._somebody = (verb, item)
            return
        key = (self._name, verb)
        if key not in self.said and self._somebody is not None and verb == self._somebody[0]:
            chance = self._object(self._somebody[1])[item]  # where this is somebody
            fit = np.full(self.task.names, 1.0 / self.task.objects)
            fit[self._name] = chance
            with np.errstate(divide="ignore"):
                fit = self._log_fit + np.log(fit)
            if not np.isfinite(fit).any():
                raise ValueError(f"{self.task.words[self.task.object_token(verb, item)]!r} contradicts what was read")
            self._log_fit = fit
        self.said[key] = item

    # -- what comes next ----------------------------------------------------------------------------------------------
    def probabilities(self) -> np.ndarray:
        """(V,) float64, they sum to 1."""
        task = self.task
        out = np.zeros(task.vocabulary)
        if self._place == "unknown":
            return self._anywhere(out)
        if self._place == "name":
            out[FIRST_NAME : task.first_verb] = self._names()
        elif self._place == "verb":
            out[NOW_TOKEN] = 0.0 if self._now else task.change
            out[task.first_verb : task.first_object] = (1.0 - out[NOW_TOKEN]) / task.verbs
        elif self._place == "object":
            assert self._verb is not None
            begin = task.object_token(self._verb, 0)
            out[begin : begin + task.objects] = self._objects()
        else:
            out[STOP_TOKEN] = 1.0
        return out

    def _anywhere(self, out: np.ndarray) -> np.ndarray:
        """Nothing read: a place drawn at random far into a document."""
        task = self.task
        out[FIRST_NAME : task.first_verb] = 1.0 / task.names
        out[NOW_TOKEN] = task.change
        out[STOP_TOKEN] = 1.0
        out[task.first_verb : task.first_object] = 1.0 / task.verbs
        out[task.first_object :] = 1.0 / (task.verbs * task.objects)
        return out / (4.0 + task.change)

    def _object(self, current: int | None) -> np.ndarray:
        """The object of the sentence being read, if its fact stands at ``current`` (None: not known)."""
        size = self.task.objects
        if current is None:
            return np.full(size, 1.0 / size)
        out = np.zeros(size)
        if self._now:
            out[:] = 1.0 / (size - 1)
            out[current] = 0.0
        else:
            out[current] = 1.0
        return out

    def _objects(self) -> np.ndarray:
        if self._name is None or self._verb is None:
            return self._object(None)
        known = self.said.get((self._name, self._verb))
        if known is not None or self._somebody is None or self._somebody[0] != self._verb:
            return self._object(known)
        is_somebody = self._somebody_is()[self._name]
        return is_somebody * self._object(self._somebody[1]) + (1.0 - is_somebody) * self._object(None)

    def _log_people(self, seen: int, draws: int) -> np.ndarray:
        """(K,) log P(number of people, a given sequence of ``draws`` names of which ``seen`` differ)."""
        with np.errstate(divide="ignore"):
            return np.log(self._among[seen]) - draws * np.log(self._sizes)

    def _somebody_is(self) -> np.ndarray:
        """(names,) posterior of whose the cut sentence was."""
        seen, draws = int(np.count_nonzero(self._draws)), int(self._draws.sum()) + 1
        known, new = (np.logaddexp.reduce(self._log_people(size, draws)) for size in (seen, seen + 1))
        log_weight = np.where(self._draws > 0, known, new) + self._log_fit
        weight = np.exp(log_weight - log_weight.max())
        return weight / weight.sum()

    def _names(self) -> np.ndarray:
        """(names,) of the next sentence's."""
        if self._somebody is None:
            return self._names_given(None)
        somebody = self._somebody_is()
        return sum(
            (chance * self._names_given(name) for name, chance in enumerate(somebody) if chance > 0),
            np.zeros(self.task.names),
        )

    def _names_given(self, somebody: int | None) -> np.ndarray:
        draws = self._draws > 0
        if somebody is not None:
            draws = draws.copy()
            draws[somebody] = True
        seen = int(draws.sum())
        count = int(self._draws.sum()) + (somebody is not None)
        log_weight = self._log_people(seen, count)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        again = float((weight / self._sizes).sum())
        rest = 1.0 - seen * again
        fresh = max(rest, 0.0) / (self.task.names - seen) if seen < self.task.names else 0.0
        return np.where(draws, again, fresh)


def read_all(task: FactsTask, tokens) -> np.ndarray:
    """Probabilities (T, V) of what follows each of the tokens (T,), reading begun at the first of them."""
    reader, out = IdealReader(task), np.empty((len(tokens), task.vocabulary))
    for place, token in enumerate(tokens):
        reader.read(int(token))
        out[place] = reader.probabilities()
    return out
