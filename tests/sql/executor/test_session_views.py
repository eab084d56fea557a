"""What is remembered of temporary views: in which order they are recreated, and that none reads itself."""

from __future__ import annotations

from anabranch._expressions.dialect import tokenize
from anabranch._sql.executor.session_views import (
    SessionView,
    ViewOverViews,
    dependencies_first,
    find_new_view,
    would_read_itself,
)


def views(**reads: str) -> dict[tuple[str, ...], SessionView]:
    return {(name,): ViewOverViews(frozenset((below,) for below in text.split())) for name, text in reads.items()}


def test_a_view_comes_after_those_that_it_reads_and_comes_once() -> None:
    known = views(top="left right", left="base", right="base t", base="t", other="t")
    assert dependencies_first(known, [("top",), ("base",), ("t",)]) == [("base",), ("left",), ("right",), ("top",)]


def test_a_view_that_would_read_itself_is_noticed_through_others_too() -> None:
    known = views(outer="inner", inner="v")
    assert would_read_itself(known, ("v",), frozenset({("v",)}))
    assert would_read_itself(known, ("v",), frozenset({("outer",)}))
    assert not would_read_itself(known, ("w",), frozenset({("outer",)}))


def test_a_statement_of_sparks_that_creates_a_temporary_view_is_recognised() -> None:
    names = {
        "CREATE TEMP VIEW V AS SELECT 1": ("v",),
        "CREATE OR REPLACE GLOBAL TEMPORARY VIEW v AS SELECT 1": ("global_temp", "v"),
        "CREATE VIEW v AS SELECT 1": None,
        "CREATE TEMP VIEW": None,
        "SELECT 1": None,
        "": None,
    }
    assert {text: find_new_view(tokenize(text)) for text in names} == names
