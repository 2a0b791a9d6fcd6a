"""Settings: what pydantic refuses is said in our words, and what it takes is what is there."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, asdict, replace
from typing import Annotated

import numpy as np
import pytest
from annotated_types import Ge, Gt, Le
from pydantic import ValidationError

from idviz.lab.config import TrainingConfig
from idviz.lab.recall import RecallTask
from idviz.lab.validation import Allowed, Count, OneOf, Seeds, Share, Table, Text, Variants, named, settings


@settings(table="kitchen")
class Recipe:
    """For the tests."""

    name: Text
    grams: Annotated[int, Ge(1), Le(5000)] = 500
    eggs: Count = 2
    heat: Annotated[float, Gt(0), Le(2.5)] = 1.0
    rest: Share | None = None
    kind: Annotated[str, OneOf(("cake", "bread"))] = "cake"
    tools: Annotated[Table | None, Allowed("a table of tools")] = None
    seeds: Seeds = (0,)
    variants: Variants | None = None

    def __post_init__(self):
        if self.grams < self.eggs:
            raise ValueError(f"grams must be at least eggs = {self.eggs}, not {self.grams}")


KNOWN = "name, grams, eggs, heat, rest, kind, tools, seeds, variants"
SEEDS = "a list of at least one whole number from 0, no two the same"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"grams": True}, "kitchen.grams must be a whole number from 1 to 5,000, not True"),
        ({"grams": "16"}, "kitchen.grams must be a whole number from 1 to 5,000, not '16'"),
        ({"grams": 16.0}, "kitchen.grams must be a whole number from 1 to 5,000, not 16.0"),
        ({"grams": None}, "kitchen.grams must be a whole number from 1 to 5,000, not None"),
        ({"grams": 5001}, "kitchen.grams must be a whole number from 1 to 5,000, not 5001"),
        ({"eggs": 0}, "kitchen.eggs must be a whole number of at least 1, not 0"),
        ({"eggs": 1.5}, "kitchen.eggs must be a whole number of at least 1, not 1.5"),
        ({"eggs": True}, "kitchen.eggs must be a whole number of at least 1, not True"),
        ({"heat": 0}, "kitchen.heat must be a number above 0 up to 2.5, not 0"),
        ({"heat": float("nan")}, "kitchen.heat must be a number above 0 up to 2.5, not nan"),
        ({"heat": "hot"}, "kitchen.heat must be a number above 0 up to 2.5, not 'hot'"),
        ({"rest": 2}, "kitchen.rest must be a number from 0 to 1, not 2"),
        ({"kind": "soup"}, "kitchen.kind must be one of cake, bread, not 'soup'"),
        ({"kind": 3}, "kitchen.kind must be one of cake, bread, not 3"),
        ({"name": " "}, "kitchen.name must be a text that is not empty, not ' '"),
        ({"tools": {"whisk": None}}, "kitchen.tools must be a table of tools, not {'whisk': None}"),
        ({"seeds": [1, 1]}, f"kitchen.seeds must be {SEEDS}, not [1, 1]"),
        ({"seeds": ["a"]}, f"kitchen.seeds must be {SEEDS}, not ['a']"),
        ({"variants": {}}, "kitchen.variants must be at least one table [variants.NAME], not {}"),
        ({"variants": {"x": 3}}, "variants.x must be a table, not 3"),
        ({"grams": 1, "eggs": 2}, "grams must be at least eggs = 2, not 1"),
        ({"gram": 3, "eggs": 0}, f"kitchen: unknown key 'gram' (value 3); did you mean grams? Known: {KNOWN}"),
        ({"self": 3}, f"kitchen: unknown key 'self' (value 3). Known: {KNOWN}"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_our_words(values, says):
    with pytest.raises(ValueError) as caught:
        Recipe(**{"name": "scones"} | values)
    assert str(caught.value) == says and not isinstance(caught.value, ValidationError)


def test_a_missing_key_is_named():
    with pytest.raises(ValueError, match=r"^kitchen.name is missing; it must be a text that is not empty$"):
        Recipe()


def test_by_place_and_too_many():
    assert Recipe("scones", 20).grams == 20
    with pytest.raises(ValueError, match=r"^kitchen.grams must be .* not 0$"):
        Recipe("scones", 0)


def test_numbers_as_people_write_them():
    made = Recipe("scones", eggs=4e0, heat=1, seeds=[3, np.int64(4)])
    assert (made.eggs, made.heat, made.seeds) == (4, 1.0, (3, 4))
    assert isinstance(made.eggs, int) and isinstance(made.heat, float)
    assert Recipe(**asdict(made)) == made
    with pytest.raises(ValueError, match=r"kitchen.heat must be .* not 3"):
        replace(made, heat=3)
    with pytest.raises(FrozenInstanceError):
        made.eggs = 3


def test_every_settings_class_is_frozen_and_round_trips():
    for made in (TrainingConfig(steps=200, mixer_options={"modes": 4}), RecallTask(pairs=2, distance=3)):
        assert type(made)(**asdict(made)) == made
        with pytest.raises(FrozenInstanceError):
            made.steps = 3


def test_a_name_before_the_message():
    with pytest.raises(ValueError, match=r"^file 'x': table: steps is wrong$"), named("file 'x'"), named("table"):
        raise ValueError("steps is wrong")
