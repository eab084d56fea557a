"""Exact texts: SQL whose meaning for every row is certain without asking Spark.

Guarantee: a predicate from here has for each row the truth value that Spark would find, whatever the session's
settings; where there is any doubt (a kind of literal that Spark would cast, a clock, a function) there is none.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from anabranch.expressions.context import Context
from anabranch.expressions.dialect import TokenizedText
from anabranch.expressions.trees import known_tree, literal_of, predicate_of
from anabranch.protocol.exactness import is_exact
from anabranch.protocol.predicates import Predicate
from anabranch.protocol.schema.types import Struct


def exact_predicate(text: str, schema: Struct) -> Predicate | None:
    """What a condition is for each row; None where that is not certain.

    Example:
        >>> exact_predicate("id > 0", Struct((Field("id", "long"),)))
        Compare(column='id', op='>', value=0)
    """
    context = _context(schema)
    predicate = predicate_of(known_tree(TokenizedText(text), context), context)
    return predicate if is_exact(predicate, schema) else None


def exact_literal(text: str) -> tuple[Any] | None:
    """The value of a literal in a tuple of one (it may be NULL), or None where the text is none for certain."""
    context = _context(Struct())
    tree = known_tree(TokenizedText(text), context)
    return None if tree is None else literal_of(tree, context)


def _context(schema: Struct) -> Context:
    """No zone is known, so that no literal that needs one is read."""
    return Context("", schema, dt.datetime(1970, 1, 1, tzinfo=dt.UTC), "unknown", lambda names: False)
