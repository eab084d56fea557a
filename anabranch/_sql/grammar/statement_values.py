"""Parsed statements: a class for each kind. Only the names of tables are resolved.

Pure data, composed of `anabranch._sql.grammar.parts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch._protocol.schema.keys import Key
from anabranch._protocol.schema.types import Field
from anabranch._sql.grammar.parts import Expression, Path, Query, Span, Statement, Table
from anabranch._sql.grammar.row_values import RowChange

# -- tables ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE and REPLACE TABLE, with columns, AS a query, or LIKE another table.

    ``like`` is that table, or a query of it if it is no Delta table; ``like_name`` is then its name.
    """

    table: Table
    columns: tuple[Field, ...] = ()
    if_not_exists: bool = False
    replaces: bool = False
    creates: bool = True
    partitions: tuple[str, ...] | None = None
    clusters: tuple[Path, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    query: Query | None = None
    like: Table | Query | None = None
    like_name: Path = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CloneTable(Statement):
    """CREATE [OR REPLACE] TABLE … [SHALLOW | DEEP] CLONE of a Delta table, or of another name."""

    table: Table
    source: Table | Path
    shallow: bool = False
    if_not_exists: bool = False
    replaces: bool = False
    creates: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ConvertTable(Statement):
    """CONVERT TO DELTA parquet.`path`; ``partitions`` are columns with types."""

    identifier: str
    partitions: tuple[Field, ...] | None = None
    collects_statistics: bool = True


@dataclass(frozen=True)
class ConvertName(Statement):
    """CONVERT TO DELTA of a name that is no Delta table's."""

    name: Path


@dataclass(frozen=True)
class DropTable(Statement):
    """DROP TABLE [IF EXISTS], of a path or of an existing name."""

    table: Table
    if_exists: bool = False


@dataclass(frozen=True)
class RenameTable(Statement):
    """RENAME TO."""

    table: Table
    name: Path


# -- ALTER TABLE -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SetTableProperties(Statement):
    """SET TBLPROPERTIES."""

    table: Table
    properties: Mapping[str, str]


@dataclass(frozen=True)
class UnsetTableProperties(Statement):
    """UNSET TBLPROPERTIES [IF EXISTS]."""

    table: Table
    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class AddedColumn:
    """A column to add at a path, with its position."""

    path: Path
    field: Field
    first: bool = False
    after: str | None = None


@dataclass(frozen=True)
class AddTableColumns(Statement):
    """ADD COLUMNS."""

    table: Table
    columns: tuple[AddedColumn, ...]

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """See `Statement.required_columns`."""
        return tuple((*column.path[:-1], column.after) for column in self.columns if column.after)


@dataclass(frozen=True)
class DropTableColumns(Statement):
    """DROP COLUMNS [IF EXISTS]."""

    table: Table
    paths: tuple[Path, ...]
    if_exists: bool = False

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """See `Statement.required_columns`."""
        return () if self.if_exists else self.paths


@dataclass(frozen=True)
class RenameTableColumn(Statement):
    """RENAME COLUMN … TO."""

    table: Table
    path: Path
    name: str

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """See `Statement.required_columns`."""
        return (self.path,)


@dataclass(frozen=True)
class ChangeTableColumn(Statement):
    """ALTER COLUMN and CHANGE COLUMN; a field that is None does not change."""

    table: Table
    path: Path
    field: Field | None = None
    comment: str | None = None
    nullable: bool | None = None
    default: str | None = None
    first: bool = False
    after: str | None = None

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """See `Statement.required_columns`."""
        return (self.path, (*self.path[:-1], self.after)) if self.after else (self.path,)


@dataclass(frozen=True)
class ChangeTableColumns(Statement):
    """ALTER COLUMN of several columns."""

    table: Table
    changes: tuple[ChangeTableColumn, ...]

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """See `Statement.required_columns`."""
        return tuple(path for change in self.changes for path in change.required_columns)


@dataclass(frozen=True)
class SyncTableIdentity(Statement):
    """ALTER COLUMN … SYNC IDENTITY."""

    table: Table
    path: Path

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """See `Statement.required_columns`."""
        return (self.path,)


@dataclass(frozen=True)
class ReplaceTableColumns(Statement):
    """REPLACE COLUMNS."""

    table: Table
    columns: tuple[Field, ...]


@dataclass(frozen=True)
class AddTableConstraint(Statement):
    """ADD CONSTRAINT … CHECK."""

    table: Table
    name: str
    check: Expression


@dataclass(frozen=True)
class AddTableKey(Statement):
    """ADD [CONSTRAINT …] PRIMARY KEY or FOREIGN KEY."""

    table: Table
    key: Key


@dataclass(frozen=True)
class DropTableKey(Statement):
    """DROP PRIMARY KEY, and DROP FOREIGN KEY of these columns."""

    table: Table
    kind: str
    columns: tuple[str, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True)
class DropTableConstraint(Statement):
    """DROP CONSTRAINT [IF EXISTS]."""

    table: Table
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DropTableFeature(Statement):
    """DROP FEATURE [TRUNCATE HISTORY]."""

    table: Table
    feature: str
    truncate_history: bool = False


@dataclass(frozen=True)
class ClusterTableBy(Statement):
    """CLUSTER BY (…) and CLUSTER BY NONE."""

    table: Table
    columns: tuple[Path, ...]

    @property
    def required_columns(self) -> tuple[Path, ...]:
        """See `Statement.required_columns`."""
        return self.columns


# -- DESCRIBE, SHOW ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DescribeHistory(Statement):
    """DESCRIBE HISTORY [LIMIT n]."""

    table: Table
    limit: int | None = None


@dataclass(frozen=True)
class DescribeDetail(Statement):
    """DESCRIBE DETAIL."""

    table: Table


@dataclass(frozen=True)
class DescribeOther(Statement):
    """DESCRIBE DETAIL of a name that is no Delta table's; ``span`` is its position in the statement."""

    name: Path
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True)
class DescribeTable(Statement):
    """DESCRIBE [EXTENDED | FORMATTED] [column]."""

    table: Table
    extended: bool = False
    column: Path | None = None


