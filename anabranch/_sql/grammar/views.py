"""Parses statements about persistent views, and refuses them for tables.

The catalog stores a table's name as a view of Spark's. Guarantee: no statement about views changes the name of a table,
and none leaves a persistent view with another query than it specifies.
"""

from __future__ import annotations

from typing import NoReturn

from anabranch._expressions.error_pointer import excerpt
from anabranch._sql.grammar.parts import Path, View
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.view_values import AlterView
from anabranch.errors import NotBuilt, TableIsNoView

_ALTERS = "EXPECT_VIEW_NOT_TABLE.USE_ALTER_TABLE"
_NO_OTHER = "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE"
_WRONG_COMMAND = "WRONG_COMMAND_FOR_OBJECT_TYPE"


def drop_view(r: Reader) -> None:
    """Leave ``DROP VIEW [IF EXISTS] v`` to Spark.

    Raises:
        TableIsNoView: it names a table.
    """
    r.take("IF", "EXISTS")
    at = r.i
    name = r.object_name("the name of a view")
    if name is not None and r.is_table(name):
        _refuse(r, at, name, "DROP VIEW", "DROP TABLE", _WRONG_COMMAND)


def alter_view(r: Reader) -> AlterView | None:
    """Parse ``ALTER VIEW v AS`` a query, if the query or the view reads a Delta table; any other ALTER VIEW is Spark's.

    Raises:
        TableIsNoView: it names a table. NotBuilt: it would change how a view of Delta tables follows them.
    """
    at = r.i
    name = r.object_name("the name of a view")
    if name is None:
        return None
    if r.is_table(name):
        instead = "CREATE OR REPLACE TABLE" if r.at("AS") else "ALTER TABLE"
        _refuse(r, at, name, "ALTER VIEW", instead, _NO_OTHER if r.at("AS") else _ALTERS)
    is_ours = isinstance(r.find_location(name), View)
    if is_ours and r.at("WITH"):
        raise NotBuilt(what="ALTER VIEW … WITH on a view of Delta tables", instead="Use ALTER VIEW … AS a query.")
    if not (r.take("AS") and (is_ours or r.reads_delta())):
        return None
    query = r.query()
    return AlterView(name, query, r.text[slice(*query.span)])


def _refuse(r: Reader, at: int, name: Path, statement: str, instead: str, condition: str) -> NoReturn:
    raise TableIsNoView(
        name=".".join(f"`{part}`" for part in name),
        statement=statement,
        instead=instead,
        delta_condition=condition,
        excerpt=excerpt(r.text, r.tokens[at].start, r.stop),
    )
