"""The table of functions: what its page says, and what an entry promises."""

from __future__ import annotations

import re

import pytest

from anabranch._protocol.expressions import resolving
from anabranch._protocol.expressions.table import TABLE, Argument, ArgumentsNotSupported, Fit, add, function
from anabranch._protocol.rules.functions import FUNCTIONS
from tests.test_storeys import ROOT

PAGE = ROOT / "docs" / "concepts" / "expressions.md"


def test_the_page_lists_every_function_and_operator() -> None:
    assert resolving.resolve  # which fills the table
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ") and "`" in line]
    listed = [name.replace("\\|", "|") for line in lines for name in re.findall(r"`([^`]+)`", line)]
    assert sorted(listed) == sorted(TABLE)


def test_a_rule_may_call_every_function_that_is_computed_here() -> None:
    words = {name for name in TABLE if name.isidentifier()} - {"and", "or", "equal_null"}
    assert words - {"case"} <= FUNCTIONS


@pytest.mark.parametrize(
    "given",
    [
        [],
        [Argument("long")],
        [Argument("string"), Argument("integer")],
        [Argument("string"), Argument("integer", (None,))],
    ],
    ids=["none", "of another type", "no constant", "NULL"],
)
def test_an_entry_refuses_what_it_does_not_take(given: list[Argument]) -> None:
    with pytest.raises(ArgumentsNotSupported):
        TABLE["left"].fit(given)


def test_an_entry_is_given_constants_as_they_are() -> None:
    assert TABLE["left"].fit([Argument("string"), Argument("integer", (2,))]) == Fit("string", ("string",), (2,))
    assert TABLE["substring"].fit([Argument("string"), Argument("integer", (2,))]).options == (2,)


def test_a_name_has_one_entry() -> None:
    with pytest.raises(AssertionError):
        add("lower", lambda given: Fit("string", ()), lambda *_: None)
    with pytest.raises(AssertionError):
        function("upper", "string", gives="string")(lambda values: values)
