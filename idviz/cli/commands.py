"""The commands app, lab, doctor, bench and sizes; those that train and measure come from :mod:`idviz.cli.lab`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

import idviz
from idviz.cli import lab as measuring
from idviz.cli.parts import fail, file_to_write, plainly

app = typer.Typer(
    name="idviz",
    help="Step through Interdomain Attention: notebooks and live pictures.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"idviz {idviz.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _serve(command: list[str]) -> None:
    """Run a server until it ends or Ctrl-C, and exit with its code."""
    # idviz multiplies many small matrices; BLAS threads that wait for each other would make that ten times slower.
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    try:
        code = subprocess.run(command, check=False, env=environment).returncode
    except KeyboardInterrupt:
        code = 0
    raise typer.Exit(code)


Port = Annotated[int | None, typer.Option(min=1024, max=65535, help="Port on this machine; a free one if left out.")]


@app.command("app")
def app_command(
    port: Port = None,
    browser: Annotated[bool, typer.Option(help="Open it in your browser.")] = True,
) -> None:
    """Serve the Streamlit app, on this machine only, and open it in your browser."""
    from idviz.cli.app_server import command, open_when_ready
    from idviz.cli.ports import free_port

    try:
        port = free_port() if port is None else port
        line = command(port)
    except (ValueError, FileNotFoundError) as error:
        raise fail(error) from None
    if browser:
        threading.Thread(target=open_when_ready, args=(port,), daemon=True).start()
    _serve(line)


@app.command()
def lab(
    port: Port = None,
    folder: Annotated[Path | None, typer.Option(help="Where an installed idviz puts the notebooks.")] = None,
) -> None:
    """Open JupyterLab with the course, on this machine only."""
    from idviz.cli.lab_server import command

    try:
        line = command(port, folder=folder)
    except ValueError as error:
        raise fail(error) from None
    _serve(line)


@app.command()
def doctor() -> None:
    """Check the installation, and say what to do where something does not work."""
    from idviz.cli.doctor import report

    raise typer.Exit(report())


@app.command()
def bench(
    only: Annotated[str | None, typer.Option(help="Run one part: exact, ui, learned or training.")] = None,
    json: Annotated[
        Path | None, typer.Option(help="Also write the numbers to this file, with how they were measured.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where the learned half runs: cpu, cuda or auto.")] = "cpu",
) -> None:
    """Measure speed, as ratios beside their goals; the exit code is 1 where a goal is missed."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy loads: ratios of single threads are steady
    from idviz.bench.table import run

    try:
        missed = run(only=only, json_path=file_to_write(json), device=device)
    except ValueError as error:
        raise fail(error) from None
    raise typer.Exit(1 if missed else 0)


@app.command()
def sizes() -> None:
    """Print the decoder's sizes: parameters and state of every mixer at every scale."""
    with plainly("the learned half"):
        from idviz.cli import tables
        from idviz.learned import presets

        tables.sizes(presets.sizes())


app.add_typer(measuring.commands)


def main() -> None:
    """Entry point."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
