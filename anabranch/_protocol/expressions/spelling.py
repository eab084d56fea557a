"""Spelling: an expression as a text that Spark can read in one way only.

Guarantee: each operation is in its own parentheses, each name in backticks and each word as the parser read it, so that
Spark reads the same tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anabranch._protocol.expressions.lexer import quote_name
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
    TypedLiteral,
)

Spell = Callable[[Syntax], str]


def to_sql(node: Syntax, spell_name: Callable[[Name], str] | None = None) -> str:
    """Spell an expression.

    Args:
        spell_name: returns the text of a name; by default the name itself.

    Example:
        >>> to_sql(parse_expression("a = -1 OR NOT b"))
        '((`a` = -1) OR (NOT `b`))'
    """

    def spell(part: Syntax) -> str:
        return spell_name(part) if isinstance(part, Name) and spell_name is not None else node_to_sql(part, spell)

    return spell(node)


def node_to_sql(node: Syntax, spell: Spell) -> str:
    """Spell a node; ``spell`` spells its parts."""
    match node:
        case Literal():
            return node.spelling
        case TypedLiteral():
            return f"{node.kind.upper()} {node.text.spelling}"
        case Columns():
            return node.text.spelling
        case Name():
            return ".".join(map(quote_name, node.parts))
        case Interval():
            return " ".join(["INTERVAL", *(piece if isinstance(piece, str) else spell(piece) for piece in node.pieces)])
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
    first, *rest = map(spell, node.operands)
    match operator:
        case "not":
            return f"NOT {first}"
        case "row":
            return ", ".join([first, *rest])
        case "+x" | "-x" | "~x":
            return f"{operator[0]} ({first})" if first[0].isdigit() or first[0] == "." else f"{operator[0]} {first}"
        case "between":
            return f"{first} BETWEEN {rest[0]} AND {rest[1]}"
        case _ if operator == "in" or operator.endswith((" any", " all")):
            return f"{first} {operator.upper()} ({', '.join(rest)})"
        case "like" | "ilike":
            return f"{first} {operator.upper()} {' ESCAPE '.join(rest)}"
        case "is null" | "is true" | "is false" | "is unknown":
            return f"{first} {operator.upper()}"
    return f" {operator.upper()} ".join([first, *rest])


def _call(node: Call, arguments: Sequence[str]) -> str:
    inside = ", ".join(arguments)
    if node.words:
        inside = " ".join(f"{word} {argument}" for word, argument in zip(node.words, arguments, strict=True)).strip()
    return f"{node.name if node.function.isidentifier() else node.function}({inside})"


def _case(node: Case, spell: Spell) -> str:
    operand = [] if node.operand is None else [spell(node.operand)]
    branches = [f"WHEN {spell(condition)} THEN {spell(value)}" for condition, value in node.branches]
    otherwise = [] if node.otherwise is None else [f"ELSE {spell(node.otherwise)}"]
    return " ".join(["CASE", *operand, *branches, *otherwise, "END"])
