"""A file that a person gave, as both front ends hand it over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Uploaded:
    """A file's name and its bytes."""

    name: str
    data: bytes
