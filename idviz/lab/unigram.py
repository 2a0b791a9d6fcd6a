"""The model that knows no context, only how often each token occurs. Its length curve must be flat."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from idviz.learned.checks import as_tokens, whole_number
from idviz.learned.decoder import check_vocabulary


class Unigram(nn.Module):
    """p(token) = (count + 1)/(tokens + V), whatever came before; ``forward`` takes what the Decoder's takes.

    Counts in ``tokens`` (T,) int; an empty text makes every token of the V = ``vocabulary`` equally likely. Raises
    ``ValueError`` for tokens that are not whole numbers in one row, or outside the vocabulary.
    """

    def __init__(self, tokens, vocabulary: int):
        super().__init__()
        V = whole_number("vocabulary", vocabulary)
        tokens = as_tokens("tokens", tokens)
        if tokens.ndim != 1 or (len(tokens) and tokens.dtype not in (torch.int32, torch.int64)):
            raise ValueError(
                f"tokens must be whole numbers in one row, not {tokens.dtype} of shape {tuple(tokens.shape)}"
            )
        tokens = tokens.long()
        check_vocabulary(tokens, V)
        counts = torch.bincount(tokens, minlength=V).double() + 1
        self.vocabulary = V
        self.register_buffer("log_p", (counts / counts.sum()).log())

    log_p: Tensor

    @property
    def device(self) -> torch.device:
        return self.log_p.device

    def forward(self, tokens: Tensor, state=None, *, chunk: int | None = None, last_only: bool = False):
        """The same logits (B, T, V) at every position, (B, 1, V) with ``last_only``, and an empty state."""
        check_vocabulary(tokens, self.vocabulary)
        batch, T = tokens.shape
        return self.log_p.expand(batch, 1 if last_only else T, -1), ()
