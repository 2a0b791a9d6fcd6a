"""A file that a person gave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Uploaded:
    """A file's name and its bytes."""

    name: str
    data: bytes
