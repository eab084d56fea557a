"""Where a mutation would be no change of a decision: types, texts, decorators, assertions, imports for types.

Knows Python's syntax tree only. Types and texts of errors would give mutants that nobody can notice; an assertion, a
union of types or an addition to a text gives one that every test notices which comes by.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Place = tuple[int, int]
"""A line, from 1, and a column in characters, from 0."""
Span = tuple[Place, Place]

_LOGGERS = ("_logger", "logger", "log")
_LEVELS = ("debug", "info", "warning", "error", "exception")
_SHOWN_OR_CHECKED = ("compare", "repr", "strict")
"""Arguments of `dataclasses.field` and `zip` that choose nothing but what is shown of a value, or how a mistake of ours
ends.
"""
_BUILTIN_TYPES = {"bool", "bytes", "dict", "float", "frozenset", "int", "list", "object", "set", "str", "tuple", "type"}


def left_out(source: str) -> list[Span]:
    """Where nothing is mutated, as spans whose end is outside."""
    lines = source.splitlines()
    return [span for node in ast.walk(ast.parse(source)) for span in _spans(node, lines)]


def is_in(place: Place, spans: list[Span]) -> bool:
    """Whether one of the spans has the place."""
    return any(start <= place < end for start, end in spans)


def statement_lines(source: str, line: int) -> range:
    """The lines of the innermost statement around a line; of one with a body, its head only."""
    heads = [_head(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    return min((head for head in heads if line in head), key=len, default=range(line, line + 1))


def _head(node: ast.stmt) -> range:
    body = getattr(node, "body", None)
    end = node.end_lineno or node.lineno
    return range(node.lineno, max(node.lineno + 1, body[0].lineno) if body else end + 1)


def _spans(node: ast.AST, lines: list[str]) -> Iterator[Span]:
    for part in _parts(node):
        yield _start(part, lines), _end(part, lines)
    if isinstance(node, ast.BinOp) and (_is_text(node.left) or _is_text(node.right)):
        yield _end(node.left, lines), _start(node.right, lines)


def _parts(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The parts of a node that are left out as a whole."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield from node.decorator_list
    for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if isinstance(annotation, ast.expr):
            yield annotation
    if isinstance(node, ast.Raise):
        yield from (part for part in ast.walk(node) if isinstance(part, ast.JoinedStr))
    if isinstance(node, ast.Call):
        yield from (each.value for each in node.keywords if each.arg in _SHOWN_OR_CHECKED)
    if isinstance(node, ast.stmt | ast.expr) and _is_no_decision(node):
        yield node


def _is_no_decision(node: ast.stmt | ast.expr) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.Assign(targets=[ast.Name("__all__")]):
            return True
        case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(name), attr=level)):
            return name in _LOGGERS and level in _LEVELS
        case ast.BinOp(op=ast.BitOr()):
            return _is_type(node)
    return False


def _is_type(node: ast.expr) -> bool:
    """Whether it reads as a type: names in capitals of classes, built-in types, None, and unions of these."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_type(left) and _is_type(right)
        case ast.Subscript(value=value):
            return _is_type(value)
        case ast.Name(name) | ast.Attribute(attr=name):
            return name in _BUILTIN_TYPES or (name[:1].isupper() and not name.isupper())
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _start(node: ast.expr | ast.stmt, lines: list[str]) -> Place:
    return _place(lines, node.lineno, node.col_offset)


def _end(node: ast.expr | ast.stmt, lines: list[str]) -> Place:
    return _place(lines, node.end_lineno or node.lineno, node.end_col_offset or 0)


def _place(lines: list[str], line: int, byte: int) -> Place:
    """A place of the tree, which counts bytes, in characters."""
    return line, len(lines[line - 1].encode()[:byte].decode())
