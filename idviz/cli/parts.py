"""Parts of several commands: errors as one plain line and an exit code, lists on the command line, progress bars."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from idviz.needs import needing


def fail(message: object, code: int = 2) -> typer.Exit:
    """Print an error; the caller raises what is returned."""
    typer.echo(f"idviz: {message}", err=True)
    return typer.Exit(code)


@contextmanager
def plainly(what: str) -> Iterator[None]:
    """Turn a command's expected errors (package, value, file, loss that is not finite, Ctrl-C) into one plain line.

    ``what`` needs the packages that the command imports.
    """
    try:
        with needing(what):
            yield
    except ValueError as error:
        raise fail(error) from None
    except OSError as error:
        if error.errno == errno.EPIPE or error.strerror is None:  # a closed pipe, which typer handles
            raise
        raise fail(f"{str(error.filename)!r}: {error.strerror}" if error.filename else error.strerror) from None
    except ArithmeticError as error:
        from idviz.lab.training import NotFinite  # loaded already, if this is one

        if not isinstance(error, NotFinite):
            raise
        raise fail(error, 1) from None
    except KeyboardInterrupt:
        raise fail("stopped", 130) from None


def file_to_write(path: Path | None, option: str = "--json") -> Path | None:
    """The same path, refused before any work if it cannot be written to."""
    if path is not None and (not path.parent.is_dir() or path.is_dir()):
        raise ValueError(f"{option} must name a file in a folder that exists, not {str(path)!r}")
    return path


def numbers(name: str, text: str) -> list[int]:
    """The list in an option such as ``--contexts 64,256``."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--{name} must be whole numbers with commas between, such as 64,256, not {text!r}") from None


def part_of_runs(part: str) -> tuple[int, int]:
    """The two numbers in ``--part 1/2``."""
    number, slash, of = part.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise ValueError(f"--part must be such as 1/2: a number from 1, a slash, and how many there are, not {part!r}")
    return int(number), int(of)


@contextmanager
def bar(unit: str, name: str = "") -> Iterator:
    """A bar on stderr that ``progress(done, total)`` moves; none where stderr is no terminal."""
    with named_bars(unit) as bars:
        yield bars(name)


@contextmanager
def named_bars(unit: str) -> Iterator:
    """Named bars one after another; each is moved by ``progress(done, total, loss)``; the loss may be left out."""
    from tqdm import tqdm

    shown = []

    def begin(name: str):
        while shown:
            shown.pop().close()
        shows = tqdm(desc=name or None, unit=f" {unit}", disable=not sys.stderr.isatty(), dynamic_ncols=True)
        shown.append(shows)

        def progress(done: int, total: int, loss: float | None = None) -> None:
            shows.total = total
            if loss is not None:
                shows.set_postfix_str(f"loss {loss:.3f} nats", refresh=False)
            shows.update(done - shows.n)

        return progress

    try:
        yield begin
    finally:
        while shown:
            shown.pop().close()
