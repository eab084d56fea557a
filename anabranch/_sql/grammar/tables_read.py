"""Finds the tables that a statement reads: every name where SQL expects a table, with its query block.

Works on tokens in one pass. Guarantee: a name in a list of columns, in a condition or in a string literal is never
taken for a table, nor is the name of a CTE in its scope. A block has a condition only if rows for which it is not TRUE
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
"""Words in a FROM clause after which a condition on a table's columns may test rows other than the table's."""
_STARTS_QUERY = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE"})
_WORDS = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_ENDS_ROW = frozenset({TokenType.R_PAREN, TokenType.NUMBER, TokenType.STRING, TokenType.RAW_STRING})
_BEHIND_ALIAS = frozenset({TokenType.COMMA, TokenType.R_PAREN})
BY_PATH = "table_changes_by_path"
FEEDS = frozenset({"table_changes", BY_PATH})
"""Table functions that return the changes of a table."""


@dataclass
class Block:
    """One query block.

    Attributes:
        relations: the number of tables and subqueries that it reads.
        is_clear: whether its condition tests only rows of its tables (`_OPAQUE`).
        where: the tokens of its WHERE clause.
        in_list: whether the scan is in its FROM clause.
        is_left: whether the next table is on the right of a LEFT JOIN.
        in_view: whether the scan is behind LATERAL VIEW, whose columns are separated by commas.
    """

    relations: int = 0
    is_clear: bool = True
    where: tuple[int, int] | None = None
    in_list: bool = False
    is_left: bool = False
    in_view: bool = False


@dataclass
class TableMention:
    """The name of a table, or of one of `FEEDS`: tokens ``first`` to before ``after``, in a block."""

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
    """The state of the scan within one pair of parentheses, or outside of all."""

    block: Block = field(default_factory=Block)
    names: list[str] = field(default_factory=list)
    is_call: bool = False
    takes_tables: bool = False
    where_from: int | None = None


def tables_read(tokens: Sequence[Token], first: int = 0) -> list[TableMention]:
    """Find every table that the statement names from its token ``first`` on, in order."""
    return _Scan(tokens, first).run()


class _Scan:
    """One pass over the tokens of a statement."""

    def __init__(self, tokens: Sequence[Token], first: int) -> None:
        self._tokens, self._i = tokens, first
        self._stack = [_Group()]
        self._mentions: list[TableMention] = []
        self._cte_ends: dict[int, str] = {}  # the names of CTEs, by the parentheses that end their queries
        self._scoped_ctes: Counter[str] = Counter()  # the names of CTEs in scope
        self._opening = [i for i, token in enumerate(tokens) if token.token_type == TokenType.L_PAREN]
        self._closing = _closing(tokens)
        self._resuming_aliases: set[int] = set()  # aliases of VALUES, after which the FROM clause goes on
        self._table_group = self._call_arguments = -1  # parentheses around tables; around arguments
        self._pipes = any(token.token_type == TokenType.PIPE_GT for token in tokens)

    def run(self) -> list[TableMention]:
        while self._i < len(self._tokens):
            self._step()
            self._i += 1
        while self._stack:
            self._close_group(self._stack.pop())
        return self._mentions

    def _step(self) -> None:
        token, group = self._tokens[self._i], self._stack[-1]
        keyword = word(token)
        group.block.in_list |= self._i in self._resuming_aliases
        if token.token_type == TokenType.L_PAREN:
            self._open_group(group)
        elif token.token_type == TokenType.R_PAREN:
            if len(self._stack) > 1:
                self._close_group(self._stack.pop())
            if (name := self._cte_ends.get(self._i)) is not None:
                self._scope_cte(self._stack[-1], name)
        elif keyword == "WITH" and self._is_ctes():
            self._define_ctes(group)
        elif keyword in ("FROM", "JOIN", "USING") and self._wants_tables(keyword, group):
            self._relation(group, keyword)
        elif token.token_type == TokenType.COMMA and group.block.in_list and not group.block.in_view:
            self._relation(group, ",")
        elif keyword in ("TABLE", "INTO") and not self._is_dotted():
            self._table_without_alias(group)
        elif keyword in ENDS_LIST or token.token_type == TokenType.PIPE_GT:
            self._end_clause(group, keyword)
        elif keyword in _OPAQUE and group.block.in_list and not self._is_dotted():
            group.block.is_clear = False
            group.block.in_view |= keyword == "LATERAL" and self._word(self._i + 1) == "VIEW"
        elif keyword == "LEFT" and group.block.in_list:
            group.block.is_left = True

    # -- parentheses

    def _open_group(self, group: _Group) -> None:
        """Begin a block after an opening parenthesis; where a table is expected, it continues a FROM clause."""
        before, after = self._word(self._i - 1), self._word(self._i + 1)
        block = Block()
        is_call = self._i > 0 and self._tokens[self._i - 1].token_type in _WORDS and before not in ("IN", "EXISTS")
        new = _Group(block, is_call=is_call and after not in _STARTS_QUERY)
        self._stack.append(new)
        new.takes_tables = self._i == self._call_arguments
        if self._i == self._table_group and after not in _STARTS_QUERY:
            block.in_list, block.is_clear = True, False
            self._expect_table(new, is_inner=False)

    def _close_group(self, group: _Group) -> None:
        self._close_where(group, self._i)
        self._scoped_ctes.subtract(group.names)

    def _scope_cte(self, group: _Group, name: str) -> None:
        """Put the name of a CTE in scope, up to the end of the enclosing parentheses."""
        group.names.append(name)
        self._scoped_ctes[name] += 1

    # -- WITH

    def _is_ctes(self) -> bool:
        after = self._i + 1 + (self._word(self._i + 1) == "RECURSIVE")
        return self._is_name(after) and (self._word(after + 1) == "AS" or self._is_type(after + 1, TokenType.L_PAREN))

    def _define_ctes(self, group: _Group) -> None:
        """Define the CTEs of a WITH: a name is in scope after its query, and in it if the WITH is recursive."""
        recursive = self._word(self._i + 1) == "RECURSIVE"
        i = self._i + 1 + recursive
        while self._is_name(i):
            name = self._tokens[i].text.lower()
            i = self._after_parenthesis(i)
            while self._word(i) in ("AS", "MAX"):  # the columns of the CTE were skipped
                i = self._after_parenthesis(i)
            self._cte_ends[i - 1] = name
            if recursive:
                self._scope_cte(group, name)
            if not self._is_type(i, TokenType.COMMA):
                break
            i += 1

    def _after_parenthesis(self, i: int) -> int:
        """Return the token after the parenthesis that closes the next one from token ``i`` on."""
        n = bisect_left(self._opening, i)
        closes = self._closing.get(self._opening[n]) if n < len(self._opening) else None
        return len(self._tokens) if closes is None else closes + 1

    # -- FROM

    def _wants_tables(self, keyword: str, group: _Group) -> bool:
        if self._is_dotted() or group.is_call:
            return False
        if keyword == "USING":  # of a MERGE; the USING of a JOIN has columns in parentheses
            return not group.block.in_list
        return not (
            keyword == "FROM" and self._word(self._i - 1) == "DISTINCT" and self._word(self._i - 2) in ("IS", "NOT")
        )

    def _relation(self, group: _Group, keyword: str) -> None:
        block = group.block
        if keyword == "FROM" and (block.relations or block.where):
            group.block = block = Block()
        block.in_list = True
        block.relations += 1
        is_inner, block.is_left = not block.is_left, False
        self._expect_table(group, is_inner=is_inner)

    def _expect_table(self, group: _Group, *, is_inner: bool) -> None:
        """Take the next table; an opening parenthesis encloses tables or a query."""
        if self._is_type(self._i + 1, TokenType.L_PAREN):
            self._table_group = self._i + 1
        else:
            self._table(group, is_inner=is_inner, takes_alias=True)

    def _table_without_alias(self, group: _Group) -> None:
        """Take the table after TABLE or INTO, which has no alias; as an argument it may be in parentheses."""
        if group.takes_tables and self._is_type(self._i + 1, TokenType.L_PAREN):
            if self._word(self._i + 2) in _STARTS_QUERY:
                return
            self._i += 1
            self._stack.append(_Group())
        self._table(group, is_inner=False, takes_alias=False)

    def _table(self, group: _Group, *, is_inner: bool, takes_alias: bool) -> None:
        first = self._i + 1
        if self._word(first) == "LATERAL" and self._is_type(self._dotted_name(first + 1)[1], TokenType.L_PAREN):
            first += 1  # LATERAL f(…); LATERAL (…) is a query
        parts, after = self._dotted_name(first)
        if not parts or (len(parts) == 1 and self._scoped_ctes[parts[0].lower()] > 0):
            return
        is_call = self._is_type(after, TokenType.L_PAREN)
        asks_changes = is_call and len(parts) == 1 and parts[0].lower() in FEEDS
        if is_call and not asks_changes:
            self._call_arguments = after
            return
        mention = TableMention(first, after, parts, group.block, None, is_inner, takes_alias, asks_changes)
        self._mentions.append(mention)

    def _dotted_name(self, i: int) -> tuple[tuple[str, ...], int]:
        """Return the dotted name at token ``i``, and the token after it."""
        parts: list[str] = []
        while self._is_name(i):
            parts.append(self._tokens[i].text)
            i += 1
            if not (self._is_type(i, TokenType.DOT) and self._is_name(i + 1)):
                break
            i += 1
        return tuple(parts), i

    # -- the end of a FROM, and of a WHERE

    def _end_clause(self, group: _Group, keyword: str) -> None:
        if self._is_dotted() or (group.block.in_list and self._is_alias(keyword)):
            return
        if keyword == "VALUES" and group.block.in_list:
            self._resuming_aliases |= self._alias_of_values()
        group.block.in_list = False
        if keyword == "WHERE" and group.block.relations and group.block.where is None:
            group.where_from = self._i + 1
        elif keyword in _ENDS_WHERE or keyword == "":
            self._close_where(group, self._i)
        if keyword in _SET_OPERATORS:
            group.block = Block()

    def _is_alias(self, keyword: str) -> bool:
        """Whether a word that may end a list is the alias of a table."""
        if keyword == "VALUES":  # behind AS, too, it may begin a query
            return self._i + 1 == len(self._tokens) or self._tokens[self._i + 1].token_type in _BEHIND_ALIAS
        return keyword not in ("", "SELECT") and self._word(self._i - 1) == "AS"

    def _alias_of_values(self) -> set[int]:
        """Return the token of the alias of VALUES, if it has one."""
        i = self._i + 1
        while i < len(self._tokens) and not (
            self._is_type(i, TokenType.R_PAREN) or self._word(i) in _NO_ALIAS - {"AS"}
        ):
            if self._word(i) == "AS" or (self._tokens[i - 1].token_type in _ENDS_ROW and alias_at(self._tokens, i)[0]):
                return {i}
            i = self._closing.get(i, i) + 1
        return set()

    def _close_where(self, group: _Group, end: int) -> None:
        if group.where_from is not None:
            group.block.where = None if self._pipes else (group.where_from, end)
            group.where_from = None

    # -- tokens

    def _is_type(self, i: int, kind: TokenType) -> bool:
        return 0 <= i < len(self._tokens) and self._tokens[i].token_type == kind

    def _word(self, i: int) -> str:
        return word(self._tokens[i]) if 0 <= i < len(self._tokens) else ""

    def _is_name(self, i: int) -> bool:
        if not 0 <= i < len(self._tokens):
            return False
        token = self._tokens[i]
        return token.token_type in _WORDS or (word(token).isidentifier() and word(token) not in ("SELECT", "VALUES"))

    def _is_dotted(self) -> bool:
        return self._is_type(self._i - 1, TokenType.DOT) or self._is_type(self._i + 1, TokenType.DOT)


def _closing(tokens: Sequence[Token]) -> dict[int, int]:
    """Map each opening parenthesis to the one that closes it, if there is one."""
    closing, open_ = dict[int, int](), list[int]()
    for i, token in enumerate(tokens):
        if token.token_type == TokenType.L_PAREN:
            open_.append(i)
        elif token.token_type == TokenType.R_PAREN and open_:
            closing[open_.pop()] = i
    return closing


def alias_at(tokens: Sequence[Token], i: int) -> tuple[str | None, int]:
    """Return the alias at token ``i``, with or without AS, and the token after it."""
    explicit = i < len(tokens) and word(tokens[i]) == "AS" and (i + 1 >= len(tokens) or word(tokens[i + 1]) != "OF")
    at = i + explicit
    if at >= len(tokens) or (word(tokens[at]) in _NO_ALIAS and not explicit):
        return None, i
    token = tokens[at]
    is_name = token.token_type in _WORDS or (explicit and word(token).isidentifier() and word(token) != "SELECT")
    return (token.text, at + 1) if is_name else (None, i)
