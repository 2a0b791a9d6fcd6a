"""Settings that pydantic checks, with errors in our own words: the name, the value, and what is allowed."""

from __future__ import annotations

import dataclasses
import difflib
import operator
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin

from annotated_types import Ge, Le, MinLen, Predicate
from pydantic import BeforeValidator, ConfigDict, Strict, ValidationError
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

Class = TypeVar("Class", bound=type)
_RULES = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)  # strict: neither True nor "16" is a number


def _as_whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, bool) or not hasattr(value, "__index__") else operator.index(value)


# -- types of keys ----------------------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Allowed:
    """What a key may be, in words; without it, the words follow from the key's type and bounds."""

    words: str


class OneOf(Predicate, Allowed):
    """One of some names."""

    def __init__(self, names: Iterable[str]):
        known = tuple(names)
        Predicate.__init__(self, lambda name: name in known)
        Allowed.__init__(self, f"one of {', '.join(known)}")


AtLeast1 = Annotated[int, Ge(1)]
Whole = Annotated[int, BeforeValidator(_as_whole)]  # 4e3 and NumPy's integers pass, too
Count = Annotated[Whole, Ge(1)]
NotNegative = Annotated[Whole, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]
Seeds = Annotated[
    tuple[NotNegative, ...],
    Strict(False),
    MinLen(1),
    Predicate(lambda seeds: len(set(seeds)) == len(seeds)),
    Allowed("a list of at least one whole number from 0, no two the same"),
]
Text = Annotated[str, Predicate(lambda text: bool(text.strip())), Allowed("a text that is not empty")]
Table = Annotated[dict[str, Any], Predicate(lambda table: None not in table.values()), Allowed("a table")]
Variants = Annotated[dict[str, dict[str, Any]], MinLen(1), Allowed("at least one table [variants.NAME]")]


# -- classes ----------------------------------------------------------------------------------------------------------
@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def settings(table: str = "") -> Callable[[Class], Class]:
    """Class decorator: a frozen pydantic dataclass whose ``ValueError`` is a sentence for people.

    ``table`` is the TOML table that its keys stand in.
    """

    def decorate(cls: Class) -> Class:
        made: Any = dataclass(frozen=True, config=_RULES)(cls)
        validate = made.__init__

        def __init__(self, /, *values, **named):
            try:
                validate(self, *values, **named)
            except ValidationError as error:
                given = dict(zip(made.__pydantic_fields__, values, strict=False)) | named
                raise ValueError(_sentence(error, made.__pydantic_fields__, given, table)) from None

        made.__init__ = __init__
        return made

    return decorate


@contextmanager
def named(what: str) -> Iterator[None]:
    """Put a file's or a table's name before the message of a ``ValueError``."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The values in a TOML file. Raises ``ValueError``, naming ``what`` it is, where it is missing or no TOML."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ValueError(f"{what} {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise ValueError(f"{what} {str(path)!r} is not TOML: {error}") from None


def _sentence(error: ValidationError, fields: dict[str, FieldInfo], given: dict[str, Any], table: str) -> str:
    """The first of pydantic's errors in our words; unknown keys come before wrong values."""
    wrong = min(error.errors(include_url=False), key=lambda wrong: wrong["type"] != "unexpected_keyword_argument")
    place = wrong["loc"]
    if not place:  # a check of several keys together, whose words are ours already
        return str(wrong["ctx"]["error"])
    key = place[0] if isinstance(place[0], str) else [*fields, "…"][min(place[0], len(fields))]
    if key not in fields:
        return f"{table}: {_unknown(key, given, fields)}" if table else _unknown(key, given, fields)
    value, allowed, name = given.get(key), _allowed(fields[key]), f"{table}.{key}" if table else key
    if wrong["type"] == "missing":
        return f"{name} is missing; it must be {allowed}"
    if wrong["type"] == "dict_type" and len(place) > 1:  # a table of tables
        value, allowed, name = wrong["input"], "a table", ".".join(map(str, place))
    return f"{name} must be {allowed}, not {value!r}"


def _unknown(key: str, given: dict[str, Any], fields: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, fields, 1)
    hint = f"; did you mean {near[0]}?" if near else "."
    return f"unknown key {key!r} (value {given.get(key)!r}){hint} Known: {', '.join(fields)}"


def _allowed(field: FieldInfo) -> str:
    """What a key may be, in words."""
    kind, metadata = field.annotation, field.metadata
    while get_origin(kind) in (Annotated, Union, UnionType):  # X | None, Annotated[X, …]
        kind, *further = get_args(kind)
        metadata = [*further, *metadata]
    for part in reversed(metadata):
        if isinstance(part, Allowed):
            return part.words
    bound = {name: getattr(part, name) for part in metadata for name in ("gt", "ge", "le") if hasattr(part, name)}
    if kind is bool:
        return "true or false"
    noun = "a whole number" if kind is int else "a number"
    low = f"above {bound['gt']:g}" if "gt" in bound else f"from {bound['ge']:g}"
    if "le" not in bound:
        return f"{noun} of at least {bound['ge']:g}"
    high = f"{bound['le']:,}" if kind is int else f"{bound['le']:g}"
    return f"{noun} {low} {'up to' if 'gt' in bound else 'to'} {high}"
