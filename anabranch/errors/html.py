"""Values as HTML tables, for notebooks.

Knows HTML, and no value of ours by its name. Guarantees: every text is escaped, without secrets of a location, and with
invisible characters spelled out, since an attacker may have chosen it; nothing runs and nothing is loaded; long texts
and long lists are truncated visibly.

It is in the lowest package because conflicts are shown by it, too.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any

from anabranch.errors.secrets import without_secrets

MOST_ROWS, MOST_ITEMS, MOST_CHARACTERS, _MAX_DEPTH = 50, 25, 500, 3
_LEFT = ' style="text-align:left"'
_CELL = ' style="text-align:left;vertical-align:top;white-space:pre-wrap"'


class Rows(list[dict[str, Any]]):
    """A list of dicts, which a notebook shows as a table; columns without a value are left out.

    Args:
        rows: the dicts, all with the same keys.
        caption: stands above the table.
    """

    def __init__(self, rows: Iterable[dict[str, Any]] = (), caption: str = "") -> None:
        super().__init__(rows)
        self.caption = caption

    def _repr_html_(self) -> str:
        return table(self.caption, self)


class ShownAsTable:
    """A frozen value that a notebook shows as a table of its fields."""

    @property
    def _caption(self) -> str:
        return type(self).__name__

    def _repr_html_(self) -> str:
        return facts(self._caption, _fields(self))


def facts(caption: str, pairs: Mapping[str, Any], deep: int = 0) -> str:
    """A table with a row for each name and value."""
    rows = (f"<tr><th scope=row{_LEFT}>{text(name)}</th>{_cell(value, deep)}</tr>" for name, value in pairs.items())
    return _table(caption, rows)


def table(caption: str, rows: Sequence[Mapping[str, Any]], deep: int = 0) -> str:
    """A table of the first rows, with a column for each key that has a value in one of them."""
    shown = rows[: MOST_ITEMS if deep else MOST_ROWS]
    names = [
        name for name in dict.fromkeys(name for row in shown for name in row) if any(_has_value(r, name) for r in shown)
    ]
    head = "".join(f"<th scope=col{_LEFT}>{text(name)}</th>" for name in names)
    body = ("<tr>" + "".join(_cell(row.get(name), deep) for name in names) + "</tr>" for row in shown)
    more = (
        [f"<tr><td colspan={len(names) or 1}{_CELL}>{text(_more(rows, shown))}</td></tr>"] if _more(rows, shown) else []
    )
    return _table(caption, [f"<tr>{head}</tr>", *body, *more])


def text(value: Any) -> str:
    """One value as escaped text."""
    shown = plain(value)
    return html.escape(shown if len(shown) <= MOST_CHARACTERS else shown[: MOST_CHARACTERS - 1] + "…")


def plain(value: Any) -> str:
    """One value as text that can be shown anywhere: without secrets, with invisible characters spelled out."""
    cleaned = without_secrets(str(value))
    return (
        cleaned
        if cleaned.isprintable()
        else "".join(character if _is_visible(character) else _escape_character(character) for character in cleaned)
    )


def _is_visible(character: str) -> bool:
    return character.isprintable() or character == "\n"


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _table(caption: str, rows: Iterable[str]) -> str:
    above = f"<caption{_LEFT}>{text(caption)}</caption>" if caption else ""
    return f"<table>{above}{''.join(rows)}</table>"


def _cell(value: Any, deep: int) -> str:
    return f"<td{_CELL}>{_inner(value, deep + 1)}</td>"


def _inner(value: Any, deep: int) -> str:
    """The content of a cell: a table for a value with parts, a line for each item of a list, or the text."""
    if value is None or deep > _MAX_DEPTH:
        return "" if value is None else text(value)
    if is_dataclass(value):
        return facts("", _fields(value), deep)
    if isinstance(value, Mapping):
        return _lines([f"{plain(name)}: {plain(item)}" for name, item in value.items()])
    if isinstance(value, Set):
        return _lines(sorted(map(str, value)))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        records = [_record(item) for item in value]
        are_rows = bool(records) and all(isinstance(record, Mapping) for record in records)
        return table("", records, deep) if are_rows else _lines(records)
    return text(value)


def _lines(items: Sequence[Any]) -> str:
    shown = items[:MOST_ITEMS]
    return "<br>".join([*map(text, shown), *([text(_more(items, shown))] if _more(items, shown) else [])])


def _more(all_of: Sequence[Any], shown: Sequence[Any]) -> str:
    return f"… and {len(all_of) - len(shown):,} more" if len(all_of) > len(shown) else ""


def _has_value(row: Mapping[str, Any], name: str) -> bool:
    return row.get(name) not in (None, {}, [], ())


def _record(value: Any) -> Any:
    """A dataclass or a named tuple as a mapping, anything else as it is."""
    if is_dataclass(value):
        return _fields(value)
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else value


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value) if field.repr}
