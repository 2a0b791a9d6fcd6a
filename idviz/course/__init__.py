"""What the course's notebooks share: self-checks with an explanation, pictures with alt text, honest comparisons.

>>> from idviz.course import agree, check, panels, picture
"""

from __future__ import annotations

from idviz.course import checks as check
from idviz.course.display import LOOK, Picture, agree, panels, picture
from idviz.course.verdict import Verdict

__all__ = ["LOOK", "Picture", "Verdict", "agree", "check", "panels", "picture"]
