"""Tables of a statement without Spark: the version that is meant, and its texts as `anabranch.Table` takes them.

Guarantee: a text says what it says in the statement, without what qualifies its columns there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anabranch._api.table import Table
from anabranch._api.table_texts import TableTexts
from anabranch._arrow.backend import ArrowBackend
from anabranch._arrow.site import alone
from anabranch._expressions.blocks import strip_qualifiers
from anabranch._expressions.tokens import asks_a_query
from anabranch._log.lazy import lazy
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._sql.grammar.parts import Expression, Path
from anabranch._sql.grammar.parts import Table as Named
from anabranch._sql.grammar.row_values import assignments_by_key
from anabranch.commands.dml.delete import EVERY_ROW
from anabranch.commands.opening import Location, file_set
from anabranch.commands.queries.time_travel import AsOf
from anabranch.errors import InvalidOption, NeedsSpark
from anabranch.errors.rows import keep_out, may_show_rows


@dataclass(frozen=True)
class PathTable:
    """A table as a statement names it."""

    named: Named

    @lazy
    def location_and_version(self) -> tuple[Location, int | None]:
        """Where it lies, and the version that is meant, None for the newest.

        Raises:
            NotATable, VersionNotFound, InvalidTimestamp, AmbiguousTimeTravel: there is none.
        """
        return AsOf(self.named.location, *version_and_moment(self.named)).resolve_version()

    @property
    def table(self) -> Table:
        """The table, to be read at `version`."""
        return Table(self.location_and_version[0])

    @property
    def version(self) -> int | None:
        """The version that is meant, None for the newest."""
        return self.location_and_version[1]

    @lazy
    def snapshot(self) -> Snapshot:
        """The version. Raises NeedsSpark: the alias is the name of a column."""
        found = self.table.snapshot(self.version)
        if not (found.properties.rows_in_errors and may_show_rows(found.table)):
            keep_out()
        alias = self.named.alias
        if alias is not None and found.schema.find(alias) is not None:
            raise self.needs_spark(f"the alias {alias}", "it is the name of a column as well")
        return found

    def newest(self) -> PathTable:
        """The table, which is to be changed. Raises InvalidOption: its path names a version."""
        if self.version is not None:
            reason = f"only a query takes a version; the table itself is {self.location_and_version[0]}."
            raise InvalidOption(option="table", value=str(self.named.location), reason=reason)
        return self

    @property
    def texts(self) -> TableTexts:
        """What texts mean for it."""
        return TableTexts(self.snapshot.table, self.snapshot.schema)

    @property
    def backend(self) -> ArrowBackend:
        """What reads and writes its rows."""
        return ArrowBackend(alone(self.snapshot.store))

    @property
    def no_files(self) -> FileSet:
        """Its columns, without a file."""
        return file_set(self.snapshot, self.snapshot.files.slice(0, 0))

    def text(self, said: Expression) -> str:
        """A condition or value, its columns under their own names. Raises NeedsSpark: it holds a subquery."""
        return strip_qualifiers(plain(said).source, self.named.qualifier, self.snapshot.schema).text

    def assignment_texts(self, pairs: Iterable[tuple[Path, Expression | None]]) -> dict[str, str]:
        """The values of SET, by column. Raises NeedsSpark: one is DEFAULT, or holds a subquery."""
        alias = (self.named.alias or "").lower()
        bare = [(path[1:] if len(path) > 1 and path[0].lower() == alias else path, value) for path, value in pairs]
        return {key: self.text(plain_value(value)) for key, value in assignments_by_key(bare)}

    def check(self, where: str | None, values: Mapping[str, str]) -> None:
        """Raises NeedsSpark, InvalidCondition, UnknownColumn: rows cannot be changed so here."""
        if where is None and not values:
            return
        condition = EVERY_ROW if where is None else self.texts.condition(where)
        self.backend.check(self.no_files, condition, self.texts.assignments(values) if values else None)

    def needs_spark(self, what: str, reason: str) -> NeedsSpark:
        """The error of what cannot be done with it here."""
        return NeedsSpark(what=what, table=self.named.location, reason=reason)


def version_and_moment(named: Named) -> tuple[int | str | None, str | None]:
    """The version and the moment behind AS OF, as far as they are said. Raises NeedsSpark: that is computed."""
    if named.timestamp is not None and named.moment is None:
        reason = "without it a moment is a text, such as '2024-01-31 12:00:00'"
        raise NeedsSpark(what=f"TIMESTAMP AS OF {named.timestamp}", table=named.location, reason=reason)
    return named.number, named.moment


def plain(said: Expression) -> Expression:
    """An expression. Raises NeedsSpark: it holds a subquery."""
    if asks_a_query(said.source.tokens):
        raise NeedsSpark(what=f"the subquery in {said.text}", table=None, reason="it is a query of its own")
    return said


def plain_value(said: Expression | None) -> Expression:
    """A value. Raises NeedsSpark: it is DEFAULT, or holds a subquery."""
    if said is None:
        raise NeedsSpark(what="the value DEFAULT", table=None, reason="it reads the expressions of defaults")
    return plain(said)
