"""Checks and respells the expression of a rule before Spark may evaluate it, whatever the origin of the table.

Knows which functions a rule may call. Knows nothing of rows or sessions. Pure. Guarantee: the result consists of the
table's own columns, literals, operators and the functions of `rules.functions`, respelled word by word, so that Spark
can read nothing else in it; a text with anything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from anabranch._protocol.expressions.cursor import too_deep
from anabranch._protocol.expressions.lexer import ParseError, quote_name
from anabranch._protocol.expressions.parser import parse_expression
from anabranch._protocol.expressions.spelling import node_to_sql
from anabranch._protocol.expressions.syntax import (
    Call,
    Cast,
    Lambda,
    Literal,
    Name,
    Operation,
    Subscript,
    Syntax,
    TypedLiteral,
)
from anabranch._protocol.rules.clocks import MOMENTS, has_moments, is_clock, is_of_today
from anabranch._protocol.rules.functions import CLOCKS, CLOCKS_WITHOUT_ARGUMENTS, FUNCTIONS, TIMES
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct

_BARE_CLOCKS = frozenset({"current_date", "current_timestamp", "localtimestamp"})
_OF_THE_GRAMMAR = frozenset({"timestampadd", "timestampdiff"})
"""Keywords under which no session can register a function."""
_AS_FUNCTIONS = frozenset({"between", "not"})
"""Operators that Spark looks up as functions."""
_NAMING = frozenset({"arrays_zip", "struct"})
"""Functions whose value has members that are named as their arguments are written."""


@dataclass(frozen=True)
class CheckedExpression:
    """A text that may be evaluated.

    Attributes:
        text: the text for Spark.
        functions: the functions that it calls, which must be Spark's own in the session.
        subscripts: whether it accesses a list or map by ``[ ]``.
    """

    text: str
    functions: frozenset[str] = frozenset()
    subscripts: bool = False


def read(
    text: str, columns: Struct, *, clock: bool, clock_texts: bool = False, gives_moment: bool = False
) -> CheckedExpression:
    """Check a rule's text over these columns, and respell it in the form in which it may be evaluated.

    Args:
        clock: whether it may call functions that read the clock.
        clock_texts: whether it may contain texts that mean the current time, as ``DATE'today'``.
        gives_moment: whether its value becomes a date or timestamp.

    Raises:
        ParseError: it contains anything that is not allowed.

    Example:
        >>> read("A > abs(-1)", Struct((Field("a", "long"),)), clock=False).text
        '(`a` > abs(-1))'
    """
    if not isinstance(text, str):
        raise ParseError("a value that is no text", "a rule is SQL")
    reader = _Reader(columns, clock, clock_texts, gives_moment)
    try:
        respelled = reader.spell(parse_expression(text, frozenset(name.lower() for name in columns.names)))
    except RecursionError:
        raise too_deep() from None
    reader.check_texts()
    return CheckedExpression(respelled, frozenset(reader.functions), reader.subscripts)


@dataclass
class _Reader:
    """Respells an expression, part by part. ``scopes`` are the arguments of the enclosing lambdas, ``moments`` whether
    it uses dates and timestamps, ``suspects`` the texts in it that would then mean the current time.
    """

    columns: Struct
    clock: bool
    clock_texts: bool
    moments: bool
    suspects: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    scopes: list[frozenset[str]] = field(default_factory=list)
    subscripts: bool = False

    def spell(self, node: Syntax) -> str:
        """Spell an allowed part. Raises ParseError: it is not allowed."""
        match node:
            case Name():
                return self._name(node)
            case Literal("text", content) if is_clock(content):
                self.suspects.append(node.spelling)
            case TypedLiteral():
                self._check_moment(node.kind, node.text)
            case Cast():
                self._check_cast(node)
            case Call():
                self._check_call(node)
                return node_to_sql(node, self._spell_as_written if node.name in _NAMING else self.spell)
            case Operation(operator):
                self.functions |= {operator} & _AS_FUNCTIONS
            case Subscript():
                self.subscripts = True
            case Lambda():
                with self._scope(node.arguments):
                    return node_to_sql(node, self.spell)
        return node_to_sql(node, self.spell)

    # -- names ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def _scope(self, names: Sequence[str]) -> Iterator[None]:
        self.scopes.append(frozenset(name.lower() for name in names))
        yield
        self.scopes.pop()

    def _spell_as_written(self, node: Syntax) -> str:
        return self._name(node, as_written=True) if isinstance(node, Name) else self.spell(node)

    def _name(self, node: Name, *, as_written: bool = False) -> str:
        """A lambda's argument, or a column and its members in the schema's spelling, except perhaps the last one."""
        first, *members = node.parts
        if any(first.lower() in scope for scope in self.scopes):
            return ".".join(map(quote_name, node.parts))
        column = self.columns.find(first)
        if column is None:
            return self._no_column(node)
        path, kind = [column.name], column.type
        self.moments |= has_moments(kind)
        for member in members:
            name, kind = _member(kind, member, node)
            path.append(name)
        path = [*path[:-1], node.parts[-1]] if as_written else path
        return ".".join(map(quote_name, path))

    def _no_column(self, node: Name) -> str:
        name = node.parts[0]
        if node.quoted == (False,) and name.lower() in _BARE_CLOCKS:
            self._check_clock(name.lower())
            self.moments = True
            self.functions.add(name.lower())
            return f"{name.lower()}()"
        raise ParseError(f"the name {name}", "the rule may not use such a column", unknown=name)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _check_call(self, node: Call) -> None:
        name = node.name
        if node.function.lower() not in FUNCTIONS | CLOCKS or not node.function.isascii():
            reason = "it is not on the list of functions that rules may call"
            raise ParseError(f"the function {node.function}", reason)
        if name in CLOCKS or (not node.arguments and name in CLOCKS_WITHOUT_ARGUMENTS):
            self._check_clock(name)
        self.moments |= name in TIMES or name in MOMENTS
        if len(node.arguments) == 1 and name in MOMENTS | TIMES:
            self._check_moment(name, node.arguments[0])
        if name not in _OF_THE_GRAMMAR and not _has_unit(node):
            self.functions.add(name)

    def _check_clock(self, name: str) -> None:
        if not self.clock:
            raise ParseError(f"the function {name}", "the value would change with the clock")

    # -- texts that mean the current time ------------------------------------------------------------------------------

    def check_texts(self) -> None:
        """Raises ParseError if a text becomes a date or timestamp of the current time."""
        if self.moments and self.suspects and not self.clock_texts:
            raise _clock_text_error(self.suspects[0])

    def _check_cast(self, node: Cast) -> None:
        kind = node.type.lower()
        if kind in MOMENTS:
            self.moments = True
            self._check_moment(kind, node.operand)

    def _check_moment(self, kind: str, operand: Syntax) -> None:
        """Raises ParseError if the operand of a date or timestamp is a text that means the current time."""
        if self.clock_texts or not (isinstance(operand, Literal) and operand.kind == "text"):
            return
        if is_clock(operand.text) or (kind != "date" and is_of_today(operand.text)):
            raise _clock_text_error(operand.spelling)


def _has_unit(node: Call) -> bool:
    """Whether a call has a keyword as its first argument, as ``dateadd(DAY, 1, x)``."""
    return bool(node.words) and node.words[0].endswith(" ,")


def _member(kind: DataType, name: str, node: Name) -> tuple[str, DataType]:
    """A member of this name of a struct, or of the structs in a list, or the value of a map."""
    if isinstance(kind, Map):
        return name, kind.value
    if isinstance(kind, Array) and isinstance(kind.element, Struct):
        spelled, inner = _member(kind.element, name, node)
        return spelled, Array(inner)
    member: Field | None = kind.find(name) if isinstance(kind, Struct) else None
    if member is None:
        raise ParseError(f"the name {name}", "no such member exists", unknown=name)
    return member.name, member.type


def _clock_text_error(text: str) -> ParseError:
    return ParseError(f"the text {text}", "as a date or timestamp its value would change with the clock")
