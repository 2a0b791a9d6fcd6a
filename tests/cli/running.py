"""Commands run in this process, as a person would type them."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from idviz.cli import app


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(*arguments, code=2):
    """The message, on one line; nothing but a plain exit."""
    done = run(*arguments)
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    assert isinstance(done.exception, SystemExit)
    assert done.stdout == ""
    return " ".join(done.stderr.split())


def tree(folder: Path) -> dict:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