@dataclass(frozen=True)
class ShowColumns(Statement):
    """SHOW COLUMNS IN."""

    table: Table


@dataclass(frozen=True)
class ShowPartitions(Statement):
    """SHOW PARTITIONS; ``values`` are columns with the SQL texts of their values."""

    table: Table
    values: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class ShowProperties(Statement):
    """SHOW TBLPROPERTIES [(key)]."""

    table: Table
    key: str | None = None


@dataclass(frozen=True)
class ShowCreateTable(Statement):
    """SHOW CREATE TABLE."""

    table: Table


@dataclass(frozen=True)
class RefreshTable(Statement):
    """REFRESH TABLE."""

    table: Table


@dataclass(frozen=True)
class CacheTable(Statement):
    """CACHE [LAZY] TABLE; ``level`` is the storage level."""

    table: Table
    lazy: bool = False
    level: str | None = None


@dataclass(frozen=True)
class UncacheTable(Statement):
    """UNCACHE TABLE."""

    table: Table


# -- maintenance -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OptimizeTable(Statement):
    """OPTIMIZE [FULL] [WHERE …] [ZORDER BY (…)]."""

    table: Table
    where: Expression | None = None
    zorder: tuple[Path, ...] = ()
    full: bool = False


@dataclass(frozen=True)
class ExplainChange(Statement):
    """EXPLAIN of a change of rows, or of OPTIMIZE; ``mode`` is the word after EXPLAIN in upper case, or empty."""

    change: RowChange | OptimizeTable
    mode: str = ""


@dataclass(frozen=True)
class ReorgTable(Statement):
    """REORG TABLE … [WHERE …] APPLY (PURGE), and, with a version, APPLY (UPGRADE UNIFORM (…))."""

    table: Table
    where: Expression | None = None
    iceberg_version: int | None = None


@dataclass(frozen=True)
class VacuumTable(Statement):
    """VACUUM [FULL | LITE] [RETAIN n HOURS] [DRY RUN]; ``lite`` is None if neither FULL nor LITE is specified."""

    table: Table
    hours: float | None = None
    dry_run: bool = False
    lite: bool | None = None


@dataclass(frozen=True)
class RestoreTable(Statement):
    """RESTORE TABLE … TO VERSION | TIMESTAMP AS OF; the table has the version or timestamp."""

    table: Table


@dataclass(frozen=True)
class GenerateManifest(Statement):
    """GENERATE mode FOR TABLE."""

    table: Table
    mode: str


@dataclass(frozen=True)
class RepairTable(Statement):
    """FSCK REPAIR TABLE [DRY RUN]."""

    table: Table
    dry_run: bool = False
