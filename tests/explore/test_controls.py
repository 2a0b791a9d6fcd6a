"""Controls and the explorable's handling of values: nothing a person or a URL can send leads to a traceback."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from idviz.explore.base import Explorable, Formula, NotebookLink
from idviz.explore.controls import Choice, Slider, TextInput, Upload
from idviz.samples.files import Uploaded


@dataclass(frozen=True)
class Result:
    values: dict
    warnings: tuple[str, ...] = ()


def make(*controls, time=None):
    return Explorable(slug="x", title="X", question="x?", prose="", controls=controls,
                      compute=lambda **values: Result(values),
                      draw=lambda result, figure=None, *, look=None: figure or Figure(), describe=str,
                      formula=lambda result: Formula("E1", "", ""), table=lambda result: {}, try_this=(),
                      notebook=NotebookLink("00", ""), time=time)  # fmt: skip


LENGTHS = {"short": 1, "ten": 10, "long": 1000}
PAGE = make(
    Choice(name="signal", label="Signal", options=(("ten", "Ten"), ("short", "Short"), ("long", "Long"))),
    Slider(name="order", label="Order", minimum=1, maximum=64, default=16, step=1, unit="numbers"),
    Slider(
        name="instant", label="Instant", maximum=10**6, step=1, unit="samples", upper=lambda v: LENGTHS[v["signal"]]
    ),
    Slider(name="scale", label="Scale", minimum=0.1, maximum=2.0, default=1.0, step=0.1),
    TextInput(name="text", label="Text", default="hello", max_length=20),
    Upload(name="upload", label="File", main=False),
    time="instant",
)  # fmt: skip


def test_defaults():
    assert PAGE.resolve() == {
        "signal": "ten", "order": 16, "instant": 10, "scale": 1.0, "text": "hello", "upload": None
    }  # fmt: skip
    assert PAGE.result(order=3).values["order"] == 3


def test_a_limit_follows_an_earlier_control():
    assert PAGE.resolve(signal="long")["instant"] == 1000
    assert PAGE.resolve(signal="long", instant=500)["instant"] == 500
    with pytest.raises(ValueError, match="Instant must be a whole number from 1 to 10 samples, not 500"):
        PAGE.resolve(instant=500)
    assert PAGE.control("instant").limits({"signal": "short"}) == (1, 1)  # nothing to choose: shown disabled
    assert PAGE.resolve(signal="short")["instant"] == 1


def test_a_default_is_kept_within_the_limits():
    slider = Slider(name="a", label="A", minimum=2, maximum=9, default=50, step=1)
    assert slider.initial({}) == 9
    low = Slider(name="a", label="A", minimum=2, maximum=9, default=5, step=1, upper=lambda values: 0)
    assert low.limits({}) == (2, 2) and low.initial({}) == 2


@pytest.mark.parametrize("value", [0, 65, -1, 1.5, 1e6, float("nan"), float("inf"), "x", "", [1], {}, "1e400"])
def test_bad_orders(value):
    with pytest.raises(ValueError, match="Order must be a whole number from 1 to 64 numbers, not"):
        PAGE.resolve(order=value)
    values, problems = PAGE.settle({"order": value})
    assert 1 <= values["order"] <= 64
    assert len(problems) == 1 and "Showing" in problems[0]


@pytest.mark.parametrize(("value", "shown"), [(0, 1), (99, 64), (7.4, 7), ("12", 12), (float("nan"), 16)])
def test_settle_shows_the_nearest(value, shown):
    assert PAGE.settle({"order": value})[0]["order"] == shown


def test_whole_numbers_come_back_as_int_and_steps_are_kept():
    assert type(PAGE.resolve(order=3.0)["order"]) is int
    assert PAGE.resolve(scale=0.7)["scale"] == pytest.approx(0.7)
    assert PAGE.resolve(scale=0.7123)["scale"] == pytest.approx(0.7)
    assert PAGE.resolve(scale=2.0)["scale"] == 2.0
    assert PAGE.settle({"scale": -5})[0]["scale"] == pytest.approx(0.1)


def test_whole_numbers_in_steps():
    features = Slider(name="r", label="Features", minimum=2, maximum=9, step=2, default=4)
    assert features.check(8.0, {}) == 8
    for value in (3, 9):  # 9 is within the limits, but no step leads there
        with pytest.raises(ValueError, match=f"from 2 to 9 in steps of 2, not {value}"):
            features.check(value, {})
    assert [features.nearest(value, {}) for value in (-4, 2.4, 5.1, 9, 100, "x")] == [2, 2, 6, 8, 8, 4]


def test_numbers_in_messages_read_like_numbers():
    order = Slider(name="order", label="Order", minimum=1, maximum=64, unit="numbers")
    assert (order.show(1), order.show(2)) == ("1 number", "2 numbers")
    for value, said in ((-5.0, "not -5."), ("1e9", "not 1e9."), (1e9, "not 1000000000."), (float("nan"), "not nan.")):
        with pytest.raises(ValueError, match=f"Order must be a whole number from 1 to 64 numbers, {said}"):
            order.check(value, {})


def test_choice():
    with pytest.raises(ValueError, match="Signal must be one of ten, short, long, not 'x"):
        PAGE.resolve(signal="x" * 500)
    assert PAGE.settle({"signal": "nope"})[0]["signal"] == "ten"
    assert Choice(name="a", label="A", options=(("p", "P"), ("q", "Q")), default="q").initial({}) == "q"
    assert PAGE.control("signal").show("long") == "Long"


def test_text():
    for value, message in (("", "empty"), ("  \n", "empty"), ("x" * 21, "21 characters; at most 20"), (5, "not int")):
        with pytest.raises(ValueError, match=message):
            PAGE.resolve(text=value)
    assert PAGE.settle({"text": "x" * 50})[0]["text"] == "x" * 20
    assert PAGE.settle({"text": ""})[0]["text"] == "hello"
    assert PAGE.resolve(text="שלום 🙂")["text"] == "שלום 🙂"
    assert TextInput(name="a", label="A", may_be_empty=True).check("", {}) == ""


def test_upload():
    good = Uploaded("Data.CSV", b"1\n")
    assert PAGE.resolve(upload=good)["upload"] is good
    for bad, message in ((Uploaded("a.png", b""), "must end in .csv or .txt"), (b"1", "must be an uploaded file")):
        with pytest.raises(ValueError, match=message):
            PAGE.resolve(upload=bad)
    with pytest.raises(ValueError, match=r"20\.0 MB; at most 20\.0 MB"):
        PAGE.resolve(upload=Uploaded("a.csv", bytes(20_000_001)))
    assert "upload" not in PAGE.to_query(PAGE.resolve(upload=good))
    assert PAGE.from_query({"upload": "secret.csv"}) == (PAGE.resolve(), [])


def test_disabled_gives_its_reason():
    control = Slider(name="a", label="A", step=1, disabled=lambda values: "no file" if values["b"] is None else None)
    assert control.why_disabled({"b": None}) == "no file"
    assert control.why_disabled({"b": 1}) is None
    assert Slider(name="a", label="A", step=1).why_disabled({}) is None


@given(
    st.fixed_dictionaries(
        {
            "signal": st.sampled_from(list(LENGTHS)),
            "order": st.integers(1, 64),
            "share": st.floats(0, 1),
            "tenths": st.integers(1, 20),
            "text": st.text(min_size=1, max_size=20).filter(str.strip),
        }
    )
)
def test_any_view_survives_its_url(drawn):
    length = LENGTHS[drawn["signal"]]
    values = PAGE.resolve(
        signal=drawn["signal"], order=drawn["order"], instant=1 + int(drawn["share"] * (length - 1)),
        scale=drawn["tenths"] / 10, text=drawn["text"],
    )  # fmt: skip
    query = PAGE.to_query(values)
    again, problems = PAGE.from_query(query)
    assert problems == []
    assert again.pop("scale") == pytest.approx(values.pop("scale"), abs=1e-12)
    assert again == values


@given(st.dictionaries(st.sampled_from([*[control.name for control in PAGE.controls], "junk", "theme"]), st.text()))
def test_any_query_settles(query):
    values, problems = PAGE.from_query(query)
    assert PAGE.resolve(**{name: value for name, value in values.items() if value is not None}) == values
    assert all(isinstance(problem, str) and problem for problem in problems)


def test_a_url_with_nonsense_says_what_is_shown_instead():
    values, problems = PAGE.from_query({"order": "many", "signal": "sines", "instant": "99", "junk": "1"})
    assert values == PAGE.resolve()
    assert len(problems) == 3
    assert "Order must be a number, not 'many'. Showing the default." in problems
    assert any("Signal must be one of" in problem and "Showing Ten." in problem for problem in problems)
    assert any("from 1 to 10 samples, not 99" in problem and "Showing 10 samples." in problem for problem in problems)


def test_query_leaves_defaults_out():
    assert PAGE.to_query(PAGE.resolve()) == {}
    assert PAGE.to_query(PAGE.resolve(signal="long")) == {"signal": "long"}  # its own maximum is the default instant
    assert PAGE.to_query(PAGE.resolve(signal="long", instant=10, scale=0.3)) == {
        "signal": "long", "instant": "10", "scale": "0.3"
    }  # fmt: skip


def test_instants():
    values = PAGE.resolve(signal="long", instant=333)
    instants = PAGE.instants(values)
    assert instants[0] == 1 and instants[-1] == 1000 and 333 in instants and len(instants) <= 49
    assert instants == sorted(set(instants)) and all(type(instant) is int for instant in instants)
    assert PAGE.instants(PAGE.resolve()) == list(range(1, 11))
    assert PAGE.instants(PAGE.resolve(signal="short")) == [1]
    with pytest.raises(ValueError, match="no control that stands for time"):
        make(Slider(name="a", label="A", step=1)).instants({"a": 1})


def test_instants_of_a_slider_with_fractions():
    page = make(Slider(name="a", label="A", minimum=0.0, maximum=1.0, default=0.3, step=0.1), time="a")
    assert page.instants(page.resolve()) == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])


def test_an_explorable_is_checked_when_made():
    slider = Slider(name="a", label="A", step=1)
    with pytest.raises(ValueError, match="names must differ"):
        make(slider, slider)
    with pytest.raises(ValueError, match="no control 'b'"):
        make(slider, time="b")
    with pytest.raises(ValueError, match="time must name a slider"):
        make(Choice(name="c", label="C", options=(("p", "P"),)), time="c")
    with pytest.raises(ValueError, match="no control 'b'"):
        make(slider).resolve(b=1)
