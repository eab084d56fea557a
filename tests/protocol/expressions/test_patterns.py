"""Patterns of RLIKE: which are read, and what RE2 finds by their spelling."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from anabranch._protocol.expressions.patterns import LINE_ENDS, pattern_of
from anabranch._protocol.expressions.table import ArgumentsNotSupported
from tests.protocol.expressions.drawn_patterns import drawn_pattern, drawn_searched
from tests.support.tiers import examples

ONLY_SPARK = [
    *("", "a||b", "a|", "()", "(a", "a)", "[a", "a]", "}", "a{", "a{,3}", "a{3,2}", "a{0}", "a{100}", "{2}", "*a", "|"),
    *("a++", "a*+", "a?+", "a{2}+", "a**", "a+*", "a{2}{3}", "a???", "^*", "$+", "(^)*", "(^a|b)+", "(a*)*", "(a|b?)+"),
    *("((ab)*c)+", "(?i)a", "(?s).", "(?=a)", "(?!a)", "(?<=a)b", "(?<x>a)", "(?>a)", "(?#a)", "(?a", "(?", "(?:"),
    *(r"\s", r"\S", r"\b", r"\B", r"\1", r"\0", r"\x41", r"\u0041", r"\n", r"\t", r"\Qa\E", r"\p{L}", r"\h", r"\R"),
    *(r"\A", r"\z", r"\Z", r"\G", r"\k<x>", "\\", "a\\", "\\é", "[]", "[^]", "[]a]", "[a&&b]", "[&]", "[a[b]]", "[[a]"),
    *(
        "[^^]",
        "[a^]",
        "[z-a]",
        "[a-é]",
        "[é-ü]",
        "[+--]",
        "[a-c-e]",
        r"[\d-z]",
        r"[a-\d]",
        r"[\w&&a]",
        r"[\s]",
        r"[\D]",
    ),
    *(r"[\b]", r"[\Qa\E]", "[a-", "[a-]b-]", "🙂", "[🙂]", "\ud800", "a\nb", "\t", "\x00", "\u2028", "\u00a0", "[\n]"),
    *("(((((((((((a)))))))))))", "a" * 501, "(?:.{20}){5}", "(?:[abc]{30}x){20}", "a{2,}{3}", "(a{2,3}){2}+"),
]


@pytest.mark.parametrize("text", ONLY_SPARK)
def test_a_pattern_that_two_might_read_otherwise_is_left_to_spark(text: str) -> None:
    with pytest.raises(ArgumentsNotSupported):
        pattern_of(text)


@pytest.mark.parametrize(
    ("text", "found", "others"),
    [
        ("^a+$", ["a", "aa"], ["", "ab", "ba"]),
        ("a.c", ["abc", "a\u200bc", "a🙂c"], ["ac", *(f"a{each}c" for each in LINE_ENDS)]),
        (r"\d{2,3}-\w", ["x12-_"], ["1-a", "\u0661\u0662-a", "12-é"]),
        (r"^[\w.%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$", ["a.b@c-d.org"], ["a@b", "a b@c.org"]),
        (r"[^a-c]", ["d", "\n", "🙂"], ["", "abc"]),
        ("[-a]", ["-", "a"], ["b"]),
        ("[.*+?(){}|$]", list(".*+?(){}|$"), ["a", "\\", "^"]),
        ("(?:ab|c)*?d{0,2}x", ["x", "abcx", "ddx"], ["d"]),
        (r"\$\(\)\[\]\{\}\.\*\+\?\^\|\\\-\_\ ", ["$()[]{}.*+?^|\\-_ "], [""]),
        (r"^\D\W$", ["a-", "é🙂"], ["1-", "ab"]),
        ("e\u0301", ["e\u0301"], ["é", "e"]),
    ],
)
def test_a_pattern_finds_what_it_finds_in_java(text: str, found: list[str], others: list[str]) -> None:
    matched = pc.match_substring_regex(pa.array([*found, *others]), pattern_of(text).regular).to_pylist()
    assert matched == [True] * len(found) + [False] * len(others)


@pytest.mark.parametrize(
    ("text", "finds_nothing"),
    [
        ("a", False),
        ("a*", True),
        ("a*b", False),
        ("a|b*", True),
        ("^", True),
        ("(a?)(b?)", True),
        ("(ab){2}|^c", False),
    ],
)
def test_a_pattern_says_whether_the_empty_text_matches_it(text: str, finds_nothing: bool) -> None:
    assert pattern_of(text).finds_nothing is finds_nothing
    assert not finds_nothing or pc.match_substring_regex(pa.array([""]), pattern_of(text).regular)[0].as_py()


@pytest.mark.slow
def test_drawn_patterns_find_what_python_finds() -> None:
    draw, read = random.Random(7), 0
    for _ in range(examples(20_000, 500)):
        text = drawn_pattern(draw)
        try:
            pattern = pattern_of(text)
        except ArgumentsNotSupported:
            continue
        texts, read = [drawn_searched(draw) for _ in range(5)], read + 1
        theirs = re.compile(_for_python(text), re.ASCII)
        ours = pc.match_substring_regex(pa.array(texts), pattern.regular).to_pylist()
        assert ours == [theirs.search(each) is not None for each in texts], (text, texts)
    assert read > examples(10_000, 250)


def _for_python(text: str) -> str:
    pieces = re.findall(r"\\.|\[(?:\\.|[^\]])*\]|.", text, re.DOTALL)
    return "".join({".": f"[^{LINE_ENDS}]", "$": r"\Z"}.get(each, each) for each in pieces)
