"""Trees of sqlglot: how a MERGE's expressions are read."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from anabranch.expressions.context import Context
from anabranch.expressions.dialect import TokenizedText
from anabranch.expressions.tokens import is_misread, reads_one_way, without_strangers


def readable_tree(
    text: TokenizedText, context: Context, is_known: Callable[[exp.Expr], bool]
) -> tuple[exp.Expr | None, bool]:
    """The tree of a text that Spark surely reads so, with what is no function of Spark's own as an unknown one; and
    whether ``is_known`` of its names. That is asked of this tree first, and of the text's own only where a function's
    arguments can be read in no other way, as in ``extract(YEAR FROM at)``.
    """
    is_certain = reads_one_way(text) and text.is_readable and not is_misread(text)
    known = without_strangers(text, context).tree if is_certain else None
    if known is not None and is_known(known):
        return known, True
    return known, text.tree is not None and is_known(text.tree)
