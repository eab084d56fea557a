"""Reads one SQL statement: extends `Cursor` with tables, expressions and queries.

Guarantee: a part keeps every character of the statement except for two edits. Parameters in an `Expression` become
literals. A column's qualifier by a table's full name (``delta.`/t`.id``) is shortened to the name's last part, or
replaced by an alias that spells the full name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from anabranch._catalog.table_names import name_to_sql
from anabranch._expressions.dialect import Token, TokenizedText, TokenType, tokenize, word
from anabranch._expressions.error_pointer import excerpt
from anabranch._sql.grammar import hidden_columns, qualifiers
from anabranch._sql.grammar.cursor import Cursor
from anabranch._sql.grammar.ddl_targets import CreateTarget, parse_create_target
from anabranch._sql.grammar.parameters import Marker, arguments_for, literal, markers, outside
from anabranch._sql.grammar.parts import (
    Arguments,
    Changes,
    Expression,
    Location,
    Path,
    Query,
    Reference,
    Table,
    View,
)
from anabranch._sql.grammar.qualifiers import Edit, Places, between
from anabranch._sql.grammar.tables_read import BY_PATH, TableMention, alias_at, tables_read
from anabranch.errors import InvalidOption, UnknownTable, ViewIsNoTable

Locate = Callable[[tuple[str, ...]], "Location | View | None"]
"""Resolves a name to a Delta table's location or to a view; None if the name is neither."""

Place = Callable[[tuple[str, ...], CreateTarget], "Location | None"]
"""Resolves the name of a table to create to its location; None if the statement creates another kind of table."""

_END = 1 << 62
_CONDITION_BUDGET = 32
"""Budget for analysing conditions for file skipping, in lengths of the statement; conditions may be nested."""


