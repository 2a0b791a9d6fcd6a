"""What the course's notebooks share: self-checks that explain, pictures with alt text, honest comparisons, tables.

>>> from idviz.course import agree, check, panels, picture
"""

from __future__ import annotations

from idviz.course import checks as check
from idviz.course.display import LOOK, Picture, agree, panels, picture
from idviz.course.measured import measured, table
from idviz.course.verdict import Verdict

__all__ = ["LOOK", "Picture", "Verdict", "agree", "check", "measured", "panels", "picture", "table"]
