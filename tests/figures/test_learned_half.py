"""The pictures of the learned half: which colour and which mark means what."""

from __future__ import annotations

import matplotlib.colors as colors

from idviz.explore.pages.lag_kernel import EXPLORABLE as LAG_KERNEL
from idviz.explore.pages.modes import EXPLORABLE as MODES
from idviz.explore.pages.three_forms import EXPLORABLE as THREE_FORMS
from idviz.figures.style import INTERDOMAIN, S4D


def test_colours_keep_their_meaning():
    """S4D's modes and the carried state are sky, the layer's own chunk and G's diagonal blue."""
    modes = MODES.figure()
    assert S4D in {colors.to_hex(line.get_color()).upper() for line in modes.axes[0].get_lines()}
    diagonal = LAG_KERNEL.figure().axes[2].get_lines()
    assert colors.to_hex(diagonal[0].get_color()).upper() == INTERDOMAIN
    row = THREE_FORMS.figure().axes[3]
    assert {colors.to_hex(patch.get_facecolor()).upper() for patch in row.patches} == {S4D, INTERDOMAIN}


def test_aliasing_modes_are_rings_and_the_others_dots():
    rings, dots = 0, 0
    for line in MODES.figure(memory=2).axes[0].get_lines()[1:]:
        if line.get_xdata()[:1].tolist() == [0]:  # the strip of Lin
            hollow = line.get_markerfacecolor() == "none"
            rings, dots = rings + hollow * len(line.get_xdata()), dots + (not hollow) * len(line.get_xdata())
    assert (rings, dots) == (27, 5)
