"""What the course's notebooks share.

- ``check``: the exercises' self-checks, one function each; they name the usual mistakes. One module for each notebook's
  exercises, ``checks_notation`` (00) to ``checks_parts`` (09), gathered in ``checks``.
- ``verdict``: the engine behind them, ``judge(answer, trials, praise) -> Verdict``.
- ``display``: figures in the house style (``panels``), with alt text (``picture``), and comparisons of two routes to
  the same numbers (``agree``).
- ``measured``: the measured results (``measured``) and small tables (``table``).
- ``build``: notebooks from their text twins, ``python -m idviz.course.build``; ``results_table``: the README's results
  from the result files.

>>> from idviz.course import agree, check, panels, picture
"""

from __future__ import annotations

from idviz.course import checks as check
from idviz.course.display import LOOK, Picture, agree, panels, picture
from idviz.course.measured import measured, table
from idviz.course.verdict import Verdict

__all__ = ["LOOK", "Picture", "Verdict", "agree", "check", "measured", "panels", "picture", "table"]
