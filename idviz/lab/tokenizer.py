"""Tokens of a text, and the text back from them, by the ``tokenizers`` library.

Byte-level byte-pair encoding has tokens for every text. Where a text is made of a few known words, a word is a token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from idviz.exact.checks import whole_number
from idviz.lab.files import write_text

BYTES = 256


@lru_cache(maxsize=1)
def _alphabet() -> dict[str, int]:
    """The letters that stand for bytes in a byte-level vocabulary; printable bytes stand for themselves."""
    prints = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(BYTES) if byte not in prints]
    return {chr(byte): byte for byte in prints} | {chr(BYTES + n): byte for n, byte in enumerate(others)}


class Tokenizer:
    """Text to tokens and back, with ``vocabulary`` different tokens.

    Made by :meth:`train` (bytes and pairs), :meth:`of_words` (whole words) or :meth:`load` (either).
    """

    def __init__(self, inner: tokenizers.Tokenizer):
        self._inner = inner
        self.words = isinstance(inner.model, models.WordLevel)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self._inner.to_str() == other._inner.to_str()

    def __hash__(self) -> int:
        return hash(self._inner.to_str())

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int = 1024) -> Tokenizer:
        """Learn a vocabulary: the 256 bytes, then merges of the commonest pairs, as long as the text has any.

        Raises ``ValueError`` for a vocabulary under 256.
        """
        vocabulary = whole_number("vocabulary", vocabulary, BYTES)
        inner = tokenizers.Tokenizer(models.BPE())
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            special_tokens=[],
            show_progress=False,
        )
        inner.train_from_iterator(texts, trainer)
        return cls(inner)

    @classmethod
    def of_words(cls, words: Sequence[str], *, mark: str = ".") -> Tokenizer:
        """One token a word, in the order given; white space separates words, and ``mark`` may stand at a word's end.

        Raises ``ValueError`` for a word that comes twice, is empty, or has white space in it.
        """
        for n, word in enumerate(words):
            if not isinstance(word, str) or len(word.split()) != 1 or word.strip() != word or word in words[:n]:
                raise ValueError(f"words must be different from one another, each one word, not {word!r}")
        known = {word: n for n, word in enumerate(words)}
        inner = tokenizers.Tokenizer(models.WordLevel(known))
        apart = pre_tokenizers.Split(mark, "isolated")
        inner.pre_tokenizer = pre_tokenizers.Sequence([apart, pre_tokenizers.WhitespaceSplit()])
        return cls(inner)

    @classmethod
    def load(cls, path: str | Path) -> Tokenizer:
        """Read one JSON file. Raises ``ValueError`` where it is missing, or neither byte-level nor of words."""
        try:
            text = Path(path).read_text("utf-8")
            inner = tokenizers.Tokenizer.from_str(text)
        except OSError as error:
            raise ValueError(f"tokenizer {str(path)!r} cannot be read: {error.strerror}") from None
        except Exception as error:  # the library raises plain Exception for JSON that it cannot use
            raise ValueError(f"tokenizer {str(path)!r} is not a tokenizer's JSON: {error}") from None
        if isinstance(inner.model, models.WordLevel):
            known = inner.get_vocab()
            ours = cls.of_words(sorted(known, key=known.__getitem__))
            if ours._inner.to_str() == inner.to_str():
                return ours
        missing = set(pre_tokenizers.ByteLevel.alphabet()) - inner.get_vocab().keys()
        if missing or not isinstance(inner.pre_tokenizer, pre_tokenizers.ByteLevel):
            raise ValueError(f"tokenizer {str(path)!r} is not byte-level: it would not give back every text")
        return cls(inner)

    def save(self, path: str | Path) -> None:
        """Write one JSON file, whole or not at all."""
        write_text(Path(path), self._inner.to_str(pretty=True))

    @property
    def opening(self) -> str:
        """A text to begin from where there is no prompt: a new line; of words, the stop before a sentence."""
        return "." if self.words else "\n"

    @property
    def vocabulary(self) -> int:
        return self._inner.get_vocab_size()

    def encode(self, text: str) -> np.ndarray:
        """(N,) int64 tokens.

        Raises ``ValueError`` for anything but text, half a surrogate pair, and a word without a token.
        """
        if not isinstance(text, str):
            raise ValueError(f"text must be a string, not {type(text).__name__}")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"text has half a surrogate pair at position {error.start}, which UTF-8 lacks") from None
        if self.words:
            self._known(text)
        return np.array(self._inner.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def encode_all(self, texts: Sequence[str]) -> list[np.ndarray]:
        """:meth:`encode` for many texts, on all cores, without its checks: texts from files are UTF-8 already."""
        encodings = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        """The text; a broken UTF-8 character at an edge becomes U+FFFD. Raises ``ValueError`` for unknown tokens."""
        tokens = [int(token) for token in tokens]
        for n, token in enumerate(tokens):
            if not 0 <= token < self.vocabulary:
                raise ValueError(f"tokens must be from 0 to {self.vocabulary - 1}, not {token} at position {n}")
        return self._inner.decode(tokens, skip_special_tokens=False)

    def _known(self, text: str) -> None:
        known = self._inner.get_vocab()
        for word, _ in self._inner.pre_tokenizer.pre_tokenize_str(text):
            if word not in known:
                listed = ", ".join(sorted(known, key=known.__getitem__))
                raise ValueError(f"{word!r} is no word of this model's; it knows {listed}")

    def count_bytes(self, tokens: Sequence[int] | np.ndarray) -> int:
        """Number of bytes that tokens stand for; parts of characters at the edges count with the bytes they have."""
        kinds, counts = np.unique(np.asarray(tokens, dtype=np.int64), return_counts=True)
        return sum(len(self.bytes_of(int(kind))) * int(count) for kind, count in zip(kinds, counts, strict=True))

    def bytes_of(self, token: int) -> bytes:
        """The bytes of a token, not always a whole character; of a word, with the space after it.

        Raises ``ValueError`` for an unknown token.
        """
        token = whole_number("token", token, 0, self.vocabulary - 1)
        if self.words:
            return f"{self._inner.id_to_token(token)} ".encode()
        return bytes(_alphabet()[letter] for letter in self._inner.id_to_token(token))
