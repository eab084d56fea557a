"""Tables of a statement without Spark: the requested version, and texts in the form that `anabranch.Table` takes.

Guarantee: a text means the same as in the statement, without the qualifiers of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anabranch._api.table import Table
from anabranch._api.table_texts import TableTexts
from anabranch._arrow.backend import ArrowBackend
from anabranch._arrow.site import site_without_spark
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
        """The table's location and the requested version, None for the newest.

        Raises:
            NotATable, VersionNotFound, InvalidTimestamp, AmbiguousTimeTravel: the table or version does not exist.
        """
        return AsOf(self.named.location, *version_and_moment(self.named)).resolve_version()

    @property
    def table(self) -> Table:
        """The table, to be read at `version`."""
        return Table(self.location_and_version[0])

    @property
    def version(self) -> int | None:
        """The requested version, None for the newest."""
        return self.location_and_version[1]

    @lazy
    def snapshot(self) -> Snapshot:
        """The version. Raises NeedsSpark: the alias is the name of a column."""
        snapshot = self.table.snapshot(self.version)
        if not (snapshot.properties.rows_in_errors and may_show_rows(snapshot.table)):
            keep_out()
        alias = self.named.alias
        if alias is not None and snapshot.schema.find(alias) is not None:
            raise self.needs_spark(f"the alias {alias}", "it is the name of a column as well")
        return snapshot

    def newest(self) -> PathTable:
        """The table, for a change. Raises InvalidOption: its path names a version."""
        if self.version is not None:
            reason = f"only a query takes a version; the table itself is {self.location_and_version[0]}."
            raise InvalidOption(option="table", value=str(self.named.location), reason=reason)
        return self

    @property
    def texts(self) -> TableTexts:
        """The reader of texts over its columns."""
        return TableTexts(self.snapshot.table, self.snapshot.schema)

    @property
    def backend(self) -> ArrowBackend:
        """The backend that reads and writes its rows."""
        return ArrowBackend(site_without_spark(self.snapshot.store))

    @property
    def no_files(self) -> FileSet:
        """A file set with its columns and no file."""
        return file_set(self.snapshot, self.snapshot.files.slice(0, 0))

    def text(self, expression: Expression) -> str:
        """A condition or value with unqualified columns. Raises NeedsSpark: it contains a subquery."""
        return strip_qualifiers(plain(expression).source, self.named.qualifier, self.snapshot.schema).text

    def assignment_texts(self, pairs: Iterable[tuple[Path, Expression | None]]) -> dict[str, str]:
        """The values of SET, by column. Raises NeedsSpark: one is DEFAULT, or contains a subquery."""
        alias = (self.named.alias or "").lower()
        bare = [(path[1:] if len(path) > 1 and path[0].lower() == alias else path, value) for path, value in pairs]
        return {key: self.text(plain_value(value)) for key, value in assignments_by_key(bare)}

    def check(self, where: str | None, values: Mapping[str, str]) -> None:
        """Raises NeedsSpark, InvalidCondition, UnknownColumn: the change is not possible without Spark, or not
        valid.
        """
        if where is None and not values:
            return
        condition = EVERY_ROW if where is None else self.texts.condition(where)
        self.backend.check(self.no_files, condition, self.texts.assignments(values) if values else None)

    def needs_spark(self, what: str, reason: str) -> NeedsSpark:
        """The error for an operation on this table that is not possible without Spark."""
        return NeedsSpark(what=what, table=self.named.location, reason=reason)


def version_and_moment(named: Named) -> tuple[int | str | None, str | None]:
    """The version and the timestamp behind AS OF, if any. Raises NeedsSpark: the timestamp is computed."""
    if named.timestamp is not None and named.moment is None:
        reason = "without it a moment is a text, such as '2024-01-31 12:00:00'"
        raise NeedsSpark(what=f"TIMESTAMP AS OF {named.timestamp}", table=named.location, reason=reason)
    return named.number, named.moment


def plain(expression: Expression) -> Expression:
    """Returns an expression. Raises NeedsSpark: it contains a subquery."""
    if asks_a_query(expression.source.tokens):
        raise NeedsSpark(what=f"the subquery in {expression.text}", table=None, reason="it is a query of its own")
    return expression


def plain_value(expression: Expression | None) -> Expression:
    """Returns a value. Raises NeedsSpark: it is DEFAULT, or contains a subquery."""
    if expression is None:
        raise NeedsSpark(what="the value DEFAULT", table=None, reason="it reads the expressions of defaults")
    return plain(expression)
