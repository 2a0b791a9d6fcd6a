"""The controls of an explorable: what a person can set, within which limits, and how it is written in a URL."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from idviz.samples.files import Uploaded
from idviz.words import file_size

Values = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Control:
    """What all controls have: a ``name`` (a Python identifier), a ``label``, a ``help`` text.

    Controls that are not ``main`` are folded away under "More". ``disabled(values)`` may look at all values; it returns
    None, or the reason why the control means nothing at present. A control that is not ``linkable`` stays out of URLs.

    The methods get the values of earlier controls as ``values``, because limits may depend on them.
    """

    name: str
    label: str
    help: str = ""
    main: bool = True
    disabled: Callable[[Values], str | None] | None = None
    linkable = True

    def why_disabled(self, values: Values) -> str | None:
        """The reason why the control means nothing at present, or None."""
        return self.disabled(values) if self.disabled is not None else None

    def initial(self, values: Values) -> Any:
        """The default."""
        raise NotImplementedError

    def check(self, value: Any, values: Values) -> Any:
        """The value in canonical form. Raises ``ValueError`` naming it and what is allowed."""
        raise NotImplementedError

    def nearest(self, value: Any, values: Values) -> Any:
        """The value to use instead of one that :meth:`check` refused."""
        return self.initial(values)

    def parse(self, text: str) -> Any:
        """The value, still unchecked, that a URL parameter stands for."""
        return text

    def format(self, value: Any) -> str:
        """The value as a URL parameter."""
        return str(value)

    def show(self, value: Any) -> str:
        """The value as people read it."""
        return self.format(value)


@dataclass(frozen=True, kw_only=True)
class Slider(Control):
    """A number from ``minimum`` to ``maximum`` in steps: an integer where ``step`` is one, else a float.

    ``upper(values)`` lowers the maximum, depending on earlier controls. ``default=None`` means the maximum.
    """

    minimum: float = 1
    maximum: float = 100
    default: float | None = None
    step: float = 1
    unit: str = ""
    upper: Callable[[Values], float] | None = None

    @property
    def integral(self) -> bool:
        return isinstance(self.step, int)

    def limits(self, values: Values) -> tuple[float, float]:
        """Minimum and maximum at present; equal when there is nothing to choose (front ends then disable it)."""
        high = self.maximum if self.upper is None else min(self.maximum, self.upper(values))
        return self.minimum, max(self.minimum, high)

    def initial(self, values: Values) -> float:
        low, high = self.limits(values)
        return high if self.default is None else min(max(self.default, low), high)

    def check(self, value: Any, values: Values) -> float:
        low, high = self.limits(values)
        allowed = f"{self.label} must be {'a whole number' if self.integral else 'a number'} from {low} to {high}"
        unit = f" {self.unit}" if self.unit else ""
        unit += f" in steps of {self.step}" if self.integral and self.step > 1 else ""
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise ValueError(f"{allowed}{unit}, not {value!r}.") from None
        if not math.isfinite(number) or (self.integral and number != int(number)) or not low <= number <= high:
            shown = f"{value:.12g}" if isinstance(value, float) else value
            raise ValueError(f"{allowed}{unit}, not {shown}.")
        if self.integral and (number - low) % self.step:
            raise ValueError(f"{allowed}{unit}, not {number:.12g}.")
        if self.integral:
            return int(number)
        on_grid = round(round((number - low) / self.step) * self.step + low, 12)  # 0.3, not 0.30000000000000004
        return min(max(on_grid, low), high)

    def nearest(self, value: Any, values: Values) -> float:
        low, high = self.limits(values)
        try:
            number = float(value)
        except (TypeError, ValueError):
            return self.initial(values)
        if not math.isfinite(number):
            return self.initial(values)
        number = min(max(number, low), high)
        if self.integral:
            return int(low + min(round((number - low) / self.step), (high - low) // self.step) * self.step)
        return self.check(number, values)

    def parse(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"{self.label} must be a number, not {text[:40]!r}.") from None

    def format(self, value: float) -> str:
        return str(int(value)) if self.integral else f"{value:.12g}"

    def show(self, value: float) -> str:
        one = value == 1 and self.unit.endswith("s")  # "1 sample"
        return f"{self.format(value)} {self.unit[:-1] if one else self.unit}".strip()


@dataclass(frozen=True, kw_only=True)
class Choice(Control):
    """One of ``options``: pairs (value, label). The default is the first unless ``default`` names another."""

    options: tuple[tuple[str, str], ...] = ()
    default: str | None = None

    def initial(self, values: Values) -> str:
        return self.options[0][0] if self.default is None else self.default

    def check(self, value: Any, values: Values) -> str:
        known = [option for option, _ in self.options]
        if value not in known:
            raise ValueError(f"{self.label} must be one of {', '.join(known)}, not {str(value)[:40]!r}.")
        return value

    def show(self, value: str) -> str:
        return dict(self.options)[value]


@dataclass(frozen=True, kw_only=True)
class TextInput(Control):
    """A person's own text, up to ``max_length`` characters. Longer, empty, or unusable text is refused by name."""

    default: str = ""
    max_length: int = 2000
    multiline: bool = True
    may_be_empty: bool = False

    def initial(self, values: Values) -> str:
        return self.default

    def check(self, value: Any, values: Values) -> str:
        if not isinstance(value, str):
            raise ValueError(f"{self.label} must be text, not {type(value).__name__}.")
        if not value.strip() and not self.may_be_empty:
            raise ValueError(f"{self.label} is empty; type at least one character that is not a space.")
        if len(value) > self.max_length:
            raise ValueError(
                f"{self.label} has {len(value):,} characters; at most {self.max_length:,} can be shown at once."
            )
        return value

    def nearest(self, value: Any, values: Values) -> str:
        if isinstance(value, str) and len(value) > self.max_length:
            return value[: self.max_length]
        return self.initial(values)

    def show(self, value: str) -> str:
        return f"“{value[:30]}…”" if len(value) > 30 else f"“{value}”"


@dataclass(frozen=True, kw_only=True)
class Upload(Control):
    """A file, or None. Only its suffix and its size are checked here, its content by ``compute``."""

    suffixes: tuple[str, ...] = (".csv", ".txt")
    max_bytes: int = 20_000_000
    linkable = False

    def initial(self, values: Values) -> None:
        return None

    def check(self, value: Any, values: Values) -> Uploaded:
        if not isinstance(value, Uploaded):
            raise ValueError(f"{self.label} must be an uploaded file, not {type(value).__name__}.")
        if not value.name.lower().endswith(self.suffixes):
            raise ValueError(f"{self.label} must end in {' or '.join(self.suffixes)}, not {value.name!r}.")
        if len(value.data) > self.max_bytes:
            size, most = file_size(len(value.data)), file_size(self.max_bytes)
            raise ValueError(f"{self.label} is {size}; at most {most} can be read.")
        return value

    def show(self, value: Uploaded | None) -> str:
        return "no file" if value is None else value.name
