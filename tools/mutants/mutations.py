"""The mutants of a file: what cosmic-ray can change in its decision code.

Knows cosmic-ray's operators, and which of them change a decision. Left out are those whose mutants are mostly the same
program (``==`` for ``is``) or fail wherever they are run (``*`` for ``|``).
"""

from __future__ import annotations

import ast
import difflib
import functools
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import parso.python.tree  # before cosmic-ray, whose own order of imports runs in a circle
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    exception_replacer,
    number_replacer,
    unary_operator_replacement,
    zero_iteration_for_loop,
)

from .left_out import is_in, left_out
from .mutant import Mutant

_ORDERS = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")
_COMPARISONS = [(a, b) for a in _ORDERS for b in _ORDERS if a != b] + [("Is", "IsNot"), ("IsNot", "Is")]
_BINARIES = [
    *(("Add", "Sub"), ("Sub", "Add"), ("Mul", "FloorDiv"), ("Div", "Mul"), ("FloorDiv", "Mul"), ("Mod", "Mul")),
    *(("BitOr", "BitAnd"), ("BitAnd", "BitOr"), ("BitXor", "BitOr"), ("LShift", "RShift"), ("RShift", "LShift")),
]
_UNARIES = ("Delete_Not", "Delete_USub", "USub_UAdd", "Delete_Invert")
_HANDLERS = "ExceptionReplacer"
_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?![\w.])")
"""What cosmic-ray can replace in a handler: of a dotted name it cannot."""
_IDLE = {"name", "string", "newline", "endmarker", "fstring_start", "fstring_string", "fstring_end"}
"""Nodes that no operator changes, which are most."""


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All mutants of a file, those of no decision left out."""
    spans, nodes = left_out(source), [each for each in ast_nodes(get_ast(source)) if each.type not in _IDLE]
    lines = source.splitlines()
    found = []
    for name, operator in operators().items():
        for occurrence, (line, column) in enumerate(_places(operator, nodes)):
            is_name = _PLAIN_NAME.match(lines[line - 1], column) is not None
            if not is_in((line, column), spans) and (is_name or name != _HANDLERS):
                found.append(Mutant(path, line, column, name, occurrence))
    return sorted(found)


def mutated(source: str, mutant: Mutant) -> str | None:
    """The file with the mutant's change; None where that is no program, or the same one."""
    changed = mutate_code(source, operators()[mutant.operator], mutant.occurrence)
    try:
        is_other = changed is not None and ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return None
    return changed if is_other else None


def change(source: str, changed: str) -> list[str]:
    """The lines that differ, those of the source with a ``-``, those of the mutant with a ``+``."""
    lines = difflib.ndiff(source.splitlines(), changed.splitlines())
    return [line[0] + " " + line[2:].strip() for line in lines if line[:2] in ("- ", "+ ")]


@functools.cache
def operators() -> dict[str, Any]:
    """cosmic-ray's operators by their names."""
    classes = [
        *_named(comparison_operator_replacement, [f"ReplaceComparisonOperator_{a}_{b}" for a, b in _COMPARISONS]),
        *_named(binary_operator_replacement, [f"ReplaceBinaryOperator_{a}_{b}" for a, b in _BINARIES]),
        *_named(unary_operator_replacement, [f"ReplaceUnaryOperator_{name}" for name in _UNARIES]),
        *_named(boolean_replacer, ["AddNot", "ReplaceAndWithOr", "ReplaceOrWithAnd"]),
        *_named(boolean_replacer, ["ReplaceTrueWithFalse", "ReplaceFalseWithTrue"]),
        *_named(break_continue, ["ReplaceBreakWithContinue", "ReplaceContinueWithBreak"]),
        *_named(exception_replacer, [_HANDLERS]),
        *_named(number_replacer, ["NumberReplacer"]),
        *_named(zero_iteration_for_loop, ["ZeroIterationForLoop"]),
    ]
    return {each.__name__: each() for each in classes}


def _named(module: ModuleType, names: list[str]) -> list[Any]:
    return [getattr(module, name) for name in names]


def _places(operator: Any, nodes: list[parso.tree.NodeOrLeaf]) -> Iterator[tuple[int, int]]:
    for node in nodes:
        for start, _ in operator.mutation_positions(node):
            yield start
