"""What statements say, as SQL: for engines that take texts.

Pure. Knows the columns of the laboratory's tables, which a text names by the side of a MERGE that they are of.
"""

from __future__ import annotations

import re

from laboratory.statements import Assignment, Plus, Where


def text_of(assignment: Assignment) -> str:
    """The right side of an assignment."""
    if isinstance(assignment, Plus):
        return f"{assignment.column} + {assignment.step}"
    return "NULL" if assignment.value is None else str(assignment.value)


def of_side(text: Where | str, side: str) -> str:
    """A condition or a value over the columns of one side."""
    return re.sub(r"\b([kpx])\b", rf"{side}.\1", str(text))
