"""Measured numbers in a notebook: read, or a message on how to make them; tables and means with their spread."""

from __future__ import annotations

import numpy as np
import pytest

from idviz.course import measured, table
from idviz.course.measured import COMMANDS, NotMeasured, with_range, with_spread
from idviz.lab.results import NAMES, write
from idviz.lab.studies import OverSeeds
from idviz.numbers import measured as results


def test_what_was_written_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    write(tmp_path / "length.json", {"tokens": 7, "targets": 3, "models": []}, made_by="a test")
    assert measured("length").tokens == 7 and measured("length").origin.made_by == "a test"


def test_every_result_has_its_command():
    assert set(COMMANDS) == set(NAMES)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_missing_result_names_the_commands(name, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    with pytest.raises(NotMeasured) as caught:
        measured(name)
    for words in (f"{name}.json", "make results", "make results-quick", COMMANDS[name]):
        assert words in str(caught.value)
    assert caught.value._render_traceback_() == [str(caught.value)]
    (tmp_path / f"{name}.json").write_text("{}")
    with pytest.raises(NotMeasured, match="cannot be used"):
        measured(name)


def test_the_commands_are_real(monkeypatch):
    """Each is a command of idviz with these options, and names a recipe that is there."""
    import shlex

    from typer.main import get_command

    from idviz.cli.lab import commands
    from idviz.lab import study

    known = get_command(commands).commands
    for line in COMMANDS.values():
        program, command, *rest = shlex.split(line)
        assert program == "idviz"
        options = {name for parameter in known[command].params for name in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options
        if command == "ablate":
            study.load_study(rest[0])


def test_an_unknown_result_is_refused():
    with pytest.raises(ValueError, match="'speed'"):
        measured("speed")


def test_table_as_markdown_and_as_text():
    made = table(["mixer", "loss"], [["s4d", "3.1"], ["a|b", 4]], caption="In nats.")
    assert made._repr_markdown_() == "In nats.\n\n| mixer | loss |\n| --- | ---: |\n| s4d | 3.1 |\n| a\\|b | 4 |"
    assert repr(made).splitlines() == ["In nats.", "mixer  loss", "s4d     3.1", "a|b       4"]
    with pytest.raises(ValueError, match="2 cells"):
        table(["mixer", "loss"], [["s4d"]])


def test_means_with_spread_and_range():
    several, one = OverSeeds(np.array([1.0, 2.0])), OverSeeds(np.array([-0.25]))
    assert with_spread(several) == "1.500 ± 0.707" and with_spread(several, 1, sign=True) == "+1.5 ± 0.7"
    assert with_spread(one) == "−0.250" and with_spread(OverSeeds(np.array([-1e-9])), sign=True) == "+0.000"
    assert with_range(several) == "1.414 (1.000 to 2.000)" and with_range(OverSeeds(np.array([2.0]))) == "2.000"
