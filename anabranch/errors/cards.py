"""Conflicts as cards, for notebooks: what happened, who won, by which rule, where, and what to do.

Knows the facts of conflicts, and how IPython asks an error for its traceback. Guarantees: a card shows only facts that
the error has, escaped; the lines of code that are the user's stay in the traceback, and the whole one is shown as soon
as the user asks IPython for more than its usual mode (``%xmode Verbose``, then ``%tb``). Outside IPython nothing
changes.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from anabranch.errors.html import facts, plain

_OURS = f"{Path(__file__).resolve().parent.parent}/"
_HINT = "For the whole traceback: %xmode Verbose, then %tb."
_WHAT, _WIDTH = "What", 12
NOWHERE = "none in particular"
"""The file, or the rows, of a conflict that concerns none in particular."""


class Card:
    """A conflict that IPython shows as a card."""

    def _repr_html_(self) -> str:
        sections = card_sections(self)
        return facts(f"{type(self).__name__}: {sections.pop(_WHAT)}", sections)

    def _render_traceback_(self: Any) -> list[str]:
        """IPython's hook: the lines to show instead of the whole traceback."""
        try:
            return _render_traceback(self)
        except Exception:  # whatever it is, the user must see the error
            return traceback.format_exception(self)


def card_sections(error: Any) -> dict[str, str]:
    """The texts of the card by heading, without facts that the error lacks."""
    known_facts = {name: value for name, value in error.facts.items() if value not in (None, "", NOWHERE)}
    sections = {
        _WHAT: error.what_happened(),
        "Why": known_facts.get("explanation"),
        "Winner": known_facts.get("winner"),
        "Ours": " ".join(_describe_ours(known_facts)),
        "Rule": error.getCondition(),
        "File": known_facts.get("file"),
        "Rows": known_facts.get("shown"),
        "What to do": known_facts.get("suggestion"),
    }
    return {heading: plain(value) for heading, value in sections.items() if value}


def _describe_ours(known_facts: dict[str, Any]) -> Iterator[str]:
    if "operation" in known_facts:
        yield str(known_facts["operation"])
    if "predicate" in known_facts:
        yield f"where {known_facts['predicate']}"
    if "base_version" in known_facts:
        yield f"based on version {known_facts['base_version']}"
    if "user" in known_facts:
        yield f"by {known_facts['user']}"


def as_text(error: Any) -> str:
    """The card as lines of text."""
    sections = card_sections(error)
    lines = [sections.pop(_WHAT), ""]
    for heading, value in sections.items():
        first, *rest = value.splitlines()
        lines += [f"  {heading:<{_WIDTH}}{first}", *(f"  {'':<{_WIDTH}}{line}" for line in rest)]
    return "\n".join([*lines, "", _HINT])


def _render_traceback(error: BaseException) -> list[str]:
    shell = sys.modules["IPython"].get_ipython()
    formatter = shell.InteractiveTB
    if formatter.mode != "Context":  # the user has asked for more, or for less
        return list(formatter.structured_traceback(type(error), error, error.__traceback__, tb_offset=1))
    frames = without_ours(error.__traceback__)
    card = type(type(error).__name__, (Exception,), {})(as_text(error))
    return list(formatter.structured_traceback(type(card), card, frames, tb_offset=0))


def without_ours(whole: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback that are neither ours nor the shell's; all of them where none is left."""
    frames, current = list[TracebackType](), whole
    while current is not None:
        if not _is_ours(current.tb_frame):
            frames.append(current)
        current = current.tb_next
    chain: TracebackType | None = None
    for step in reversed(frames):
        chain = TracebackType(chain, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return chain or whole


def _is_ours(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_filename.startswith(_OURS) or module.partition(".")[0] == "IPython"
