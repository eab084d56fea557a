"""A text is split as Spark splits it."""

from __future__ import annotations

import pytest

from anabranch._protocol.expressions.lexer import without_comments


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("a -- b\n= 1", "a     \n= 1"),
        ("a -- b \\\n= 1", "a" + " " * 11),
        ("a /* b /* c */ d */ = 1", "a" + " " * 19 + "= 1"),
        ("'--' = `/* ` -- '", "'--' = `/* `     "),
        ("r'\\' -- a", "r'\\'     "),
        ("'it''s -- ' = \"-- \"", "'it''s -- ' = \"-- \""),
        ("a /*+ hint */ /* open", "a /*+ hint */ /* open"),
        ("a /* b /*+ c */ d */", "a /* b /*+ c */ d */"),
    ],
)
def test_comments_become_blanks(text: str, bare: str) -> None:
    assert without_comments(text) == bare
    assert len(bare) == len(text)
