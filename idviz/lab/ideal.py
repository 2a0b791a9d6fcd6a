"""The ideal reader of facts as a model: the floor under every model's loss (see :mod:`idviz.samples.ideal_reader`)."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from idviz.learned.decoder import check_vocabulary
from idviz.samples.facts import FactsTask
from idviz.samples.ideal_reader import IdealReader


class Ideal(nn.Module):
    """The exact log p(next token | the tokens read), for the documents of ``task``; called as the Decoder is."""

    def __init__(self, task: FactsTask):
        super().__init__()
        self.task = task
        self.vocabulary = task.vocabulary

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def forward(self, tokens: Tensor, state=None, *, chunk: int | None = None, last_only: bool = False):
        """Log probabilities (B, T, V) in float64, (B, 1, V) with ``last_only``; −∞ for what cannot come.

        The state is a tuple of readers, one a row. Without a state, reading begins at the first token, which may stand
        anywhere in a document.

        Raises ``ValueError`` for tokens outside the vocabulary, or in an order that no document of facts has.
        """
        check_vocabulary(tokens, self.vocabulary)
        batch, length = tokens.shape
        readers = [IdealReader(self.task) for _ in range(batch)] if state is None else copy.deepcopy([*state])
        out = np.empty((batch, 1 if last_only else length, self.vocabulary))
        for reader, row, into in zip(readers, tokens.tolist(), out, strict=True):
            for place, token in enumerate(row):
                reader.read(token)
                if not last_only:
                    into[place] = reader.probabilities()
            if last_only:
                into[0] = reader.probabilities()
        return torch.from_numpy(out).log(), tuple(readers)
