"""Which tables a statement reads: every name that stands where SQL wants a table, with the query block around it.

Works on tokens in one pass. Guarantee: a name in the list of columns, in a condition or in a text is never taken for a
table, nor is that of a WITH where it is known; a block's condition is given only where rows for which it is not TRUE
cannot reach the block's result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from anabranch._expressions.dialect import Token, TokenType, word

ENDS_LIST = frozenset(
    """WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY UNION INTERSECT EXCEPT MINUS SET
    SELECT VALUES WHEN APPLY""".split()  # noqa: SIM905
)
_SET_OPERATORS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_ENDS_WHERE = ENDS_LIST - {"WHERE", "SET", "VALUES", "WHEN", "APPLY"}
_AFTER_TABLE = frozenset(
    """VERSION TIMESTAMP SYSTEM_VERSION SYSTEM_TIME TABLESAMPLE PIVOT UNPIVOT LATERAL JOIN LEFT RIGHT FULL INNER CROSS
    NATURAL SEMI ANTI ASOF ON USING FOR WITH OPTIONS MATCH_RECOGNIZE AS OF TO BY REPLACE PARTITION DRY RETAIN ZORDER
    LITE SHALLOW DEEP CLONE LIKE""".split()  # noqa: SIM905
)
_NO_ALIAS = _AFTER_TABLE | (ENDS_LIST - {"SELECT"})
_OPAQUE = frozenset(
    {"PIVOT", "UNPIVOT", "TABLESAMPLE", "LATERAL", "MATCH_RECOGNIZE", "RIGHT", "FULL", "NATURAL", "ASOF"}
)
"""Words in a FROM by which a condition over a table's columns may be about other rows than the table's."""
_STARTS_QUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"})
_WORDS = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_ENDS_ROW = frozenset({TokenType.R_PAREN, TokenType.NUMBER, TokenType.STRING, TokenType.RAW_STRING})
_BEHIND_ALIAS = frozenset({TokenType.COMMA, TokenType.R_PAREN})
BY_PATH = "table_changes_by_path"
FEEDS = frozenset({"table_changes", BY_PATH})
"""Functions that stand for the changes of a table."""


@dataclass
class Block:
    """One query block: what it reads, and the tokens of its WHERE; ``in_view``: behind a LATERAL VIEW, whose columns
    stand between commas.
    """

    relations: int = 0
    is_clear: bool = True
    where: tuple[int, int] | None = None
    in_list: bool = False
    is_left: bool = False
    in_view: bool = False


@dataclass
class Found:
    """A name where a table is wanted: tokens ``first`` to before ``after``, in a block; or that of one of `FEEDS`."""

    first: int
    after: int
    parts: tuple[str, ...]
    block: Block
    alias: str | None
    is_inner: bool
    takes_alias: bool
    asks_changes: bool = False


@dataclass
class _Group:
    """What stands in one pair of parentheses, or in none."""

    block: Block = field(default_factory=Block)
    names: list[str] = field(default_factory=list)
    is_call: bool = False
    takes_tables: bool = False
    where_from: int | None = None


def tables_read(tokens: Sequence[Token], first: int = 0) -> list[Found]:
    """Every table that the statement names from its token ``first`` on, in order."""
    return _Scan(tokens, first).run()


class _Scan:
    """One pass over the tokens of a statement."""

    def __init__(self, tokens: Sequence[Token], first: int) -> None:
        self._tokens, self._i = tokens, first
        self._stack = [_Group()]
        self._found: list[Found] = []
        self._defined: dict[int, str] = {}  # the names of a WITH, by the parentheses that end their queries
        self._known: Counter[str] = Counter()  # those names, as far as they count here
        self._opening = [i for i, token in enumerate(tokens) if token.token_type == TokenType.L_PAREN]
        self._closing = _closing(tokens)
        self._resumed: set[int] = set()  # where the alias of VALUES stands, behind which its list goes on
        self._awaited = self._arguments = -1  # where a table may be in parentheses; where those of a function are
        self._pipes = any(token.token_type == TokenType.PIPE_GT for token in tokens)

    def run(self) -> list[Found]:
        while self._i < len(self._tokens):
            self._step()
            self._i += 1
        while self._stack:
            self._close(self._stack.pop())
        return self._found

    def _step(self) -> None:
        token, group = self._tokens[self._i], self._stack[-1]
        said = word(token)
        group.block.in_list |= self._i in self._resumed
        if token.token_type == TokenType.L_PAREN:
            self._open(group)
        elif token.token_type == TokenType.R_PAREN:
            if len(self._stack) > 1:
                self._close(self._stack.pop())
            if (name := self._defined.get(self._i)) is not None:
                self._name(self._stack[-1], name)
        elif said == "WITH" and self._is_ctes():
            self._define(group)
        elif said in ("FROM", "JOIN", "USING") and self._wants_tables(said, group):
            self._relation(group, said)
        elif token.token_type == TokenType.COMMA and group.block.in_list and not group.block.in_view:
            self._relation(group, ",")
        elif said in ("TABLE", "INTO") and not self._is_dotted():
            self._plain(group)
        elif said in ENDS_LIST or token.token_type == TokenType.PIPE_GT:
            self._ends(group, said)
        elif said in _OPAQUE and group.block.in_list and not self._is_dotted():
            group.block.is_clear = False
            group.block.in_view |= said == "LATERAL" and self._word(self._i + 1) == "VIEW"
        elif said == "LEFT" and group.block.in_list:
            group.block.is_left = True

    # -- parentheses

    def _open(self, group: _Group) -> None:
        """Behind the parenthesis a block of its own begins; where a table is awaited, a list goes on there."""
        before, after = self._word(self._i - 1), self._word(self._i + 1)
        block = Block()
        is_call = self._i > 0 and self._tokens[self._i - 1].token_type in _WORDS and before not in ("IN", "EXISTS")
        new = _Group(block, is_call=is_call and after not in _STARTS_QUERY)
        self._stack.append(new)
        new.takes_tables = self._i == self._arguments
        if self._i == self._awaited and after not in _STARTS_QUERY:
            block.in_list, block.is_clear = True, False
            self._await(new, is_inner=False)

    def _close(self, group: _Group) -> None:
        self._close_where(group, self._i)
        self._known.subtract(group.names)

    def _name(self, group: _Group, name: str) -> None:
        """From here on a name means the query of a WITH, up to the parenthesis around it."""
        group.names.append(name)
        self._known[name] += 1

    # -- WITH

    def _is_ctes(self) -> bool:
        after = self._i + 1 + (self._word(self._i + 1) == "RECURSIVE")
        return self._is_name(after) and (self._word(after + 1) == "AS" or self._is(after + 1, TokenType.L_PAREN))

    def _define(self, group: _Group) -> None:
        """The names that a WITH defines: each is known behind its own query; of a recursive one in it as well."""
        recursive = self._word(self._i + 1) == "RECURSIVE"
        i = self._i + 1 + recursive
        while self._is_name(i):
            name = self._tokens[i].text.lower()
            i = self._behind(i)
            while self._word(i) in ("AS", "MAX"):  # what was skipped were the columns
                i = self._behind(i)
            self._defined[i - 1] = name
            if recursive:
                self._name(group, name)
            if not self._is(i, TokenType.COMMA):
                break
            i += 1

    def _behind(self, i: int) -> int:
        """The token behind the parenthesis that closes the next one from i on."""
        n = bisect_left(self._opening, i)
        closes = self._closing.get(self._opening[n]) if n < len(self._opening) else None
        return len(self._tokens) if closes is None else closes + 1

    # -- FROM

    def _wants_tables(self, said: str, group: _Group) -> bool:
        if self._is_dotted() or group.is_call:
            return False
        if said == "USING":  # of a MERGE; that of a JOIN has columns in parentheses behind it
            return not group.block.in_list
        return not (
            said == "FROM" and self._word(self._i - 1) == "DISTINCT" and self._word(self._i - 2) in ("IS", "NOT")
        )

    def _relation(self, group: _Group, said: str) -> None:
        block = group.block
        if said == "FROM" and (block.relations or block.where):
            group.block = block = Block()
        block.in_list = True
        block.relations += 1
        is_inner, block.is_left = not block.is_left, False
        self._await(group, is_inner=is_inner)

    def _await(self, group: _Group, *, is_inner: bool) -> None:
        """Take the table that comes next; a parenthesis there is one around tables, or around a query."""
        if self._is(self._i + 1, TokenType.L_PAREN):
            self._awaited = self._i + 1
        else:
            self._table(group, is_inner=is_inner, takes_alias=True)

    def _plain(self, group: _Group) -> None:
        """A table that stands behind TABLE or INTO, which takes no alias; that of a function may be in parentheses."""
        if group.takes_tables and self._is(self._i + 1, TokenType.L_PAREN):
            if self._word(self._i + 2) in _STARTS_QUERY:
                return
            self._i += 1
            self._stack.append(_Group())
        self._table(group, is_inner=False, takes_alias=False)

    def _table(self, group: _Group, *, is_inner: bool, takes_alias: bool) -> None:
        first = self._i + 1
        if self._word(first) == "LATERAL" and self._is(self._parts(first + 1)[1], TokenType.L_PAREN):
            first += 1  # LATERAL f(…), where LATERAL (…) is a query
        parts, after = self._parts(first)
        if not parts or (len(parts) == 1 and self._known[parts[0].lower()] > 0):
            return
        is_call = self._is(after, TokenType.L_PAREN)
        asks_changes = is_call and len(parts) == 1 and parts[0].lower() in FEEDS
        if is_call and not asks_changes:
            self._arguments = after
            return
        found = Found(first, after, parts, group.block, None, is_inner, takes_alias, asks_changes)
        self._found.append(found)

    def _parts(self, i: int) -> tuple[tuple[str, ...], int]:
        """A dotted name, and the token behind it."""
        parts: list[str] = []
        while self._is_name(i):
            parts.append(self._tokens[i].text)
            i += 1
            if not (self._is(i, TokenType.DOT) and self._is_name(i + 1)):
                break
            i += 1
        return tuple(parts), i

    # -- the end of a FROM, and of a WHERE

    def _ends(self, group: _Group, said: str) -> None:
        if self._is_dotted() or (group.block.in_list and self._is_alias(said)):
            return
        if said == "VALUES" and group.block.in_list:
            self._resumed |= self._alias_of_values()
        group.block.in_list = False
        if said == "WHERE" and group.block.relations and group.block.where is None:
            group.where_from = self._i + 1
        elif said in _ENDS_WHERE or said == "":
            self._close_where(group, self._i)
        if said in _SET_OPERATORS:
            group.block = Block()

    def _is_alias(self, said: str) -> bool:
        """Whether a word that may end a list is the alias of a table."""
        if said == "VALUES":  # behind AS, too, it may begin a query
            return self._i + 1 == len(self._tokens) or self._tokens[self._i + 1].token_type in _BEHIND_ALIAS
        return said not in ("", "SELECT") and self._word(self._i - 1) == "AS"

    def _alias_of_values(self) -> set[int]:
        """Where the alias of a VALUES stands, if it has one."""
        i = self._i + 1
        while i < len(self._tokens) and not (self._is(i, TokenType.R_PAREN) or self._word(i) in _NO_ALIAS - {"AS"}):
            if self._word(i) == "AS" or (self._tokens[i - 1].token_type in _ENDS_ROW and alias_at(self._tokens, i)[0]):
                return {i}
            i = self._closing.get(i, i) + 1
        return set()

    def _close_where(self, group: _Group, end: int) -> None:
        if group.where_from is not None:
            group.block.where = None if self._pipes else (group.where_from, end)
            group.where_from = None

    # -- tokens

    def _is(self, i: int, kind: TokenType) -> bool:
        return 0 <= i < len(self._tokens) and self._tokens[i].token_type == kind

    def _word(self, i: int) -> str:
        return word(self._tokens[i]) if 0 <= i < len(self._tokens) else ""

    def _is_name(self, i: int) -> bool:
        if not 0 <= i < len(self._tokens):
            return False
        token = self._tokens[i]
        return token.token_type in _WORDS or (word(token).isidentifier() and word(token) not in ("SELECT", "VALUES"))

    def _is_dotted(self) -> bool:
        return self._is(self._i - 1, TokenType.DOT) or self._is(self._i + 1, TokenType.DOT)


def _closing(tokens: Sequence[Token]) -> dict[int, int]:
    """For each parenthesis that opens the one that closes it, as far as there is one."""
    found, open_ = dict[int, int](), list[int]()
    for i, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            open_.append(i)
        elif token.token_type == TokenType.R_PAREN and open_:
            found[open_.pop()] = i
    return found


def alias_at(tokens: Sequence[Token], i: int) -> tuple[str | None, int]:
    """The alias that stands at a token, perhaps behind AS, and the token behind it."""
    explicit = i < len(tokens) and word(tokens[i]) == "AS" and (i + 1 >= len(tokens) or word(tokens[i + 1]) != "OF")
    at = i + explicit
    if at >= len(tokens) or (word(tokens[at]) in _NO_ALIAS and not explicit):
        return None, i
    token = tokens[at]
    is_name = token.token_type in _WORDS or (explicit and word(token).isidentifier() and word(token) != "SELECT")
    return (token.text, at + 1) if is_name else (None, i)