class Reader(Cursor):
    """A cursor over one statement that resolves the tables in it."""

    def __init__(
        self,
        source: TokenizedText,
        args: Any,
        locate: Locate,
        place: Place | None = None,
        kept: Locate | None = None,
        shown: Locate | None = None,
    ) -> None:
        tokens = list(source.tokens)
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        super().__init__(source.text, tokens)
        self._source = source
        self._args, self._locate, self._place, self._locate_stored = args, locate, place, kept or locate
        self._locate_shown = shown or (lambda name: None)
        self._markers = markers(tokens, args)
        self._references: list[Reference] | None = None
        self._mentions: list[TableMention] = []
        self._targets: list[Table] = []
        self._sources: list[Path] = []
        self._analysis_budget = _CONDITION_BUDGET * len(source.text)
        self._full_name_cache: tuple[tuple[int, int], list[Edit], dict[Path, str]] | None = None
        self.makes = False

    # -- tables

    def table(self, *, alias: bool = False, writes: bool = False, travels: bool = False) -> Table | None:
        """Take a Delta table, with its alias and, if ``travels``, AS OF; take nothing and return None if it is none.

        Raises:
            ViewIsNoTable: the statement would write to a view, or alter it as a table.
        """
        at, start = self.i, self.start
        if not self.is_name():
            self.fail("the name of a table is expected here.")
        name = self.path("the name of a table")
        location = self._locate(name)
        if isinstance(location, View) and writes:
            raise ViewIsNoTable(
                name=".".join(f"`{part}`" for part in location.name), excerpt=excerpt(self.text, start, self.stop)
            )
        if location is None or isinstance(location, View):
            self.i = at
            return None
        table = self._complete_table(location, name, start, alias=alias)
        return table if travels else self._require_newest(table)

    def _require_newest(self, table: Table) -> Table:
        """Return the table. Raises SqlSyntaxError if it has an AS OF clause."""
        if table.version is not None or table.timestamp is not None:
            self.fail("the statement is about the newest version: AS OF is only for tables that are read.", self.i - 1)
        return table

    def is_table(self, name: Path) -> bool:
        """Whether a name is a Delta table's."""
        return not isinstance(self._locate(name), View | None)

    def is_kept_table(self, name: Path) -> bool:
        """Whether a name is a Delta table's in the catalog, even if a temporary view hides it."""
        return not isinstance(self._locate_stored(name), View | None)

    def find_location(self, name: Path) -> Location | View | None:
        """Return the location of the Delta table of this name, or the persistent view."""
        return self._locate(name)

    def object_name(self, what: str) -> Path | None:
        """Take the name of a table or view; None if it is ``IDENTIFIER(…)`` of no string literal and no parameter."""
        if not (self.at("IDENTIFIER") and self.is_type(TokenType.L_PAREN, 1)):
            return self.path(what)
        at, self.i = self.i, self.i + 2
        text = self._try_take_text()
        if text is None or not self.is_type(TokenType.R_PAREN):
            self.i = at
            return None
        self.i += 1
        return self._name_in(text, at)

    def _try_take_text(self) -> str | None:
        """Take a string literal or a string parameter; None if neither comes next."""
        marker = next(iter(between(self._markers, self.start, self.start + 1)), None)
        if marker is None:
            return self.string() if self.is_text() else None
        while not self.is_at_end and self.start < marker.stop:
            self.i += 1
        return str(marker.value)

    def new_table(self) -> Table | None:
        """As `table`, for a table that the statement creates. Sets `makes`: the statement is then Delta's."""
        if self._place is None or not self.is_name():
            return self.table()
        at, start = self.i, self.start
        name = self.path("the name of a table")
        location = self._place(name, parse_create_target(self.tokens, self.i))
        if location is None:
            self.i = at
            return None
        self.makes = True
        return Table(location, name, span=(start, self.stop))

    def _complete_table(self, location: Location, name: tuple[str, ...], start: int, *, alias: bool) -> Table:
        location = self._at_version(location)
        stop = self.stop
        version, timestamp = self.as_of()
        alias_name: str | None = None
        if alias:
            alias_name, self.i = alias_at(self.tokens, self.i)
        table = Table(location, name, version, timestamp, alias_name, (start, stop))
        self._targets.append(table)
        return table

    def _at_version(self, location: Location) -> Location:
        """Append the ``@v3`` that directly follows the table's name to its path."""
        touches = self.is_type(TokenType.PARAMETER) and self.start == self.stop
        if not touches:
            return location
        self.i += 2
        return f"{os.fspath(location)}@{self.tokens[self.i - 1].text}"

    def as_of(self) -> tuple[str | None, str | None]:
        """Take VERSION AS OF or TIMESTAMP AS OF; returns the SQL texts of the version and of the timestamp."""
        at = self.i
        self.take("FOR")
        for words, is_version in (
            (("VERSION",), True),
            (("SYSTEM_VERSION",), True),
            (("TIMESTAMP",), False),
            (("SYSTEM_TIME",), False),
        ):
            if self.take(*words, "AS", "OF"):
                moment = self._take_as_of_value()
                return (moment, None) if is_version else (None, moment)
        self.i = at
        return None, None

    def _take_as_of_value(self) -> str:
        """Take the value of AS OF: operands with operators between them."""
        first = self.i
        self.skip_operands("a version or a moment")
        start, stop = self.tokens[first].start, self.stop
        return self._apply_edits(start, stop, self._values(start, stop))[0]

    # -- parts

    def expression(self, *stops: str, comma: bool = False, what: str = "an expression") -> Expression:
        """Take an expression up to one of the words ``stops`` (`Cursor.skip_to`), with its parameters as literals."""
        first = self.i
        self.skip_to(frozenset(stops), comma=comma, what=what)
        return self.expression_between(first, self.i)

    def expression_between(self, first: int, after: int) -> Expression:
        """Return the expression in tokens ``first`` to before ``after``, with its parameters as literals."""
        start, stop = self.tokens[first].start, self.tokens[after - 1].end + 1
        edits = [*self._values(start, stop), *between(self._qualifier_edits(), start, stop)]
        text, shift = self._apply_edits(start, stop, edits)
        same = text == self.text[start:stop]
        return Expression(
            text,
            self._references_between(start, stop, shift),
            (start, stop),
            self._source.part(start, stop) if same else None,
        )

    def query(self, what: str = "a query") -> Query:
        """Take the rest of the statement as a query for Spark."""
        if self.is_at_end:
            self.fail(f"{what} is expected here.")
        first, self.i = self.i, len(self.tokens)
        return self.query_between(first, self.i)

    def query_between(self, first: int, after: int, before: str = "") -> Query:
        """Return tokens ``first`` to before ``after`` as a query, behind the text ``before``."""
        start, stop = self.tokens[first].start, self.tokens[after - 1].end + 1
        used_markers = between(self._query_markers(), start, stop)
        text, shift = self._apply_edits(start, stop, between(self._qualifier_edits(), start, stop))
        references = self._references_between(start, stop, lambda place: shift(place) + len(before))
        query = Query(before + text, references, arguments_for(used_markers, self._args), (start, stop))
        return self._with_metadata(query, self.tokens[first:after], lambda place: shift(place) + len(before))

    def rearrange(self, *stretches: tuple[int, int]) -> Reader:
        """Return a reader of the statement that these ranges of tokens form together."""
        spans = [(self.tokens[first].start, self.tokens[after - 1].end + 1) for first, after in stretches]
        used = [marker for start, stop in spans for marker in between(self._markers, start, stop)]
        return self.beside(" ".join(self.text[start:stop] for start, stop in spans), arguments_for(used, self._args))

    def beside(self, text: str, args: Arguments = None) -> Reader:
        """Return a reader of another statement, which resolves names in the same way."""
        return Reader(TokenizedText(text), args, self._locate, self._place, self._locate_stored, self._locate_shown)

    def join_queries(self, first: Query, second: Query) -> Query:
        """Join two parts of the statement into one query."""
        shift = len(first.text) + 1
        moved = (replace(ref, start=ref.start + shift, stop=ref.stop + shift) for ref in second.references)
        if isinstance(first.arguments, dict) and isinstance(second.arguments, dict):
            arguments: Arguments = {**first.arguments, **second.arguments}
        else:
            arguments = None if first.arguments is None else (*first.arguments, *(second.arguments or ()))
        text, stars = f"{first.text} {second.text}", (*first.stars, *(star + shift for star in second.stars))
        refused = first.refused or second.refused
        return Query(text, (*first.references, *moved), arguments, second.span, stars, refused)

    def everything(self) -> Query:
        """Return the whole statement as a query for Spark."""
        text, shift = self._apply_edits(0, len(self.text), self._qualifier_edits())
        arguments = self._args
        if len(self._query_markers()) < len(self._markers) and not isinstance(arguments, Mapping):
            arguments = arguments_for(self._query_markers(), arguments)
        query = Query(text, self._references_between(0, _END, shift), arguments, (0, self.end))
        return self._with_metadata(query, self.tokens, shift)

    def _with_metadata(self, query: Query, tokens: Sequence[Token], shift: Callable[[int], int]) -> Query:
        """Add to a query of these tokens what it needs to read ``_metadata``, if it names that column."""
        if not hidden_columns.asks(tokens):
            return query
        return replace(
            query,
            references=tuple(replace(reference, asks_metadata=True) for reference in query.references),
            stars=tuple(shift(tokens[i].end + 1) for i in hidden_columns.stars(tokens)),
            refused=hidden_columns.refusal_reason(tokens, len(query.references)),
        )

    def _query_markers(self) -> list[Marker]:
        """The parameters that remain in a query: those outside of its table references."""
        return outside(self._markers, self._all_references())

    def reads_delta(self) -> bool:
        """Whether any part of the statement reads a Delta table."""
        return bool(self._all_references())

    def reads_views_of_spark(self) -> bool:
        """Whether the statement reads Delta tables only through views of Spark's catalog."""
        return all(reference.view is not None and reference.view.of_spark for reference in self._all_references())

    def names_delta(self, within: Sequence[Path] = ((),), *, hidden: bool = False) -> bool:
        """Whether any name is a Delta table's in one of these schemas; ``hidden``: even behind a temporary view."""
        return any(self._is_delta((*schema, *name), hidden=hidden) for name in self.names() for schema in within)

    def _is_delta(self, name: Path, *, hidden: bool) -> bool:
        return self._locate(name) is not None or (hidden and self._locate_stored(name) is not None)

    def _references_between(self, start: int, stop: int, shift: Callable[[int], int]) -> tuple[Reference, ...]:
        references = (reference for reference in between(self._all_references(), start, stop) if reference.stop <= stop)
        aliases = self._table_aliases()
        return tuple(
            replace(ref, start=shift(ref.start), stop=shift(ref.stop), called=aliases.get(ref.table.name))
            for ref in references
        )

    def _values(self, start: int, stop: int) -> list[Edit]:
        markers_inside = between(self._markers, start, stop)
        return [Edit(marker.start, marker.stop, literal(marker.value)) for marker in markers_inside]

    def _apply_edits(self, start: int, stop: int, edits: Sequence[Edit]) -> tuple[str, Callable[[int], int]]:
        """Apply edits to a part of the text; also returns a function from positions in the statement to the part's."""
        ordered = sorted(edits)
        return qualifiers.apply_edits(self.text, start, stop, ordered), qualifiers.shifting(start, ordered)

    # -- tables by their full names

    def target(self, *, alias: bool = False, views: bool = False) -> Table | None:
        """As `table`, for a table that the statement writes, with an alias if another table's name ends alike.

        With ``views``, also takes the name of a temporary view that shows the whole table.
        """
        table = self.table(alias=alias, writes=True) or (self._try_view_table(alias=alias) if views else None)
        if table is None or table.alias is not None:
            return table
        return replace(table, alias=self._table_aliases().get(table.name))

    def _try_view_table(self, *, alias: bool) -> Table | None:
        at, start, name = self.i, self.start, self.path("the name of a table")
        location = self._locate_shown(name)
        if location is None or isinstance(location, View):
            self.i = at
            return None
        return self._require_newest(self._complete_table(location, name, start, alias=alias))

    def source(self, name: Path) -> str:
        """Register the name of a MERGE source and return the alias for it."""
        self._sources.append(name)
        return self._table_aliases().get(name, name[-1])

    def _qualifier_edits(self) -> list[Edit]:
        """The edits of names that qualify a column by a table's full name."""
        return self._full_name_edits()[0]

    def _table_aliases(self) -> dict[Path, str]:
        """The aliases of tables whose names end like another table's."""
        return self._full_name_edits()[1]

    def _full_name_edits(self) -> tuple[list[Edit], dict[Path, str]]:
        """Return both of these; computed once, unless further tables were taken in between."""
        counts = (len(self._targets), len(self._sources))
        if self._full_name_cache is None or self._full_name_cache[0] != counts:
            edits_by_name = self._qualifiers()
            edits = {edit[:2]: edit for name_edits in edits_by_name.values() for edit in name_edits}
            aliased = (name for name, name_edits in edits_by_name.items() if any(edit.text for edit in name_edits))
            aliases = {name: qualifiers.full_name_alias(name) for name in aliased}
            self._full_name_cache = counts, sorted(edits.values()), aliases
        return self._full_name_cache[1:]

    def _qualifiers(self) -> dict[Path, list[Edit]]:
        """The edits of column qualifiers, by the name of each table that has no alias."""
        tables = [*(reference.table for reference in self._all_references()), *self._targets]
        ours: dict[Path, Any] = {table.name: table.location for table in tables if table.alias is None}
        unaliased = (mention.parts for mention in self._mentions if alias_at(self.tokens, mention.after)[0] is None)
        places = {**dict.fromkeys((*unaliased, *self._sources)), **ours}
        if any(len(name) > qualifiers.MOST_SAID for name in places):
            return {}
        starts = {self.tokens[mention.first].start for mention in self._mentions} | {
            target.span[0] for target in self._targets
        }
        names = [name for name in {*ours, *self._sources} if len(name) > 1]
        alike = Counter(name[-1] for name in {tuple(part.lower() for part in path) for path in places})
        words = qualifiers.places_of(self.tokens) if places else {}
        short = [name for name in ours if len(name) == 1 and alike[name[-1].lower()] < 2]
        return {name: self._longer_name_edits(name, ours[name], starts, words) for name in short} | {
            name: (alike[name[-1].lower()] < 2 and qualifiers.qualifiers(self.tokens, name, words))
            or qualifiers.apart(self.tokens, name, places, starts, words)
            for name in names
        }

    def _longer_name_edits(self, name: Path, location: Any, starts: Collection[int], words: Places) -> list[Edit]:
        """The edits where a column's qualifier is longer than the name by which the statement reads the table."""
        longer_names = qualifiers.longer(self.tokens, name, starts, words)
        return [edit for full_name, edit in longer_names if self.is_named(full_name, location)]

    def is_named(self, full_name: Path, location: Any) -> bool:
        """Whether a full name resolves to the table at ``location``."""
        return len(full_name) <= qualifiers.MOST_PARTS and self._locate(full_name) == location

    # -- what is read

    def _all_references(self) -> list[Reference]:
        if self._references is None:
            self._mentions = tables_read(self.tokens)
            references = (self._reference(mention) for mention in self._mentions)
            self._references = [reference for reference in references if reference is not None]
        return self._references

    def _reference(self, mention: TableMention) -> Reference | None:
        if mention.asks_changes:
            return self._table_changes(mention)
        location = self._locate(mention.parts)
        if location is None:
            return None
        side = self._reader_at(mention.after)
        start = self.tokens[mention.first].start
        if isinstance(location, View):
            return self._view_reference(location, mention, side)
        table = side._complete_table(location, mention.parts, start, alias=False)
        stop, is_sampled = side.stop, side.at("TABLESAMPLE")
        alias, side.i = alias_at(side.tokens, side.i)
        is_renamed = alias is not None and side.is_type(TokenType.L_PAREN)
        takes = mention.takes_alias and alias is None and not is_sampled
        reference = Reference(replace(table, alias=alias), start, stop, takes)
        block = mention.block
        if block.where is None or not (block.is_clear and mention.is_inner) or is_renamed or is_sampled:
            return reference
        return replace(reference, where=self._skipping_condition(*block.where), sole=block.relations == 1)

    def _reader_at(self, i: int) -> Reader:
        """Return an independent reader of the same statement at token ``i``."""
        side = copy(self)
        side.i, side._targets = i, []
        return side

    def _view_reference(self, view: View, mention: TableMention, side: Reader) -> Reference:
        if side.as_of() != (None, None):
            side.fail("a view has no versions.", mention.after)
        start, stop = self.tokens[mention.first].start, self.tokens[mention.after - 1].end + 1
        is_sampled = side.at("TABLESAMPLE")
        alias, _ = alias_at(side.tokens, side.i)
        takes = mention.takes_alias and alias is None and not is_sampled
        place = ".".join(f"`{part}`" for part in view.name)
        return Reference(Table(place, mention.parts, alias=alias, span=(start, stop)), start, stop, takes, view=view)

    # -- changes

    def _table_changes(self, mention: TableMention) -> Reference:
        """Parse ``table_changes('table', start [, end])``, or ``…_by_path('/path', …)``.

        Raises:
            SqlSyntaxError: the call has another form. UnknownTable: there is no such Delta table.
        """
        side = self._reader_at(mention.after + 1)
        table = side._take_changed_table(by_path=mention.parts[0].lower() == BY_PATH)
        bounds = []
        while side.is_type(TokenType.COMMA):
            side.i += 1
            first, at = side.start, side.i
            side.skip_to(comma=True, what="a version or a moment")
            if any(word(token) == "SELECT" for token in side.tokens[at : side.i]):
                side.fail("a version or a timestamp must be a constant, not a query.", at)
            bounds.append(side._apply_edits(first, side.stop, side._values(first, side.stop))[0])
        if not 1 <= len(bounds) <= 2:
            side.fail("it takes a table, a start and an optional end: versions, or timestamps as strings.")
        side.punctuation(TokenType.R_PAREN, ")")
        stop, is_sampled = side.stop, side.at("TABLESAMPLE")
        alias, side.i = alias_at(side.tokens, side.i)
        takes = mention.takes_alias and alias is None and not is_sampled
        start = self.tokens[mention.first].start
        aliased = replace(table, alias=alias, span=(start, stop))
        return Reference(aliased, start, stop, takes, changes=Changes(*bounds))

    def _take_changed_table(self, *, by_path: bool) -> Table:
        """Take the first argument of ``table_changes``: a name or path as a string literal, or a bare name."""
        at, text = self.i, self._try_take_text()
        if text is None and by_path:
            self.fail("the path of a table is expected here.")
        if text is None:
            name = self.path("the name of a table")
            return Table(self._require_location(name, at), name)
        if by_path or text.startswith("/") or ":/" in text.partition("`")[0]:
            return Table(text, (text,))
        name = self._name_in(text, at)
        return Table(self._require_location(name, at), name)

    def _name_in(self, text: str, at: int) -> tuple[str, ...]:
        cursor = Cursor(text, tokenize(text))
        name = cursor.path() if cursor.is_name() else ()
        if not name or not cursor.is_at_end:
            self.fail("this is not the name of a table.", at)
        return name

    def _require_location(self, name: tuple[str, ...], at: int) -> Location:
        location = self._locate(name)
        if location is None or isinstance(location, View):
            token = self.tokens[at]
            raise UnknownTable(name=name_to_sql(name), excerpt=excerpt(self.text, token.start, self.stop))
        return location

    def _skipping_condition(self, first: int, after: int) -> str | None:
        """Return a condition for file skipping; None if it is empty or the analysis budget is used up."""
        if first >= after:
            return None
        start, stop = self.tokens[first].start, self.tokens[after - 1].end + 1
        self._analysis_budget -= stop - start
        if self._analysis_budget < 0:
            return None
        edits = []
        for marker in between(self._markers, start, stop):
            try:
                edits += self._values(marker.start, marker.stop)
            except InvalidOption:  # only Spark can write this value as a literal
                continue
        return self._apply_edits(start, stop, edits)[0]
