"""What a terminal would obey is spelled out, in messages too."""

from __future__ import annotations

import pytest

from anabranch.errors import UnknownColumn
from anabranch.errors.visible import visible


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("\x9b5m\x7f\x00", "\\x9b5m\\x7f\\x00"),
        ("over\rwritten", "over\\rwritten"),
        ("\u202egnp.exe\u2066\u2028", "\\u202egnp.exe\\u2066\\u2028"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_what_a_terminal_obeys_is_spelled_out(text: str, spelled: str) -> None:
    assert visible(text) == spelled


@pytest.mark.parametrize("text", ["two\nlines\tand\r\nmore", "é 日本 👩‍🚀 a\u00a0b", "\\x1b"])
def test_other_text_stays(text: str) -> None:
    assert visible(text) == text


def test_a_message_moves_no_cursor_and_its_facts_stay_as_they_are() -> None:
    error = UnknownColumn(table="t", column="\x1b[2J", columns="a")
    assert "\x1b" not in str(error)
    assert "\\x1b[2J" in error.message
    assert error.column == "\x1b[2J"
