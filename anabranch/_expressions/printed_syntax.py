"""PySpark Columns as syntax: the printed form of a Column, such as ``=(id, 3)``, is parsed like the text ``id = 3``.

Pure. Guarantee: a printed form of which any part is ambiguous has no syntax, except a number without an L, which may be
a decimal, too: the caller decides. A classic session prints texts in quotes; SQL in ``F.expr`` is printed as written,
and is parsed only where it looks like the printed form of a Column with the same meaning.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass

from anabranch._protocol.expressions import syntax as S

Named = Callable[[str], "tuple[str, ...] | None"]
"""Splits the printed name of a column or member into its parts; None where it may be no name."""
Number = Callable[[str], str]

_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_CALL = re.compile(r"(<=>|<=|>=|!=|==|[=<>+*/%&|^!-]|[A-Za-z_]\w*)\(")
_LEAF = re.compile(r"([^\s(),'\"\[\]][^(),'\"\[\]]*?)(?=[],)[]|$| AS [A-Z]| WHEN | THEN | ELSE | END)")
_NUMBER = re.compile(r"-?\d+L?|-?\d+\.\d+(?:E-?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6}", re.ASCII)
_CHAIN = re.compile(r"((and|or)\()\1*")
_TYPE = re.compile(r" AS ([A-Z]+(?:\(\d+(?:, ?\d+)?\))?)\)")
_PART = re.compile(r"(?:`((?:[^`]|``)+)`|([^.`]+))(?:\.|$)")
_WORDS = {"true": "boolean", "false": "boolean", "null": "null"}
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
_OPERATORS = frozenset({"=", "<=>", "<", "<=", ">", ">=", "!=", "+", "-", "*", "/", "%", "&", "|", "^", "and", "or"})
_POSTFIX = {"isnull": "is null", "isnotnull": "is not null"}
_NEGATED = frozenset({"!", "not"})
_LIKE = frozenset({"like", "ilike"})
_MAX_DEPTH = 60


class _Ambiguous(Exception):
    """The printed form is ambiguous, or is not known here."""


def syntax_of(
    text: str, named: Named, zone: dt.tzinfo | None = None, *, quotes: bool = True, number: Number = str
) -> S.Syntax | None:
    """The syntax of a printed Column; None where that is not certain.

    Args:
        zone: of the session, where known.
        quotes: whether texts are printed in quotes, as on a classic session.
        number: how SQL spells a printed number.

    Example:
        >>> syntax_of("=(id, 3)", parts_of).operator
        '='
    """
    reading = _Reading(text, named, zone, quotes, number)
    try:
        syntax, end = reading.expression(0, 0)
    except _Ambiguous:
        return None
    return syntax if end == len(text) else None


def parts_of(name: str) -> tuple[str, ...] | None:
    """The parts of a printed name, in which parts with a dot are in backticks."""
    parts, end = list[str](), 0
    while end < len(name):
        match = _PART.match(name, end)
        if match is None:
            return None
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        end = match.end()
    return None if not parts or name.endswith(".") else tuple(parts)


@dataclass(frozen=True)
class _Reading:
    """A parser of one printed form; each method returns the syntax that begins at a position, and where it ends."""

    text: str
    named: Named
    zone: dt.tzinfo | None
    quotes: bool
    number: Number

    def expression(self, at: int, depth: int) -> tuple[S.Syntax, int]:
        if depth > _MAX_DEPTH:
            raise _Ambiguous
        syntax, at = self._first(at, depth)
        while self.text.startswith("[", at):
            key, at = self.expression(at + 1, depth + 1)
            syntax, at = S.Subscript(syntax, key), self._expect("]", at)
        return syntax, at

    def _first(self, at: int, depth: int) -> tuple[S.Syntax, int]:
        if string := _STRING.match(self.text, at):
            return S.Literal("text", string[1], string[0], "\\" not in string[0], is_printed=True), string.end()
        if self.text.startswith("CASE WHEN ", at):
            return self._case(at, depth + 1)
        if chain := _CHAIN.match(self.text, at):
            return self._chain(chain[2], chain.end(), len(chain[0]) // len(chain[1]), depth + 1)
        if call := _CALL.match(self.text, at):
            return self._call(call[1], call.end(), depth + 1)
        if leaf := _LEAF.match(self.text, at):
            return self._leaf(leaf[1]), leaf.end()
        raise _Ambiguous

    def _expect(self, word: str, at: int) -> int:
        if not self.text.startswith(word, at):
            raise _Ambiguous
        return at + len(word)

    def _case(self, at: int, depth: int) -> tuple[S.Syntax, int]:
        branches, otherwise, at = list[tuple[S.Syntax, S.Syntax]](), None, at + len("CASE")
        while self.text.startswith(" WHEN ", at):
            when, at = self.expression(at + len(" WHEN "), depth)
            then, at = self.expression(self._expect(" THEN ", at), depth)
            branches.append((when, then))
        if self.text.startswith(" ELSE ", at):
            otherwise, at = self.expression(at + len(" ELSE "), depth)
        return S.Case(None, tuple(branches), otherwise), self._expect(" END", at)

    def _chain(self, operator: str, at: int, count: int, depth: int) -> tuple[S.Syntax, int]:
        """Operands that one operator joins, however many: ``or(or(or(a, b), c), d)``."""
        first, at = self.expression(at, depth)
        operands = [first]
        for _ in range(count):
            operand, at = self.expression(self._expect(", ", at), depth)
            operands.append(operand)
            at = self._expect(")", at)
        return S.Operation(operator, tuple(operands)), at

    def _call(self, name: str, at: int, depth: int) -> tuple[S.Syntax, int]:
        if name in ("CAST", "TRY_CAST"):
            value, at = self.expression(at, depth)
            if (kind := _TYPE.match(self.text, at)) is None:
                raise _Ambiguous
            return S.Cast(value, kind[1], name.lower()), kind.end()
        arguments = list[S.Syntax]()
        while not self.text.startswith(")", at):
            argument, at = self.expression(self._expect(", ", at) if arguments else at, depth)
            arguments.append(argument)
        if not self.quotes and sum(isinstance(a, S.Name) for a in arguments) > 1:
            raise _Ambiguous  # each of them may be a text
        return _operation_or_call(name, tuple(arguments)), at + 1

    def _leaf(self, text: str) -> S.Syntax:
        if _NUMBER.fullmatch(text):
            spelled = self.number(text)
            return S.Literal("number", spelled, spelled)
        match self.named(text), self._constant(text):
            case tuple(parts), None:
                return S.Name(parts, tuple(True for _ in parts))
            case None, S.Literal() | S.Call() | S.TypedLiteral() as constant:
                return constant
        raise _Ambiguous

    def _constant(self, text: str) -> S.Syntax | None:
        kind = _WORDS.get(text.lower())
        if kind:
            return S.Literal(kind, text.lower(), text.upper())
        if text in _NOT_FINITE:
            return S.Call("double", (S.Literal("text", text, f"'{text}'"),))
        return self._date_or_timestamp(text) if self.quotes else None

    def _date_or_timestamp(self, text: str) -> S.Syntax | None:
        """A date, or a timestamp converted to UTC: it is printed in the JVM's zone, so all zones have to agree."""
        if _DATE.fullmatch(text):
            return S.TypedLiteral("date", S.Literal("text", text, f"'{text}'"))
        if not _TIMESTAMP.fullmatch(text):
            return None
        wall = dt.datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f")
        walls = [wall.replace(fold=fold) for fold in (0, 1)]
        offsets = {w.astimezone().utcoffset() for w in walls}
        offsets |= {w.replace(tzinfo=self.zone).utcoffset() for w in walls}
        if self.zone is None or len(offsets) > 1:
            return None
        utc = wall.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f") + " UTC"
        return S.TypedLiteral("timestamp", S.Literal("text", utc, f"'{utc}'"))


def _operation_or_call(name: str, operands: tuple[S.Syntax, ...]) -> S.Syntax:
    """An operator or a call."""
    word = "=" if name == "==" else name.lower()
    match operands:
        case [_] if word in _NEGATED:
            return S.Operation("not", operands)
        case [one] if word in _POSTFIX:
            is_null = S.Operation("is null", (one,))
            return is_null if word == "isnull" else S.Operation("not", (is_null,))
        case [_, _] if word in _OPERATORS or word in _LIKE:
            return S.Operation(word, operands)
        case [_, _, *_] if word == "in":
            return S.Operation("in", operands)
    is_word = name[0].isalpha() or name[0] == "_"
    if not is_word or word in _OPERATORS or word in ("in", "not", *_LIKE):
        raise _Ambiguous
    return S.Call(name, operands)
