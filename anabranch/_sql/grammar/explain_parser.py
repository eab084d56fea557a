"""Parses EXPLAIN of a change of rows and of OPTIMIZE; any other EXPLAIN is Spark's."""

from __future__ import annotations

from anabranch._sql.grammar.cursor import behind_with
from anabranch._sql.grammar.maintenance_parser import optimize
from anabranch._sql.grammar.reader import Reader
from anabranch._sql.grammar.row_parser import delete, insert, merge, truncate, update
from anabranch._sql.grammar.row_values import RowChange
from anabranch._sql.grammar.statement_values import ExplainChange, OptimizeTable

MODES = ("EXTENDED", "FORMATTED", "CODEGEN", "COST")
"""The modes of EXPLAIN."""


def explain(r: Reader) -> ExplainChange | None:
    """Parse EXPLAIN, with one of `MODES`, of a change of rows or of OPTIMIZE; None if it is of anything else."""
    mode = next((word for word in MODES if r.take(word)), "")
    change = _change_after_with(r) if r.at("WITH") else _change(r)
    return None if change is None else ExplainChange(change, mode)


def _change(r: Reader) -> RowChange | OptimizeTable | None:
    if r.take("OPTIMIZE"):
        return optimize(r)
    if r.take("DELETE"):
        return delete(r)
    if r.take("TRUNCATE", "TABLE"):
        return truncate(r)
    if r.take("UPDATE"):
        return update(r)
    if r.take("MERGE"):
        return merge(r)
    return insert(r) if r.take("INSERT") else None


def _change_after_with(r: Reader) -> RowChange | None:
    first, after = r.i, behind_with(r.tokens, ("INSERT", "MERGE"))
    if after is None:
        return None
    r.i = after
    if r.take("INSERT"):
        return insert(r, (first, after))
    return merge(r, (first, after)) if r.take("MERGE") else None
