"""Files that are whole or not there, and plain words where they are not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a small file, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_text(text, "utf-8")
    flush(unfinished)
    unfinished.replace(path)


@contextmanager
def reading(what: str, file: Path) -> Iterator[None]:
    """Say in a ``ValueError`` what a file is, and that it is missing or damaged."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{what} {str(file)!r} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{what} {str(file)!r} is damaged: {error!r}") from None


def flush(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some file systems cannot flush a folder
        if not path.is_dir():
            raise
    finally:
        os.close(handle)
