"""Checks and respells the expression of a rule before Spark may evaluate it, whoever wrote the table.

Knows a documented subset of Spark's expressions. Knows nothing of rows or sessions. Pure. Guarantee: the result is made
of the table's own columns, literals, operators and the functions of `rules.functions`, respelled word by word, so that
Spark can read nothing else in it; a text with anything else is refused. The module is one recursive-descent parser,
which is why it is longer than others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from anabranch.protocol.rules.clocks import MOMENTS, has_moments, is_clock, is_of_today, texts_alone
from anabranch.protocol.rules.cursor import MOST_NESTED, Cursor, too_deep
from anabranch.protocol.rules.functions import CLOCKS, CLOCKS_WITHOUT_ARGUMENTS, FUNCTIONS, READS_A_SCHEMA, TIMES
from anabranch.protocol.rules.words import END, NotUnderstood, quoted, words_of
from anabranch.protocol.schema.types import Array, DataType, Field, Map, Struct

_PREFIXES = ("+", "-", "~", "!")
_SIGNS = frozenset("= == <=> <> != < <= > >= + - * / % & | ^ || << >> >>>".split())  # noqa: SIM905
_LITERALS = frozenset({"true", "false", "null"})
_TYPED = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz"})
_BARE_CLOCKS = frozenset({"current_date", "current_timestamp", "localtimestamp"})
_WITH_UNIT = frozenset({"timestampadd", "timestampdiff", "dateadd", "datediff", "date_add", "date_diff"})
_ONLY_WITH_UNIT = frozenset({"timestampadd", "timestampdiff"})
_UNITS = frozenset(
    """year years quarter month months week weeks day days dayofyear hour hours minute minutes second seconds
    millisecond milliseconds microsecond microseconds nanosecond nanoseconds""".split()  # noqa: SIM905
)
_FIELDS = _UNITS | {"yearofweek", "dayofweek", "dow", "dayofweek_iso", "dow_iso", "doy", "quarters"}
_QUERIES = frozenset({"select", "from", "table", "values", "with"})
_KEYWORDS = frozenset({"not", "case", "cast", "try_cast", "interval", *_LITERALS})


@dataclass(frozen=True)
class Reading:
    """A text that may be evaluated.

    Attributes:
        text: to be given to Spark.
        functions: those that it calls, which must be Spark's own in the session.
        subscripts: whether it accesses a list or map by ``[ ]``.
    """

    text: str
    functions: frozenset[str] = frozenset()
    subscripts: bool = False


def read(text: str, columns: Struct, *, clock: bool, clock_texts: bool = False, gives_moment: bool = False) -> Reading:
    """A rule's text over these columns, in the form in which it may be evaluated.

    Args:
        clock: whether it may call functions that read the clock.
        clock_texts: whether it may hold texts that mean the current time, as ``DATE'today'``.
        gives_moment: whether its value becomes a date or timestamp.

    Raises:
        NotUnderstood: it holds anything that is not allowed.

    Example:
        >>> read("A > abs(-1)", Struct((Field("a", "long"),)), clock=False).text
        '`a` > abs( - 1 )'
    """
    if not isinstance(text, str):
        raise NotUnderstood("a value that is no text", "a rule is SQL")
    reader = _Reader(words_of(text), columns=columns, clock=clock, clock_texts=clock_texts, moments=gives_moment)
    try:
        reader.expression()
    except RecursionError:
        raise too_deep() from None
    reader.expect_end()
    reader.check_texts()
    return Reading(" ".join(reader.out), frozenset(reader.functions), reader.subscripts)


@dataclass
class _Reader(Cursor):
    """Parses an expression; ``scopes`` are the arguments of the enclosing lambdas, ``moments`` whether it uses dates
    and timestamps, ``suspects`` the texts in it that then mean the current time.
    """

    columns: Struct = field(default_factory=Struct)
    clock: bool = False
    clock_texts: bool = False
    moments: bool = False
    suspects: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    scopes: list[frozenset[str]] = field(default_factory=list)
    subscripts: bool = False

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self) -> None:
        """Take an operand, and all operators and operands after it."""
        self.operand()
        while self._operator():
            pass

    def operand(self) -> None:
        signs = 0
        while self.at_sign(*_PREFIXES) or self.at("not"):
            if self.at("not") and self.at_sign("(", by=1):
                self.functions.add("not")
            self.put(self.ahead().text.upper())
            signs += 1
        if signs > MOST_NESTED:
            raise too_deep()
        first = self.i
        self._primary()
        self._behind(first)

    def _behind(self, first: int) -> None:
        """Take members, subscripts and ``::`` casts after an operand."""
        while True:
            if self.take_sign("["):
                self.subscripts = True
                self.nested(self.expression)
                self.expect_sign("]")
            elif self.take_sign("::"):
                self._cast(first, self.i - 1)
            elif self.take_sign("."):
                self.own_name()
            else:
                return

    def _operator(self) -> bool:
        """Take an operator and its right operand; returns whether there is one."""
        if self.take_sign(*_SIGNS) or self.take("and", "or", "div"):
            self.operand()
            return True
        if self.take("is"):
            self.take("not")
            if self.take("distinct"):
                self.expect("from")
                self.operand()
            elif not self.take("null", "true", "false", "unknown"):
                self.fail("it does not stand behind IS")
            return True
        return self._predicate()

    def _predicate(self) -> bool:
        negated = self.take("not")
        if self.take("in"):
            self._listed() if self.at_sign("(") else self.operand()  # position('a' IN b)
        elif self.take("between"):
            self.functions.add("between")
            self.operand()
        elif self.take("like", "ilike"):
            if self.take("any", "all", "some"):
                self._listed()
            else:
                self.operand()
                if self.take("escape"):
                    self._text()
        elif self.take("rlike", "regexp"):
            self.operand()
        elif negated:
            self.fail("it does not stand behind NOT")
        else:
            return False
        return True

    def _listed(self) -> None:
        """Take expressions in parentheses."""
        self.expect_sign("(")
        self.nested(self.expression)
        while self.take_sign(","):
            self.nested(self.expression)
        self.expect_sign(")")

    def _primary(self) -> None:
        word = self.ahead()
        match word.kind:
            case "number" | "bytes":
                self.put(word.spelling)
            case "text":
                first = self.i
                while self.ahead().kind == "text":
                    self.put(self.ahead().spelling)
                said = [each.spelling for each in self.words[first : self.i]]
                self.suspects += [" ".join(said)] if is_clock(said) else []
            case "sign" if word.text == "(":
                self._listed()
            case "word" | "name":
                self._named()
            case _:
                self.fail("an operand is expected there")

    def _named(self) -> None:
        word = self.ahead().folded
        if self.at_sign("(", by=1):
            self._call()
        elif word in _LITERALS:
            self.put(word.upper())
        elif word in _TYPED and self.ahead(1).kind == "text":
            self.put(word.upper())
            self._moment(word, [self.ahead().spelling])
            self._text()
        elif word == "case":
            self.nested(self._case)
        elif word == "interval" and self.columns.find("interval") is None:
            self._interval()
        elif word in _KEYWORDS:
            self.fail("it has a meaning of its own; write a column of that name in backticks")
        elif word in _BARE_CLOCKS and self.columns.find(word) is None and not self._is_argument(word):
            self._check_clock(word)
            self.moments = True
            self.put(f"{word}()")
            self.functions.add(word)
        else:
            self._column()

    def _text(self) -> None:
        if self.ahead().kind != "text":
            self.fail("a text is expected there")
        self.put(self.ahead().spelling)

    def _case(self) -> None:
        self.put("CASE")
        if not self.at("when"):
            self.expression()
        self.expect("when")
        self._branch()
        while self.take("when"):
            self._branch()
        if self.take("else"):
            self.expression()
        self.expect("end")

    def _branch(self) -> None:
        self.expression()
        self.expect("then")
        self.expression()

    def _interval(self) -> None:
        self.put("INTERVAL")
        parts = 0
        while self.ahead().kind in ("text", "number") or self.at_sign("-", "+", "("):
            self._amount()
            parts += 1
            if not self.take(*_UNITS):
                break
            if self.take("to") and not self.take(*_UNITS):
                self.fail("a unit is expected there")
        if parts == 0:
            self.fail("an interval is expected there")

    def _amount(self) -> None:
        self.take_sign("-", "+")
        if self.at_sign("("):
            self._listed()
        elif self.ahead().kind in ("text", "number"):
            self.put(self.ahead().spelling)
        else:
            self.fail("an amount is expected there")

    # -- names ---------------------------------------------------------------------------------------------------------

    def _is_argument(self, name: str) -> bool:
        return any(name.lower() in scope for scope in self.scopes)

    def _column(self) -> None:
        """Take a lambda's argument, or a column and its members, in the schema's spelling."""
        name = self.ahead().text
        if self._is_argument(name):
            self.put(quoted(name))
            return
        found = self.columns.find(name)
        if found is None and self.ahead().folded in _QUERIES:
            raise NotUnderstood("a subquery", "a rule is decided by the values of one row")
        if found is None:
            raise NotUnderstood(f"the name {name}", "it is none of the columns that it may use", unknown=name)
        path, self.i = quoted(found.name), self.i + 1
        kind: DataType = found.type
        self.moments |= has_moments(kind)
        while self.at_sign("."):
            self.i += 1
            name, kind = self._member(kind)
            path = f"{path}.{quoted(name)}"
            self.i += 1
        if self.at_sign("("):
            raise NotUnderstood(path, "it is no function")
        self.out.append(path)

    def _member(self, kind: DataType) -> tuple[str, DataType]:
        """The member of a struct or of the structs in a list, or the value of a map, that the next word names."""
        word = self.ahead()
        if word.kind in ("word", "name"):
            if isinstance(kind, Map):
                return word.text, kind.value
            if isinstance(kind, Array) and isinstance(kind.element, Struct):
                name, inner = self._member(kind.element)
                return name, Array(inner)
            member: Field | None = kind.find(word.text) if isinstance(kind, Struct) else None
            if member is not None:
                return member.name, member.type
        raise NotUnderstood(f"the name {word}", "there is no such member", unknown=word.text)

    # -- texts that are a clock ----------------------------------------------------------------------------------------

    def check_texts(self) -> None:
        """Raises if a text becomes a date or timestamp of the current time."""
        if self.moments and self.suspects and not self.clock_texts:
            raise _by_the_clock(self.suspects[0])

    def _cast(self, first: int, after: int) -> None:
        """Take the target type of a cast."""
        kind = self.ahead().folded
        if kind in MOMENTS:
            self.moments = True
            self._moment(kind, texts_alone(self.words[first:after]))
        self.type_()

    def _moment(self, kind: str, texts: list[str] | None) -> None:
        """Raises if what becomes a date or timestamp is a text that means the current time."""
        if not texts or self.clock_texts:
            return
        if is_clock(texts) or (kind != "date" and is_of_today(texts)):
            raise _by_the_clock(" ".join(texts))

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self) -> None:
        name = self.ahead().folded
        if name not in FUNCTIONS | CLOCKS:
            shown = self.ahead().text
            raise NotUnderstood(f"the function {shown}", "it is not on the list of functions that rules may call")
        empty = self.at_sign(")", by=2)
        if name in CLOCKS or (empty and name in CLOCKS_WITHOUT_ARGUMENTS):
            self._check_clock(name)
        self.moments |= name in TIMES or name in MOMENTS
        self.put(f"{name}(")
        self.i += 1
        if name in _WITH_UNIT and self.at(*_UNITS) and self.at_sign(",", by=1) and self._counts_three():
            self.put(self.ahead().folded.upper())
            self.expect_sign(",")
        elif name in _ONLY_WITH_UNIT:
            self.fail("a unit such as DAY is expected there")
        elif name not in ("cast", "try_cast"):  # these are words of the grammar, as those with a unit are
            self.functions.add(name)
        self.nested(lambda: self._arguments(name))
        self.expect_sign(")")

    def _check_clock(self, name: str) -> None:
        if not self.clock:
            raise NotUnderstood(f"the function {name}", "the value would change with the clock")

    def _arguments(self, name: str) -> None:
        if self.at_sign(")"):
            return
        match name:
            case "cast" | "try_cast":
                first = self.i
                self.expression()
                self.expect("as")
                self._cast(first, self.i - 1)
                return
            case "extract":
                if not self.take(*_FIELDS):
                    self.fail("a part of a time is expected there")
                self.expect("from")
            case "trim" if self.take("both", "leading", "trailing"):
                if self.take("from"):
                    self.expression()
                    return
        self._argument_list(name)

    def _argument_list(self, name: str) -> None:
        first = self.i
        self._argument()
        number = 1
        while self.take_sign(","):
            number += 1
            if number == 2 and name in READS_A_SCHEMA:
                self._columns_as_text()
            else:
                self._argument()
        if number == 1:
            if name in MOMENTS | TIMES:
                self._moment(name, texts_alone(self.words[first : self.i]))
            self._words_between(name)

    def _words_between(self, name: str) -> None:
        """Take the keywords that older forms have instead of commas, as ``substring(x FROM 1 FOR 2)``."""
        if name == "trim" and self.take("from"):
            self.expression()
        elif name in ("substring", "substr", "overlay"):
            if name == "overlay" and self.take("placing"):
                self.expression()
            if self.take("from"):
                self.expression()
            if self.take("for"):
                self.expression()

    def _argument(self) -> None:
        arguments = self._lambda()
        if arguments is None:
            self.expression()
        else:
            self.scopes.append(arguments)
            self.nested(self.expression)
            self.scopes.pop()

    def _lambda(self) -> frozenset[str] | None:
        """Take the arguments of a lambda and its arrow; None where there is none."""
        if self.ahead().kind in ("word", "name") and self.at_sign("->", by=1):
            names = [self.ahead().text]
            self.put(quoted(names[0]))
        elif self.at_sign("(") and (found := self._names_before_arrow()):
            names = found
            self.out.append("( " + " , ".join(map(quoted, names)) + " )")
            self.i += 2 * len(names) + 1
        else:
            return None
        self.expect_sign("->")
        return frozenset(name.lower() for name in names)

    def _names_before_arrow(self) -> list[str]:
        names, at = [], 1
        while self.ahead(at).kind in ("word", "name"):
            names.append(self.ahead(at).text)
            if not self.at_sign(",", by=at + 1):
                break
            at += 2
        return names if self.at_sign(")", by=at + 1) and self.at_sign("->", by=at + 2) else []

    def _columns_as_text(self) -> None:
        """Take a schema given as one plain text that is not JSON."""
        spelling = self.ahead().spelling if self.ahead().kind == "text" else ""
        if not spelling.startswith("'") or any(sign in spelling for sign in '{}"\\[') or self.ahead(1).kind == "text":
            raise NotUnderstood(str(self.ahead()), "columns are said by one text, such as 'a INT, b STRING'")
        self.put(spelling)

    def _counts_three(self) -> bool:
        """Whether the call whose arguments begin here has three of them."""
        depth, commas, at = 0, 0, 0
        while (word := self.ahead(at)) is not END:
            if word.kind == "sign":
                depth += (word.text in "([") - (word.text in ")]")
                if depth < 0:
                    break
                commas += word.text == "," and depth == 0
            at += 1
        return commas == 2


def _by_the_clock(text: str) -> NotUnderstood:
    return NotUnderstood(f"the text {text}", "as a date or timestamp its value would change with the clock")
