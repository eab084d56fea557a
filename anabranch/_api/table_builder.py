"""``DeltaTableBuilder``, with the names of ``delta.tables``.

Collects the definition of a table, and runs one command when executed. Guarantee: each step returns the builder that
it is called on, as delta-spark's do, and nothing is written before `DeltaTableBuilder.execute`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, LongType, StructField, StructType

from anabranch._api.arguments import column_names, text
from anabranch._catalog.named_tables import locate, register_name
from anabranch._catalog.table_names import Name, name_to_sql, parts_of, path_in
from anabranch._protocol.layout.clustering import Path, paths_of
from anabranch._protocol.rules.identity import identity_metadata
from anabranch._protocol.rules.table_rules import GENERATION
from anabranch._spark.columns.types import declared_schema, parse_type
from anabranch._spark.engine import SparkEngine
from anabranch._spark.sessions.file_settings import uses_session_settings
from anabranch._spark.sessions.settings import honours
from anabranch._sql.conditions import check_rules
from anabranch.commands.ddl.create import Create, Replace
from anabranch.commands.dml.new_table import NewTable
from anabranch.errors import IdentityNotBigint, InvalidArgument, InvalidOption, NameTaken, UnknownTable

__all__ = ["DeltaTableBuilder", "IdentityGenerator"]

Table = TypeVar("Table", covariant=True)


class TableOpener(Protocol[Table]):
    """The class of the result, which opens a table by its path or name."""

    def forPath(self, sparkSession: SparkSession, path: str) -> Table: ...

    def forName(self, sparkSession: SparkSession, tableOrViewName: str) -> Table: ...


@dataclass(frozen=True)
class IdentityGenerator:
    """Numbers from ``start`` on in steps of ``step``, for an identity column.

    Example:
        >>> builder.addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=100, step=10))
    """

    start: int = 1
    step: int = 1


@uses_session_settings
@dataclass(eq=False)
class DeltaTableBuilder(Generic[Table]):
    """Builds a table step by step; each step changes and returns this same builder.

    An argument of a wrong type is an `InvalidArgument`.

    Example:
        >>> builder = DeltaTable.create(spark).location(path)
        >>> for name in ("id", "origin", "target"):
        ...     builder.addColumn(name, "BIGINT")
        >>> table = builder.partitionedBy("origin").execute()
    """

    spark: SparkSession
    tables: TableOpener[Table]
    if_not_exists: bool = False
    replaces: bool = False
    path: str | None = None
    columns: tuple[StructField, ...] = ()
    partitions: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    description: str | None = None
    clusters: tuple[Path, ...] = ()
    name: Name | None = None

    def tableName(self, identifier: str) -> DeltaTableBuilder[Table]:
        """The table's name in Spark's catalog; without `location`, the table is in Spark's folder of the schema.
        ``delta.`path` `` is that path.

        Raises:
            InvalidOption: it is not a name.
        """
        parts = parts_of(text("identifier", identifier))
        if parts is None:
            raise InvalidOption(option="identifier", value=identifier, reason="it takes the name of a table.")
        path = path_in(parts)
        if path is not None:
            return self.location(path)
        self.name = parts
        return self

    def location(self, location: str) -> DeltaTableBuilder[Table]:
        """The table's location."""
        self.path = text("location", location)
        return self

    def comment(self, comment: str) -> DeltaTableBuilder[Table]:
        """The table's description."""
        self.description = text("comment", comment)
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: Any = None,
        generatedByDefaultAs: Any = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder[Table]:
        """Adds a column; ``dataType`` is a Spark type or its SQL name.

        Args:
            generatedAlwaysAs: SQL text over other columns that computes its value in every row; or an
                `IdentityGenerator`, which gives each row a unique number.
            generatedByDefaultAs: an `IdentityGenerator` for rows without a number.

        Raises:
            InvalidOption: it cannot be generated so.
            InvalidSchema: the numbers of an identity column cannot be counted.
        """
        if not isinstance(nullable, bool):
            raise InvalidArgument(option="nullable", value=nullable, reason="it takes True or False.")
        name = text("colName", colName)
        type_ = dataType if isinstance(dataType, DataType) else parse_type(text("dataType", dataType))
        generated = _generation_metadata(name, type_, generatedAlwaysAs, generatedByDefaultAs)
        metadata = generated if comment is None else {"comment": text("comment", comment), **generated}
        self.columns = (*self.columns, StructField(name, type_, nullable, metadata))
        return self

    def addColumns(self, cols: StructType | list[StructField]) -> DeltaTableBuilder[Table]:
        """Adds columns."""
        if not isinstance(cols, StructType | list) or not all(isinstance(column, StructField) for column in cols):
            raise InvalidArgument(option="cols", value=cols, reason="it takes a StructType, or a list of StructFields.")
        self.columns = (*self.columns, *cols)
        return self

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder[Table]:
        """The partition columns."""
        self.partitions = column_names(cols)
        return self

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> DeltaTableBuilder[Table]:
        """The clustering columns, at most four."""
        self.clusters = paths_of(column_names(cols))
        return self

    def property(self, key: str, value: str) -> DeltaTableBuilder[Table]:
        """A table property."""
        self.properties = {**self.properties, text("key", key): text("value", value)}
        return self

    def execute(self) -> Table:
        """Creates the table, or replaces the existing one.

        Raises:
            TableAlreadyExists: ``create``, and it exists. NotATable: ``replace``, and it does not exist.
            NameTaken, UnknownSchema, UnknownTable: the same for a named table.
            InvalidCondition: a CHECK constraint, a default or a generated column does not fit the columns.
            ProtocolChangedException: another writer created it meanwhile.
            DeltaConcurrentModificationException: another writer changed the table that is to be replaced.
        """
        if self.name is None and self.path is None:
            raise InvalidOption(option="location", value=None, reason="a table without a name needs a location.")
        if self.name is None:
            assert self.path is not None
            self._make(self.path)
            return self.tables.forPath(self.spark, self.path)
        named = locate(self.spark, self.name, self.path)
        if named.entry is not None and not self.replaces:
            if not self.if_not_exists:
                raise NameTaken(name=name_to_sql(named.name), table=named.location)
            return self.tables.forName(self.spark, name_to_sql(named.name))
        if named.entry is None and self.replaces and not self.if_not_exists:
            raise UnknownTable(name=name_to_sql(named.name))
        with register_name(self.spark, named):
            self._make(named.location)
        return self.tables.forName(self.spark, name_to_sql(named.name))

    @honours("CREATE")
    def _make(self, path: str) -> None:
        schema = declared_schema(StructType(list(self.columns)))
        check_rules(schema, self.properties, path, SparkEngine(self.spark))
        new = NewTable(
            schema,
            self.partitions,
            self.properties,
            None,
            self.description,
            self.clusters,
            bare=not self.columns and not self.replaces,
        )
        if self.replaces:
            Replace(path, new, or_create=self.if_not_exists).run()
        else:
            Create(path, new, if_not_exists=self.if_not_exists).run()


def _generation_metadata(column: str, type_: DataType, always: Any, by_default: Any) -> dict[str, Any]:
    """The column metadata that describes how its values are generated."""
    if always is None and by_default is None:
        return {}
    if isinstance(always, str) and by_default is None:
        return {GENERATION: always}
    generator = by_default if always is None else always
    if (
        (always is not None and by_default is not None)
        or not isinstance(generator, IdentityGenerator)
        or generator.step == 0
    ):
        reason = f"the column {column} takes SQL text, or one IdentityGenerator, whose step is not 0."
        raise InvalidArgument(option="generatedAlwaysAs", value=generator, reason=reason)
    if type_ != LongType():
        raise IdentityNotBigint(option="dataType", value=type_.simpleString(), column=column)
    return identity_metadata(generator.start, generator.step, explicit=always is None)
