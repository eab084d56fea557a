"""The parser: reads the part of Spark's expression grammar that a single row can evaluate.

Knows words and their order, and no columns. Guarantee: it reads a text as Spark does, or raises `ParseError`: it
reads no subqueries, windows, clauses of aggregates, parameters, or names that are keywords. The module is one
recursive-descent parser, hence its length. Source: SqlBaseParser.g4 of Spark 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anabranch._protocol.expressions.cursor import MOST_NESTED, Cursor, too_deep
from anabranch._protocol.expressions.lexer import ParseError, quote_name, words_of
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

_MAX_CHAIN = 150
"""The maximum number of chained operators, each of which takes the result of the one before; AND and OR take any
number.
"""

_OR, _AND, _NOT, _PREDICATE, _COMPARISON, _PREFIX = 1, 2, 3, 4, 5, 12
_LEVELS: Mapping[str, int] = {
    **dict.fromkeys(("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="), _COMPARISON),
    **{"|": 6, "^": 7, "&": 8},
    **dict.fromkeys(("<<", ">>", ">>>"), 9),
    **dict.fromkeys(("+", "-", "||"), 10),
    **dict.fromkeys(("*", "/", "%", "div"), 11),
}
"""The precedence of binary operators."""
_SYNONYMS = {"==": "=", "<>": "!="}
_CONSTANTS = frozenset({"true", "false", "null"})
_TYPED = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz"})
_WITH_UNIT = frozenset({"timestampadd", "timestampdiff", "dateadd", "datediff", "date_add", "date_diff"})
_ONLY_WITH_UNIT = frozenset({"timestampadd", "timestampdiff"})
_UNITS = frozenset(
    """year years quarter month months week weeks day days dayofyear hour hours minute minutes second seconds
    millisecond milliseconds microsecond microseconds nanosecond nanoseconds""".split()  # noqa: SIM905
)
_FIELDS = _UNITS | {"yearofweek", "dayofweek", "dow", "dayofweek_iso", "dow_iso", "doy", "quarters"}
_QUERIES = frozenset({"select", "from", "table", "values", "with", "map", "reduce"})
_ENDS_A_NAME = frozenset({*_LEVELS, ")", ",", ".", "]"}) - {"+", "-", "*"}
_KEYWORDS = frozenset(
    """not case cast try_cast interval true false null anti cross except full inner intersect join lateral left natural
    on right semi setminus union using""".split()  # noqa: SIM905
)
_BEGIN_JOINS = frozenset({"anti", "cross", "full", "inner", "join", "lateral", "left", "natural", "right", "semi"})
_WORDS_BETWEEN: Mapping[str, Mapping[int, tuple[str, ...]]] = {
    "trim": {1: ("from",)},
    "substring": {1: ("from",), 2: ("for",)},
    "substr": {1: ("from",), 2: ("for",)},
    "overlay": {1: ("placing",), 2: ("from",), 3: ("for",)},
}
"""The keywords that may follow the n-th argument."""
_WITH_WORDS = frozenset({"extract", "overlay", "substr", "substring", "trim"})
_READS_COLUMNS = frozenset({"from_csv", "from_json"})


def parse_expression(text: str, columns: frozenset[str] = frozenset()) -> Syntax:
    """Parse an expression.

    Args:
        columns: names in lower case that mean columns even if they are keywords, such as ``interval``.

    Raises:
        ParseError: the text is not an expression, or not one that this parser reads.

    Example:
        >>> parse_expression("a > abs(-1)").operator
        '>'
    """
    parser = _Parser(words_of(text), columns=columns)
    try:
        expression = parser.expression()
    except RecursionError:
        raise too_deep() from None
    parser.expect_end()
    return expression


@dataclass
class _Parser(Cursor):
    """Reads an expression; ``columns`` are those of `parse_expression`."""

    columns: frozenset[str] = frozenset()

    # -- operators -----------------------------------------------------------------------------------------------------

    def expression(self, level: int = _OR) -> Syntax:
        """An operand with all operators that bind at least as tight as a level."""
        start = self.i
        bound = _NOT if self._negates() else _PREFIX
        left = self._operand(level)
        for _ in range(_MAX_CHAIN):
            next_level = self._next_level()
            if next_level < level or (next_level >= _PREDICATE and bound <= _PREDICATE):
                return left
            left, bound = self.with_span(self._operation(next_level, left), start), next_level
        raise too_deep()

    def _next_level(self) -> int:
        """The level of the next operator; 0 if there is none."""
        word = self.ahead()
        if word.kind == "sign" or word.lower_word == "div":
            return _LEVELS.get(word.text.lower(), 0)
        after = self.ahead(1).lower_word if word.lower_word == "not" else word.lower_word
        if after in ("in", "between", "like", "ilike", "rlike", "regexp") or word.lower_word == "is":
            return _PREDICATE
        return {"or": _OR, "and": _AND}.get(word.lower_word, 0)

    def _operation(self, level: int, left: Syntax) -> Operation:
        if level == _PREDICATE:
            return self._predicate(left)
        word = self.ahead().text.lower()
        if level <= _AND:
            operands = [left]
            while self.take(word):
                operands.append(self.expression(level + 1))
            return Operation(word, tuple(operands))
        self.next()
        if word == "|" and self.at(*_BEGIN_JOINS):
            self.fail("behind `|` Spark reads a join here; put it in parentheses")
        return Operation(_SYNONYMS.get(word, word), (left, self.expression(level + 1)))

    def _predicate(self, left: Syntax) -> Operation:
        start = self.i
        if self.take("is"):
            return self._is(left, start)
        negated, word = self.take("not"), self.next().lower_word
        word = "rlike" if word == "regexp" else word
        if word == "in":
            operation = Operation(word, (left, *self._expression_list(may_be_query=True)))
        elif word == "between":
            low = self.expression(_COMPARISON)
            self.expect("and")
            operation = Operation(word, (left, low, self.expression(_COMPARISON)))
        elif word != "rlike" and self.at("any", "all", "some") and self.at_sign("(", by=1):
            kind = self.next().lower_word
            quantified = f"{word} {'any' if kind == 'some' else kind}"
            if negated:  # negates each comparison, not their conjunction
                return Operation(f"not {quantified}", (left, *self._expression_list()))
            operation = Operation(quantified, (left, *self._expression_list()))
        else:
            operation = Operation(word, (left, self.expression(_COMPARISON), *self._escape(word)))
        operation = self.with_span(operation, start)
        return Operation("not", (operation,)) if negated else operation

    def _escape(self, word: str) -> tuple[Syntax, ...]:
        return (self._text(),) if word != "rlike" and self.take("escape") else ()

    def _is(self, left: Syntax, start: int) -> Operation:
        negated = self.take("not")
        if self.take("distinct"):
            self.expect("from")
            operation = Operation("<=>", (left, self.expression(_COMPARISON)))
            negated = not negated
        elif self.at("null", "true", "false", "unknown"):
            operation = Operation(f"is {self.next().lower_word}", (left,))
        else:
            self.fail("it cannot follow IS")
        operation = self.with_span(operation, start)
        return Operation("not", (operation,)) if negated else operation

    def _operand(self, level: int) -> Syntax:
        start = self.i
        if self._negates():
            if level > _NOT:
                self.fail("NOT negates a whole condition; put it in parentheses")
            self.next()
            return self.with_span(Operation("not", (self.read_nested(lambda: self.expression(_NOT)),)), start)
        if self.at_sign("-") and self.ahead(1).kind == "number":
            self.next()
            number = self.next()
            literal = self.with_span(Literal("number", f"-{number.text}", f"-{number.spelling}"), start)
            return self._suffixes(literal, start)
        if self.at_sign("+", "-", "~"):
            sign = self.next().text
            return self.with_span(Operation(f"{sign}x", (self.read_nested(lambda: self._operand(_PREFIX)),)), start)
        return self._suffixes(self._primary(), start)

    def _negates(self) -> bool:
        return self.at_sign("!") or (self.at("not") and not self._is_name())

    def _suffixes(self, operand: Syntax, start: int) -> Syntax:
        """Parse the members, subscripts and ``::`` casts behind an operand."""
        for _ in range(MOST_NESTED):
            if self.take_sign("["):
                result: Syntax = Subscript(operand, self.read_nested(lambda: self.expression(_COMPARISON)))
                self.expect_sign("]")
            elif self.take_sign("::"):
                result = Cast(operand, self.type_(), "cast")
            elif self.take_sign("."):
                word = self.name_part()
                if isinstance(operand, Name):
                    result = Name((*operand.parts, word.text), (*operand.quoted, word.kind == "name"))
                else:
                    result = Member(operand, word.text)
            else:
                return operand
            operand = self.with_span(result, start)
        raise too_deep()

    def _expression_list(self, *, may_be_query: bool = False) -> tuple[Syntax, ...]:
        """Parse expressions in parentheses."""
        self.expect_sign("(")
        if may_be_query:
            self._refuse_query()
        expressions = [self.read_nested(self.expression)]
        while self.take_sign(","):
            expressions.append(self.read_nested(self.expression))
        self.expect_sign(")")
        return tuple(expressions)

    def _refuse_query(self) -> None:
        """Raises ParseError if a query begins here; a name followed by an operator begins none."""
        if self.at(*_QUERIES) and not (self.ahead(1).kind == "sign" and self.ahead(1).text in _ENDS_A_NAME):
            if self.at("map", "reduce") and self.at_sign("(", by=1):
                return
            raise ParseError("a subquery", "its value depends on other rows", at=self.ahead().start)

    # -- operands ------------------------------------------------------------------------------------------------------

    def _primary(self) -> Syntax:
        start, word = self.i, self.ahead()
        match word.kind:
            case "number" | "bytes":
                self.next()
                return self.with_span(Literal(word.kind, word.text, word.spelling), start)
            case "text":
                return self._texts()
            case "sign" if word.text == "(":
                self.next()
                self._refuse_query()
                self.i -= 1
                row = self._expression_list()
                return row[0] if len(row) == 1 else self.with_span(Operation("row", row), start)
            case "word" | "name":
                return self._primary_from_word()
        self.fail("an operand is expected there")

    def _primary_from_word(self) -> Syntax:
        start, word = self.i, self.ahead().lower_word
        if word == "case" and not self._is_name():
            return self.with_span(self.read_nested(self._case), start)
        if self.at_sign("(", by=1):
            return self._call()
        if word in _CONSTANTS:
            self.next()
            return self.with_span(Literal("null" if word == "null" else "boolean", word, word.upper()), start)
        if word in _TYPED and self.ahead(1).kind == "text":
            self.next()
            return self.with_span(TypedLiteral(word, self._text()), start)
        if word == "interval" and word not in self.columns:
            return self.with_span(self._interval(), start)
        if word in _KEYWORDS and not self._is_name():
            self.fail("it is a keyword; write a column of that name in backticks")
        part = self.next()
        return self.with_span(Name((part.text,), (part.kind == "name",)), start)

    def _is_name(self) -> bool:
        """Whether a keyword is the name of a column here, since nothing else could be at this place."""
        after = self.ahead(1)
        ends = after.kind == "end" or (after.kind == "sign" and after.text in _ENDS_A_NAME)
        return self.ahead().lower_word in self.columns and ends

    def _text(self) -> Literal:
        start, word = self.i, self.ahead()
        if word.kind != "text":
            self.fail("a text is expected there")
        self.next()
        return self.with_span(Literal("text", word.text, word.spelling, word.is_certain), start)

    def _texts(self) -> Literal:
        """Concatenate adjacent texts into one."""
        start, texts = self.i, []
        while self.ahead().kind == "text":
            texts.append(self.next())
        content, spelling = "".join(word.text for word in texts), " ".join(word.spelling for word in texts)
        return self.with_span(Literal("text", content, spelling, all(word.is_certain for word in texts)), start)

    def _case(self) -> Case:
        self.next()
        operand = None if self.at("when") else self.expression()
        branches = []
        while self.take("when"):
            condition = self.expression()
            self.expect("then")
            branches.append((condition, self.expression()))
        if not branches:
            self.fail("WHEN is expected there")
        otherwise = self.expression() if self.take("else") else None
        self.expect("end")
        return Case(operand, tuple(branches), otherwise)

    def _interval(self) -> Interval:
        """Parse amounts with their units, or one text that holds all of them; a sign without an amount and a unit
        behind it is an operator.
        """
        self.next()
        if self.ahead().kind == "text" and self.ahead(1).lower_word not in _UNITS:
            return Interval((self._text().spelling,))
        pieces: list[Syntax | str] = []
        while (count := self._amount()) > 0:
            pieces += [self.next().spelling for _ in range(count - 1)]
            pieces.append(self.next().lower_word.upper())
            if self.take("to"):
                if not self.at(*_UNITS):
                    self.fail("a unit is expected there")
                pieces += ["TO", self.next().lower_word.upper()]
        if not pieces:
            self.fail("an interval is expected there")
        return Interval(tuple(pieces))

    def _amount(self) -> int:
        """The number of words of the amount and unit that come next; 0 if there is none."""
        signs = 1 if self.at_sign("-", "+") else 0
        is_amount = self.ahead(signs).kind in ("text", "number") and self.ahead(signs + 1).lower_word in _UNITS
        return signs + 2 if is_amount else 0

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self) -> Syntax:
        start, word = self.i, self.next()
        name, function = word.lower_word, quote_name(word.text) if word.kind == "name" else word.text
        self.expect_sign("(")
        self._refuse_query()
        if name in ("cast", "try_cast"):
            call: Syntax = self.read_nested(lambda: self._cast(name))
        else:
            call = self.read_nested(lambda: self._arguments(function, name))
        self.expect_sign(")")
        return self.with_span(call, start)

    def _cast(self, how: str) -> Cast:
        operand = self.expression()
        self.expect("as")
        return Cast(operand, self.type_(), how)

    def _arguments(self, function: str, name: str) -> Call:
        """Parse the arguments of a call, with the keywords of some functions."""
        arguments: list[Syntax] = []
        words, is_value = [""], name in _WITH_WORDS
        if self.at_sign(")"):
            return Call(function, ())
        if name in _WITH_UNIT and self.at(*_UNITS) and self.at_sign(",", by=1) and self._counts_three():
            words[0], is_value = f"{self.next().lower_word.upper()} ,", True
            self.expect_sign(",")
        elif name in _ONLY_WITH_UNIT:
            self.fail("a unit such as DAY is expected there")
        elif name == "extract":
            if not self.at(*_FIELDS):
                self.fail("a part of a time is expected there")
            words[0] = f"{self.next().lower_word.upper()} FROM"
            self.expect("from")
        elif name == "trim" and self.at("both", "leading", "trailing"):
            words[0] = self.next().lower_word.upper() + (" FROM" if self.take("from") else "")
        elif name == "position":
            return self._position(function)
        while True:
            is_columns = len(arguments) == 1 and name in _READS_COLUMNS
            arguments.append(self._columns() if is_columns else self._argument(is_value=is_value))
            between = "," if self.take_sign(",") else self._word_between(name, len(arguments))
            if not between:
                break
            words.append(between)
        if words[0].endswith(",") and len(arguments) != 2:
            self.fail("two arguments are expected behind a unit such as DAY")
        is_plain = not words[0] and all(word == "," for word in words[1:])
        return Call(function, tuple(arguments), () if is_plain else tuple(words))

    def _position(self, function: str) -> Call:
        first = self.expression(_COMPARISON)
        if self.take("in"):
            return Call(function, (first, self.expression(_COMPARISON)), ("", "IN"))
        arguments = [first]
        while self.take_sign(","):
            arguments.append(self._argument())
        return Call(function, tuple(arguments))

    def _word_between(self, name: str, count: int) -> str:
        """The keyword in place of a comma, as in ``substring(x FROM 1 FOR 2)``."""
        return self.next().lower_word.upper() if self.at(*_WORDS_BETWEEN.get(name, {}).get(count, ())) else ""

    def _argument(self, *, is_value: bool = False) -> Syntax:
        start, arguments = self.i, self._lambda()
        if arguments is None:
            return self.expression(_COMPARISON if is_value else _OR)
        body = self.read_nested(self.expression)
        return self.with_span(Lambda(arguments, body), start)

    def _lambda(self) -> tuple[str, ...] | None:
        """Parse the arguments of a lambda, and its arrow; None if no lambda begins here."""
        if self.ahead().kind in ("word", "name") and self.at_sign("->", by=1):
            names = [self.next().text]
        elif self.at_sign("(") and (names := self._names_before_arrow()):
            self.i += 2 * len(names) + 1
        else:
            return None
        self.expect_sign("->")
        return tuple(names)

    def _names_before_arrow(self) -> list[str]:
        names, at = [], 1
        while self.ahead(at).kind in ("word", "name"):
            names.append(self.ahead(at).text)
            if not self.at_sign(",", by=at + 1):
                break
            at += 2
        return names if self.at_sign(")", by=at + 1) and self.at_sign("->", by=at + 2) else []

    def _columns(self) -> Columns:
        """Parse a schema that is one plain text and not JSON."""
        word = self.ahead()
        spelling = word.spelling if word.kind == "text" else ""
        if not spelling.startswith("'") or any(sign in spelling for sign in '{}"\\[') or self.ahead(1).kind == "text":
            raise ParseError(str(word), "a schema must be one text, such as 'a INT, b STRING'", at=word.start)
        start = self.i
        return self.with_span(Columns(self._text()), start)

    def _counts_three(self) -> bool:
        """Whether the call whose arguments begin here has three of them."""
        depth, commas, at = 0, 0, 0
        while (word := self.ahead(at)).kind != "end":
            if word.kind == "sign":
                depth += (word.text in "([") - (word.text in ")]")
                if depth < 0:
                    break
                commas += word.text == "," and depth == 0
            at += 1
        return commas == 2
