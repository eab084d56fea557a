"""An extension of griffe that brings our docstrings into the form that it reads.

Our section of examples is called ``Example``. A section ``Raises`` names errors in sentences,
``NotATable: there is none. InvalidOption: it is no name.``, or several at once,
``UnknownColumn, SchemaMismatch: it does not fit.``, or by name alone, which means what their class says of itself.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

from anabranch import errors

_SECTION = re.compile(r"^( *)Raises:\n((?:\1 +\S.*\n?)+)", re.MULTILINE)
_EXAMPLE = re.compile(r"^( *)Example:$", re.MULTILINE)
_NAMES = r"[A-Z]\w+(?:, [A-Z]\w+)*"
_ENTRY = re.compile(rf"(?:^|(?<=\. ))(?=(?P<names>{_NAMES})(?P<end>: |\.(?: |$)))")


class Docstrings(griffe.Extension):
    """Gives each error of a section ``Raises`` a line of its own, and examples the name of a section."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called with each object once it was read."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(r"\1Examples:", spread(obj.docstring.value))


def spread(docstring: str) -> str:
    """The docstring with each entry of its section ``Raises`` on a line, in the form ``Name: what it means``."""
    return _SECTION.sub(_section, docstring)


def _section(found: re.Match[str]) -> str:
    text = re.sub(r"\s+", " ", found[2]).strip()
    starts = sorted({0, *(each.start() for each in _ENTRY.finditer(text))})
    entries = [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    lines = [line for entry in entries for line in _lines(entry)]
    return "".join([f"{found[1]}Raises:\n", *(f"{found[1]}    {line}\n" for line in lines)])


def _lines(entry: str) -> list[str]:
    """One entry as it is, unless it has names alone: then one line for each, with what the class says of itself."""
    if not re.fullmatch(rf"{_NAMES}\.?", entry):
        return [entry]
    return [f"{name}: {_meaning(name)}" for name in entry.rstrip(".").split(", ")]


def _meaning(name: str) -> str:
    return (getattr(errors, name).__doc__ or "").partition("\n")[0]
