"""Spelling: an expression as a text that Spark can read in one way only.

Guarantee: each operation stands in parentheses of its own, each name in backticks and each word as the parser read it,
so Spark reads the tree that was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anabranch._protocol.expressions.syntax import (
    Call,
    Case,
    Cast,
    Columns,
    Interval,
    Lambda,
    Literal,
    Member,
    Name,
    Operation,
    Subscript,
    Syntax,
    Typed,
)
from anabranch._protocol.expressions.words import quote_name

Spell = Callable[[Syntax], str]


def to_sql(node: Syntax, spell_name: Callable[[Name], str] | None = None) -> str:
    """The text of an expression.

    Args:
        spell_name: what stands in the place of a name; the name itself by default.

    Example:
        >>> spelled(parsed("a = -1 OR NOT b"))
        '((`a` = -1) OR (NOT `b`))'
    """

    def spell(each: Syntax) -> str:
        return spell_name(each) if isinstance(each, Name) and spell_name is not None else node_to_sql(each, spell)

    return spell(node)


def node_to_sql(node: Syntax, spell: Spell) -> str:
    """The text of a node whose parts are spelled by a function."""
    match node:
        case Literal():
            return node.spelling
        case Typed():
            return f"{node.kind.upper()} {node.text.spelling}"
        case Columns():
            return node.text.spelling
        case Name():
            return ".".join(map(quote_name, node.parts))
        case Interval():
            return " ".join(["INTERVAL", *(each if isinstance(each, str) else spell(each) for each in node.pieces)])
        case Operation():
            return f"({_operation(node, spell)})"
        case Call():
            return _call(node, list(map(spell, node.arguments)))
        case Cast(operand, type_, how):
            return f"{how.upper()}({spell(operand)} AS {type_})"
        case Case():
            return _case(node, spell)
        case Member():
            return f"({spell(node.operand)}).{quote_name(node.name)}"
        case Subscript():
            return f"{spell(node.operand)}[{spell(node.index)}]"
        case Lambda():
            names = ", ".join(map(quote_name, node.arguments))
            return f"{names if len(node.arguments) == 1 else f'({names})'} -> {spell(node.body)}"
    raise TypeError(node)


def _operation(node: Operation, spell: Spell) -> str:
    operator, inner = node.operator, node.operands[0]
    if operator == "not" and isinstance(inner, Operation) and inner.operator.startswith("is "):
        return f"{spell(inner.operands[0])} IS NOT {inner.operator[3:].upper()}"
    first, *others = map(spell, node.operands)
    match operator:
        case "not":
            return f"NOT {first}"
        case "row":
            return ", ".join([first, *others])
        case "+x" | "-x" | "~x":
            return f"{operator[0]} ({first})" if first[0].isdigit() or first[0] == "." else f"{operator[0]} {first}"
        case "between":
            return f"{first} BETWEEN {others[0]} AND {others[1]}"
        case _ if operator == "in" or operator.endswith((" any", " all")):
            return f"{first} {operator.upper()} ({', '.join(others)})"
        case "like" | "ilike":
            return f"{first} {operator.upper()} {' ESCAPE '.join(others)}"
        case "is null" | "is true" | "is false" | "is unknown":
            return f"{first} {operator.upper()}"
    return f" {operator.upper()} ".join([first, *others])


def _call(node: Call, arguments: Sequence[str]) -> str:
    inside = ", ".join(arguments)
    if node.words:
        inside = " ".join(f"{word} {each}" for word, each in zip(node.words, arguments, strict=True)).strip()
    return f"{node.name if node.function.isidentifier() else node.function}({inside})"


def _case(node: Case, spell: Spell) -> str:
    operand = [] if node.operand is None else [spell(node.operand)]
    branches = [f"WHEN {spell(condition)} THEN {spell(value)}" for condition, value in node.branches]
    otherwise = [] if node.otherwise is None else [f"ELSE {spell(node.otherwise)}"]
    return " ".join(["CASE", *operand, *branches, *otherwise, "END"])
