"""A reader of one statement: the cursor, and the parts that it cuts out of the text.

Guarantee: a part keeps every character of the statement, but for parameters in an `Expression`, which become literals,
and for a column's qualifier by a table's whole name (``delta.`/t`.id``): a table is put into place under its own name
alone, or under an alias that says all of it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from anabranch._catalog.names import name_to_sql
from anabranch._expressions.dialect import Token, TokenizedText, TokenType, tokenize, word
from anabranch._expressions.error_pointer import excerpt
from anabranch._sql.grammar import hidden_columns, qualifiers
from anabranch._sql.grammar.cursor import Cursor
from anabranch._sql.grammar.ddl_targets import Making, making
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
from anabranch._sql.grammar.tables_read import BY_PATH, Found, alias_at, tables_read
from anabranch.errors import InvalidOption, UnknownTable, ViewIsNoTable

Locate = Callable[[tuple[str, ...]], "Location | View | None"]
"""Where the Delta table of a name lies, or the view that it is; None where it means something else, or nothing."""

Place = Callable[[tuple[str, ...], Making], "Location | None"]
"""Where a Delta table lies, or will, that a statement makes; None where it makes another kind of table."""

_END = 1 << 62
_MOST_CONDITIONS = 32
"""How many times the length of the statement is analysed as conditions for file skipping: one may stand in another."""


class Reader(Cursor):
    """A statement that is being read."""

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
        self._args, self._locate, self._place, self._kept = args, locate, place, kept or locate
        self._shown = shown or (lambda name: None)
        self._markers = markers(tokens, args)
        self._references: list[Reference] | None = None
        self._found: list[Found] = []
        self._targets: list[Table] = []
        self._sources: list[Path] = []
        self._analysable = _MOST_CONDITIONS * len(source.text)
        self._qualified: tuple[tuple[int, int], list[Edit], dict[Path, str]] | None = None
        self.makes = False

    # -- tables

    def table(self, *, alias: bool = False, writes: bool = False, travels: bool = False) -> Table | None:
        """Take the name of a Delta table, perhaps with an alias and, if ``travels``, AS OF; None where it is none of
        Delta's, and then nothing is taken.

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
        return table if travels else self._newest(table)

    def _newest(self, table: Table) -> Table:
        """The table. Raises SqlSyntaxError: an older version of it is named."""
        if table.version is not None or table.timestamp is not None:
            self.fail("the statement is about a table's newest version: AS OF belongs to what is read.", self.i - 1)
        return table

    def is_table(self, name: Path) -> bool:
        """Whether a name is a Delta table's."""
        return not isinstance(self._locate(name), View | None)

    def is_kept_table(self, name: Path) -> bool:
        """Whether a name is a Delta table's in the catalog, whichever temporary view hides that."""
        return not isinstance(self._kept(name), View | None)

    def find_location(self, name: Path) -> Location | View | None:
        """Where the Delta table of a name lies; or the lasting view."""
        return self._locate(name)

    def object_name(self, what: str) -> Path | None:
        """Take the name of a table or view, also one that ``IDENTIFIER('…')`` says by a text or a parameter; None where
        it does so by anything else.
        """
        if not (self.at("IDENTIFIER") and self.is_type(TokenType.L_PAREN, 1)):
            return self.path(what)
        at, self.i = self.i, self.i + 2
        said = self._try_take_text()
        if said is None or not self.is_type(TokenType.R_PAREN):
            self.i = at
            return None
        self.i += 1
        return self._name_in(said, at)

    def _try_take_text(self) -> str | None:
        """Take a text, or a parameter that is one; None where neither comes next."""
        marker = next(iter(between(self._markers, self.start, self.start + 1)), None)
        if marker is None:
            return self.string() if self.is_text() else None
        while not self.is_at_end and self.start < marker.stop:
            self.i += 1
        return str(marker.value)

    def new_table(self) -> Table | None:
        """As `table`, for one that the statement makes: nothing need have its name yet.

        From then on `makes` says that the statement is Delta's, whatever else stands in it.
        """
        if self._place is None or not self.is_name():
            return self.table()
        at, start = self.i, self.start
        name = self.path("the name of a table")
        location = self._place(name, making(self.tokens, self.i))
        if location is None:
            self.i = at
            return None
        self.makes = True
        return Table(location, name, span=(start, self.stop))

    def _complete_table(self, location: Location, name: tuple[str, ...], start: int, *, alias: bool) -> Table:
        location = self._at_version(location)
        stop = self.stop
        version, timestamp = self.as_of()
        called: str | None = None
        if alias:
            called, self.i = alias_at(self.tokens, self.i)
        table = Table(location, name, version, timestamp, called, (start, stop))
        self._targets.append(table)
        return table

    def _at_version(self, location: Location) -> Location:
        """A path with the ``@v3`` that stands right behind its name."""
        touches = self.is_type(TokenType.PARAMETER) and self.start == self.stop
        if not touches:
            return location
        self.i += 2
        return f"{os.fspath(location)}@{self.tokens[self.i - 1].text}"

    def as_of(self) -> tuple[str | None, str | None]:
        """Take VERSION AS OF or TIMESTAMP AS OF: the texts of a version and of a moment."""
        at = self.i
        self.take("FOR")
        for words, is_version in (
            (("VERSION",), True),
            (("SYSTEM_VERSION",), True),
            (("TIMESTAMP",), False),
            (("SYSTEM_TIME",), False),
        ):
            if self.take(*words, "AS", "OF"):
                found = self._moment()
                return (found, None) if is_version else (None, found)
        self.i = at
        return None, None

    def _moment(self) -> str:
        """Take a value: operands with signs between them."""
        first = self.i
        self.skip_operands("a version or a moment")
        start, stop = self.tokens[first].start, self.stop
        return self._apply_edits(start, stop, self._values(start, stop))[0]

    # -- parts

    def expression(self, *stops: str, comma: bool = False, what: str = "an expression") -> Expression:
        """Take an expression, up to one of these words (`Cursor.skip_to`), with its parameters as literals."""
        first = self.i
        self.skip_to(frozenset(stops), comma=comma, what=what)
        return self.expression_between(first, self.i)

    def expression_between(self, first: int, after: int) -> Expression:
        """The text of some tokens, with its parameters as literals."""
        start, stop = self.tokens[first].start, self.tokens[after - 1].end + 1
        text, moved = self._apply_edits(start, stop, [*self._values(start, stop), *between(self._cuts(), start, stop)])
        same = text == self.text[start:stop]
        return Expression(
            text,
            self._within(start, stop, moved),
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
        """The text of some tokens as a query, perhaps with something before it."""
        start, stop = self.tokens[first].start, self.tokens[after - 1].end + 1
        used = between(self._left(), start, stop)
        text, moved = self._apply_edits(start, stop, between(self._cuts(), start, stop))
        references = self._within(start, stop, lambda place: moved(place) + len(before))
        query = Query(before + text, references, arguments_for(used, self._args), (start, stop))
        return self._asking(query, self.tokens[first:after], lambda place: moved(place) + len(before))

    def rearrange(self, *stretches: tuple[int, int]) -> Reader:
        """A reader of another statement: of these stretches of tokens, one behind the other."""
        spans = [(self.tokens[first].start, self.tokens[after - 1].end + 1) for first, after in stretches]
        used = [each for start, stop in spans for each in between(self._markers, start, stop)]
        return self.beside(" ".join(self.text[start:stop] for start, stop in spans), arguments_for(used, self._args))

    def beside(self, text: str, args: Arguments = None) -> Reader:
        """A reader of another statement, to which names mean the same."""
        return Reader(TokenizedText(text), args, self._locate, self._place, self._kept, self._shown)

    def join_queries(self, first: Query, second: Query) -> Query:
        """Two parts of the statement as one query."""
        shift = len(first.text) + 1
        moved = (replace(each, start=each.start + shift, stop=each.stop + shift) for each in second.references)
        if isinstance(first.arguments, dict) and isinstance(second.arguments, dict):
            arguments: Arguments = {**first.arguments, **second.arguments}
        else:
            arguments = None if first.arguments is None else (*first.arguments, *(second.arguments or ()))
        text, stars = f"{first.text} {second.text}", (*first.stars, *(each + shift for each in second.stars))
        refused = first.refused or second.refused
        return Query(text, (*first.references, *moved), arguments, second.span, stars, refused)

    def everything(self) -> Query:
        """The whole statement, as it is handed to Spark."""
        text, moved = self._apply_edits(0, len(self.text), self._cuts())
        arguments = self._args
        if len(self._left()) < len(self._markers) and not isinstance(arguments, Mapping):
            arguments = arguments_for(self._left(), arguments)
        return self._asking(Query(text, self._within(0, _END, moved), arguments, (0, self.end)), self.tokens, moved)

    def _asking(self, query: Query, tokens: Sequence[Token], moved: Callable[[int], int]) -> Query:
        """A query of these tokens, with what it takes to give it ``_metadata``, if it asks for that."""
        if not hidden_columns.asks(tokens):
            return query
        return replace(
            query,
            references=tuple(replace(each, asks_metadata=True) for each in query.references),
            stars=tuple(moved(tokens[i].end + 1) for i in hidden_columns.stars(tokens)),
            refused=hidden_columns.refusal_reason(tokens, len(query.references)),
        )

    def _left(self) -> list[Marker]:
        """The parameters that stay in a text whose tables are put into their place."""
        return outside(self._markers, self._all())

    def reads_delta(self) -> bool:
        """Whether any part of the statement reads a Delta table."""
        return bool(self._all())

    def reads_views_of_spark(self) -> bool:
        """Whether all that it reads of Delta is read by views that are Spark's."""
        return all(each.view is not None and each.view.of_spark for each in self._all())

    def names_delta(self, within: Sequence[Path] = ((),), *, hidden: bool = False) -> bool:
        """Whether a name anywhere in the statement is that of a Delta table, in one of these schemas; ``hidden``: also
        where a temporary view hides that table.
        """
        return any(self._is_delta((*each, *name), hidden=hidden) for name in self.names() for each in within)

    def _is_delta(self, name: Path, *, hidden: bool) -> bool:
        return self._locate(name) is not None or (hidden and self._kept(name) is not None)

    def _within(self, start: int, stop: int, moved: Callable[[int], int]) -> tuple[Reference, ...]:
        inside = (each for each in between(self._all(), start, stop) if each.stop <= stop)
        called = self._table_aliases()
        return tuple(
            replace(each, start=moved(each.start), stop=moved(each.stop), called=called.get(each.table.name))
            for each in inside
        )

    def _values(self, start: int, stop: int) -> list[Edit]:
        return [Edit(each.start, each.stop, literal(each.value)) for each in between(self._markers, start, stop)]

    def _apply_edits(self, start: int, stop: int, edits: Sequence[Edit]) -> tuple[str, Callable[[int], int]]:
        """A stretch of text with these edits of it, and where each place of the statement is in it."""
        inside = sorted(edits)
        return qualifiers.apply_edits(self.text, start, stop, inside), qualifiers.shifting(start, inside)

    # -- tables by their whole names

    def target(self, *, alias: bool = False, views: bool = False) -> Table | None:
        """As `table`, for one that is written, under the alias that it needs where names end alike; ``views``: also by
        the name of a temporary view that shows all of it.
        """
        table = self.table(alias=alias, writes=True) or (self._try_view_table(alias=alias) if views else None)
        if table is None or table.alias is not None:
            return table
        return replace(table, alias=self._table_aliases().get(table.name))

    def _try_view_table(self, *, alias: bool) -> Table | None:
        at, start, name = self.i, self.start, self.path("the name of a table")
        location = self._shown(name)
        if location is None or isinstance(location, View):
            self.i = at
            return None
        return self._newest(self._complete_table(location, name, start, alias=alias))

    def source(self, name: Path) -> str:
        """The alias of what a MERGE reads, which the statement may name so as well."""
        self._sources.append(name)
        return self._table_aliases().get(name, name[-1])

    def _cuts(self) -> list[Edit]:
        """What happens to names that qualify a column by a table's whole name."""
        return self._by_whole_names()[0]

    def _table_aliases(self) -> dict[Path, str]:
        """The aliases of tables whose names end as another one's does."""
        return self._by_whole_names()[1]

    def _by_whole_names(self) -> tuple[list[Edit], dict[Path, str]]:
        """As `_cuts` and `_table_aliases`; found once for all parts, unless further tables were taken in between."""
        taken = (len(self._targets), len(self._sources))
        if self._qualified is None or self._qualified[0] != taken:
            found = self._qualifiers()
            edits = {each[:2]: each for own in found.values() for each in own}
            named = (name for name, own in found.items() if any(each.text for each in own))
            self._qualified = taken, sorted(edits.values()), {each: qualifiers.full_name_alias(each) for each in named}
        return self._qualified[1:]

    def _qualifiers(self) -> dict[Path, list[Edit]]:
        """By the names of tables that have no alias, what is done where they qualify a column."""
        tables = [*(each.table for each in self._all()), *self._targets]
        ours: dict[Path, Any] = {each.name: each.location for each in tables if each.alias is None}
        others = (each.parts for each in self._found if alias_at(self.tokens, each.after)[0] is None)
        places = {**dict.fromkeys((*others, *self._sources)), **ours}
        if any(len(each) > qualifiers.MOST_SAID for each in places):
            return {}
        starts = {self.tokens[each.first].start for each in self._found} | {each.span[0] for each in self._targets}
        names = [name for name in {*ours, *self._sources} if len(name) > 1]
        alike = Counter(name[-1] for name in {tuple(part.lower() for part in each) for each in places})
        words = qualifiers.places_of(self.tokens) if places else {}
        short = [name for name in ours if len(name) == 1 and alike[name[-1].lower()] < 2]
        return {name: self._longer(name, ours[name], starts, words) for name in short} | {
            each: (alike[each[-1].lower()] < 2 and qualifiers.qualifiers(self.tokens, each, words))
            or qualifiers.apart(self.tokens, each, places, starts, words)
            for each in names
        }

    def _longer(self, name: Path, location: Any, starts: Collection[int], words: Places) -> list[Edit]:
        """What goes where a column is qualified by more of a table's name than the statement named it with."""
        found = qualifiers.longer(self.tokens, name, starts, words)
        return [each for whole, each in found if self.is_named(whole, location)]

    def is_named(self, whole: Path, location: Any) -> bool:
        """Whether a name is that of the table at this place."""
        return len(whole) <= qualifiers.MOST_PARTS and self._locate(whole) == location

    # -- what is read

    def _all(self) -> list[Reference]:
        if self._references is None:
            self._found = tables_read(self.tokens)
            found = (self._reference(each) for each in self._found)
            self._references = [each for each in found if each is not None]
        return self._references

    def _reference(self, found: Found) -> Reference | None:
        if found.asks_changes:
            return self._changes(found)
        location = self._locate(found.parts)
        if location is None:
            return None
        side = self._aside(found.after)
        start = self.tokens[found.first].start
        if isinstance(location, View):
            return self._of_view(location, found, side)
        table = side._complete_table(location, found.parts, start, alias=False)
        stop, sampled = side.stop, side.at("TABLESAMPLE")
        alias, side.i = alias_at(side.tokens, side.i)
        renamed = alias is not None and side.is_type(TokenType.L_PAREN)
        takes = found.takes_alias and alias is None and not sampled
        reference = Reference(replace(table, alias=alias), start, stop, takes)
        block = found.block
        if block.where is None or not (block.is_clear and found.is_inner) or renamed or sampled:
            return reference
        return replace(reference, where=self._skipping_condition(*block.where), sole=block.relations == 1)

    def _aside(self, i: int) -> Reader:
        """A reader of the same statement at another place, which this one does not notice."""
        side = copy(self)
        side.i, side._targets = i, []
        return side

    def _of_view(self, view: View, found: Found, side: Reader) -> Reference:
        if side.as_of() != (None, None):
            side.fail("a view has no versions.", found.after)
        start, stop = self.tokens[found.first].start, self.tokens[found.after - 1].end + 1
        sampled = side.at("TABLESAMPLE")
        alias, _ = alias_at(side.tokens, side.i)
        takes = found.takes_alias and alias is None and not sampled
        place = ".".join(f"`{part}`" for part in view.name)
        return Reference(Table(place, found.parts, alias=alias, span=(start, stop)), start, stop, takes, view=view)

    # -- changes

    def _changes(self, found: Found) -> Reference:
        """``table_changes('table', start [, end])``, or ``…_by_path('/path', …)``.

        Raises:
            SqlSyntaxError: it is not put together so. UnknownTable: there is no such Delta table.
        """
        side = self._aside(found.after + 1)
        table = side._feeding(by_path=found.parts[0].lower() == BY_PATH)
        bounds = []
        while side.is_type(TokenType.COMMA):
            side.i += 1
            first, at = side.start, side.i
            side.skip_to(comma=True, what="a version or a moment")
            if any(word(token) == "SELECT" for token in side.tokens[at : side.i]):
                side.fail("a version or a moment is a constant, and no query.", at)
            bounds.append(side._apply_edits(first, side.stop, side._values(first, side.stop))[0])
        if not 1 <= len(bounds) <= 2:
            side.fail("it takes a table, a start, and perhaps an end: versions, or moments as texts.")
        side.punctuation(TokenType.R_PAREN, ")")
        stop, sampled = side.stop, side.at("TABLESAMPLE")
        alias, side.i = alias_at(side.tokens, side.i)
        takes = found.takes_alias and alias is None and not sampled
        start = self.tokens[found.first].start
        named = replace(table, alias=alias, span=(start, stop))
        return Reference(named, start, stop, takes, changes=Changes(*bounds))

    def _feeding(self, *, by_path: bool) -> Table:
        """Take the table whose changes are asked for: its name or path as a text, or its name as it is."""
        at, said = self.i, self._try_take_text()
        if said is None and by_path:
            self.fail("the path of a table is expected here.")
        if said is None:
            name = self.path("the name of a table")
            return Table(self._require_location(name, at), name)
        if by_path or said.startswith("/") or ":/" in said.partition("`")[0]:
            return Table(said, (said,))
        name = self._name_in(said, at)
        return Table(self._require_location(name, at), name)

    def _name_in(self, said: str, at: int) -> tuple[str, ...]:
        inside = Cursor(said, tokenize(said))
        name = inside.path() if inside.is_name() else ()
        if not name or not inside.is_at_end:
            self.fail("this is not the name of a table.", at)
        return name

    def _require_location(self, name: tuple[str, ...], at: int) -> Location:
        location = self._locate(name)
        if location is None or isinstance(location, View):
            token = self.tokens[at]
            raise UnknownTable(name=name_to_sql(name), excerpt=excerpt(self.text, token.start, self.stop))
        return location

    def _skipping_condition(self, first: int, after: int) -> str | None:
        """A condition for file skipping, with what parameters can be literals; None where there is nothing."""
        if first >= after:
            return None
        start, stop = self.tokens[first].start, self.tokens[after - 1].end + 1
        self._analysable -= stop - start
        if self._analysable < 0:
            return None
        known = []
        for marker in between(self._markers, start, stop):
            try:
                known += self._values(marker.start, marker.stop)
            except InvalidOption:  # a value that only Spark can make a literal of
                continue
        return self._apply_edits(start, stop, known)[0]
