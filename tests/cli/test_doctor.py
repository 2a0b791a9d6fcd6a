"""``idviz doctor`` says what does not work, and what to do."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

import pytest

from idviz.cli import doctor


def test_this_environment_is_well(capsys):
    assert doctor.report() == 0
    shown = capsys.readouterr().out
    assert "All is well." in shown
    assert "eight ones are" in shown


@pytest.mark.parametrize("name", doctor.TRIALS)
def test_whatever_fails_is_named_with_what_to_do(name, monkeypatch, capsys):
    """Field report: torch and NumPy that cannot talk, builds without FFT."""
    broken = doctor.TRIALS[name].code
    monkeypatch.setattr(doctor, "version", lambda package: "1.0")
    monkeypatch.setattr(doctor, "_try", lambda code: (code != broken, "RuntimeError: Numpy is not available"))
    checks = {check.name: check for check in doctor.checks(doctor._try)}
    assert checks[name].ok is False
    assert checks[name].do == doctor.TRIALS[name].advice
    assert [check.name for check in checks.values() if check.ok is False] == [name]


def test_optional_packages_may_be_absent(monkeypatch):
    def absent(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(doctor, "version", absent)
    checks = {check.name: check for check in doctor.checks(lambda code: (True, "1.0"))}
    optional = [name for name, trial in doctor.TRIALS.items() if trial.package]
    assert optional == ["Streamlit", "JupyterLab", "torch"]
    for name in optional:
        assert checks[name].ok is None
        assert "not installed" in checks[name].says and "pip install 'idviz[" in checks[name].says


def test_trials_run_in_a_process_of_their_own_and_report_the_last_line():
    assert doctor._try("print('fine')") == (True, "fine")
    assert doctor._try("raise RuntimeError('Numpy is not available')") == (
        False,
        "RuntimeError: Numpy is not available",
    )
    ok, says = doctor._try("import os; os.abort()")
    assert not ok
    assert "code" in says


def test_what_is_well_needs_nothing_done():
    for check in doctor.checks(lambda code: (True, "1.0")):
        assert check.ok is False or check.do == "", check


def test_a_broken_part_makes_the_exit_code_one(monkeypatch, capsys):
    broken = [doctor.Check("torch", False, "no FFT", "install the pinned pair")]
    monkeypatch.setattr(doctor, "checks", lambda: iter(broken))
    assert doctor.report() == 1
    assert "Not working: torch." in capsys.readouterr().out
