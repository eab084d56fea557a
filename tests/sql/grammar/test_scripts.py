"""A script is cut where its statements end."""

from __future__ import annotations

from anabranch._sql.grammar.scripts import split


def test_a_script_is_split_where_its_statements_end() -> None:
    script = "SELECT ';' -- ;\n; /* ; */\nSELECT `a;b`;;"
    assert split(script) == ["SELECT ';' -- ;", "/* ; */\nSELECT `a;b`"]
