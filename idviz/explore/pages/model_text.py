"""A text box with a limit in tokens of the chosen model."""

from __future__ import annotations

from dataclasses import dataclass

from idviz.explore.controls import TextInput, Values
from idviz.numbers.trained_models import encoded, tokenizer


@dataclass(frozen=True, kw_only=True)
class ModelText(TextInput):
    """A text of at most ``tokens`` tokens of the model in the control ``model``."""

    tokens: int = 256

    def check(self, value, values: Values) -> str:
        value = super().check(value, values)
        count = self._count(value, values)
        if count > self.tokens:
            raise ValueError(
                f"{self.label} has {count:,} tokens of this model; at most {self.tokens} can be shown at once."
            )
        return value

    def nearest(self, value, values: Values) -> str:
        if not isinstance(value, str) or not value.strip():
            return self.initial(values)
        value = value[: self.max_length]
        try:
            kept = encoded(values["model"], value)[: self.tokens]
            shorter = tokenizer(values["model"]).decode(kept).rstrip("\ufffd")  # half a character at the cut
            return self.check(shorter, values)
        except ValueError:
            return self.initial(values)

    @staticmethod
    def _count(value: str, values: Values) -> int:
        try:
            return len(encoded(values["model"], value)) if value else 0
        except ValueError as error:
            if "surrogate" in str(error):
                raise
            return 0  # no tokenizer is installed: ``compute`` says so
