"""The signals: those that ship with matplotlib, those made here, and a person's own CSV column."""

import numpy as np
import pytest

from idviz.samples.csv_column import MAX_SAMPLES
from idviz.samples.signals import SIGNALS, Signal, load_signal, signal_from_csv


@pytest.mark.parametrize("name", [name for name, _ in SIGNALS])
def test_built_in_signals_are_finite_read_only_and_described(name):
    signal = load_signal(name)
    assert 100 <= len(signal) <= 5000
    assert np.isfinite(signal.values).all()
    assert signal.values.dtype == np.float64
    assert str(len(signal)) in signal.description or name in ("steps", "constant")
    assert signal.unit and signal.time_unit.startswith("samples")
    with pytest.raises(ValueError, match="read-only"):
        signal.values[0] = 1.0
    assert load_signal(name) is signal


def test_eeg_and_membrane_are_the_recordings():
    eeg, membrane = load_signal("eeg"), load_signal("membrane")
    assert len(eeg) == 800
    assert eeg.values.std() == pytest.approx(1, abs=0.01)
    assert len(membrane) == 1200
    assert -75 < membrane.values.min() < -60 < -10 < membrane.values.max() < 50  # rest and spikes, in mV


def test_spike_is_where_its_description_says():
    assert int(np.argmax(load_signal("spike").values)) == 212


def test_unknown_signal_lists_those_there_are():
    with pytest.raises(ValueError, match=r"'sines'.*eeg, membrane"):
        load_signal("sines")


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], [1.0, np.nan], [np.inf]])
def test_signal_refuses(values):
    with pytest.raises(ValueError):
        Signal("x", np.array(values), "", "samples", "")


@pytest.mark.parametrize(
    ("data", "column", "values"),
    [
        (b"1\n2\n3\n", "", [1, 2, 3]),
        (b"7", "", [7]),
        (b"value\n7\n", "", [7]),
        (b"x,y\n1,4\n2,5\n9,6\n", "y", [4, 5, 6]),
        (b"x,y\n1,4\n2,5\n9,6\n", "Y ", [4, 5, 6]),
        (b"x,y\n1,4\n2,5\n9,6\n", "2", [4, 5, 6]),
        (b"x,y\n1,4\n2,5\n9,6\n", "", [1, 2, 9]),
        (b"1,4\n2,5\n9,6\n", "2", [4, 5, 6]),
        (b"time,y\n0.0,4\n0.1,5\n0.2,6\n", "", [4, 5, 6]),  # a counter is passed over
        (b"i,y\n1,10\n2,20\n3,30\n", "", [10, 20, 30]),  # all count: the last
        (b"name,y\nann,4\nbob,5\n", "", [4, 5]),
        (b"ann,4\nbob,5\n", "", [4, 5]),
        (b"1;4\n2;5\n9;6\n", "2", [4, 5, 6]),
        (b"a;b\n1,5;4\n2,5;5\n9,5;6\n", "a", [1.5, 2.5, 9.5]),  # decimal commas
        (b"1\t4\n2\t5\n", "2", [4, 5]),
        (b"  1   4\n  2   5\n", "2", [4, 5]),
        (b'"x","y (mV)"\n"1","4"\n"2","5"\n', "y (mV)", [4, 5]),
        (b'"a,b",y\n1,4\n2,5\n', "a,b", [1, 2]),
        (b"x\r\n1\r\n\r\n2\r\n\r\n", "", [1, 2]),
        (b"\xef\xbb\xbfx\n1\n2\n", "x", [1, 2]),
        ("größe\n1\n2\n".encode("latin-1"), "größe", [1, 2]),
        ("größe\n1\n2\n".encode(), "GRÖSSE", [1, 2]),
        ("x\n1\n2\n".encode("utf-16"), "x", [1, 2]),
        (b"2019,2020\n1,4\n2,5\n", "2", [2020, 4, 5]),
        (b"1e-3\n-2E2\n+.5\n", "", [1e-3, -200, 0.5]),
        ("مساحة,🙂\n1,4\n2,5\n".encode(), "🙂", [4, 5]),
    ],
)
def test_csv_that_can_be_read(data, column, values):
    np.testing.assert_array_equal(signal_from_csv(data, column).values, values)


def test_csv_header_gives_name_and_unit():
    signal = signal_from_csv(b"t (s),potential [mV]\n0,-60\n1,-61\n", "2")
    assert (signal.name, signal.unit) == ("potential", "mV")
    assert "2 ('potential')" in signal.description
    assert "2 samples" in signal.description


@pytest.mark.parametrize(
    ("data", "column", "message"),
    [
        (b"", "", "empty"),
        (b" \n\r\n", "", "empty"),
        (b"\xef\xbb\xbf", "", "empty"),
        (b",,\n,,\n", "", "no cells"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "", "binary"),
        (b"PK\x03\x04" + bytes(range(256)), "", "binary"),
        (b"\x01\x02\x03\x04\x05" * 30, "", "binary"),
        (b"\xff\xfeabc", "", "not text|no number"),
        (b"x,y\n", "", "no numbers below"),
        (b"hello\n", "", "no numbers below"),
        (b"a b c\nd e f\n", "", "line 1 .*no number"),
        (b"x,y\n1,4\n2,five\n", "y", r"line 3, column 2 \('y'\) is 'five', which is not a number"),
        (b"x,y\n1,4\n\n2,five\n", "y", "line 4"),
        (b"x,y\n1,4\n2,\n", "y", r"line 3, column 2 \('y'\) is empty"),
        (b"x,y\n1,4\n2\n", "y", r"line 3, column 2 \('y'\) is empty"),
        (b"1\nnan\n3\n", "", "line 2, column 1 is nan"),
        (b"1\n2\n-inf\n", "", "line 3, column 1 is -inf"),
        (b"1\n1e200\n", "", r"line 2, column 1 is 1e\+200"),
        (b"x,y\n1,4\n", "z", r"no column 'z'; it has 1 \('x'\), 2 \('y'\)"),
        (b"x,y\n1,4\n", "3", "no column '3'"),
        (b"x,y\n1,4\n", "0", "no column '0'"),
        (b"1,4\n2,5\n", "y", "no column 'y'; it has 1, 2"),
        (b"1\n" * (MAX_SAMPLES + 1), "", "1,000,001 samples; at most 1,000,000"),
        (b'x\n"' + b"1" * 200_000, "", "line 2|no column|not a number"),
    ],
)
def test_csv_that_cannot_be_read_is_refused_by_name(data, column, message):
    with pytest.raises(ValueError, match=message):
        signal_from_csv(data, column)


def test_a_million_samples_are_read():
    values = np.random.default_rng(0).standard_normal(MAX_SAMPLES).round(4)
    data = "\n".join(map(str, values.tolist())).encode()
    signal = signal_from_csv(data, "")
    np.testing.assert_array_equal(signal.values, values)
    assert signal_from_csv(data, "") is signal
