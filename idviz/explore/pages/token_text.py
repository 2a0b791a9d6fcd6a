"""A text box whose text must also fit as characters or words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from idviz.explore.controls import TextInput, Values
from idviz.numbers.query import text_tokens
from idviz.samples.text import MAX_TOKENS


@dataclass(frozen=True, kw_only=True)
class TokenText(TextInput):
    """A text that must also fit as tokens of the unit that the control ``source`` names; a needle has no text."""

    def check(self, value: Any, values: Values) -> str:
        if isinstance(value, str) and value.strip() and values["source"] != "needle":
            text_tokens(value, values["source"])
        return super().check(value, values)

    def nearest(self, value: Any, values: Values) -> str:
        if not isinstance(value, str) or not value.strip():
            return self.initial(values)
        value = value[: self.max_length]
        while True:  # fewer characters until they fit
            try:
                return self.check(value, values)
            except ValueError:
                if len(value) <= MAX_TOKENS:
                    return self.initial(values)
                value = value[: max(MAX_TOKENS, len(value) * 3 // 4)]
