"""Renames and drops columns and members of structs. It changes no file, for files hold physical names.

Knows PROTOCOL.md, section "Column Mapping", and what else in a table refers to columns by name. The guarantees of
`anabranch.commands.ddl.alter` hold here too. The values of a dropped column stay in files; no later column gets its
number or physical name, so they never come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata, compact_json
from anabranch._protocol.rules.table_rules import may_use, rules_of
from anabranch._protocol.schema.column_mapping import MODE, is_mapped
from anabranch._protocol.schema.evolution import drop_column, members_of, rename_column, rewrite_at
from anabranch._protocol.schema.keys import users_of
from anabranch._protocol.schema.leaves import STATS_COLUMNS, column_list, format_column_list
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import Array, DataType, Field, Map, Struct, schema_json
from anabranch._transaction.commit import CommitResult
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.ddl.alter import Alteration, run_alteration
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree
from anabranch.commands.rerunning import rerunnable
from anabranch.errors import ColumnInUse, InvalidOption, InvalidProperty, NotBuilt

Path = tuple[str, ...]


@dataclass(frozen=True)
class RenameColumn(SecretFree):
    """ALTER TABLE … RENAME COLUMN … TO …: renames the column at ``path``, in which ``element``, ``key`` and ``value``
    lead into arrays and maps.

    Example:
        >>> RenameColumn("/data/flights", ("origin", "gate"), "stand").run()
    """

    table: Location
    path: Path
    name: str

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if the column has that name already.

        Raises:
            InvalidProperty: the table has no column mapping. UnknownColumn: there is no such column.
            InvalidOption: another column has that name. ColumnInUse: a rule of the table refers to it.
            MetadataChangedException: the table was written meanwhile.
        """
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        path = _resolve_path(base, self.path, "Column rename")
        _refuse_used(base, path, _rules(base, path))
        new = (*path[:-1], self.name)
        metadata = _with_columns(
            base.metadata, rename_column(base.schema, path, self.name), _StatsColumnsEdit(path, new)
        )
        if len(path) == 1:
            partitions = tuple(self.name if name == path[0] else name for name in base.partition_columns)
            metadata = replace(metadata, partition_columns=partitions)
        parameters = {"oldColumnPath": _text(path), "newColumnPath": _text(new)}
        return Alteration("RENAME COLUMN", parameters, metadata)


@dataclass(frozen=True)
class DropColumns(SecretFree):
    """ALTER TABLE … DROP COLUMNS (…): removes columns from the schema.

    Example:
        >>> DropColumns("/data/flights", (("gate",), ("origin", "stand"))).run()
    """

    table: Location
    paths: Sequence[Path]

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it.

        Raises:
            InvalidProperty: the table has no column mapping. UnknownColumn: there is no such column.
            InvalidOption: no column is named, or only partition columns would be left.
            ColumnInUse: the table is partitioned or clustered by it, or a rule of the table refers to it.
            MetadataChangedException: the table was written meanwhile.
        """
        if not self.paths:
            raise InvalidOption(option="columns", value="none", reason="name at least one column to drop.")
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        spelled, schema = check_droppable(base, self.paths), base.schema
        for path in spelled:
            schema = drop_column(schema, path)
        configuration = unlist_stats_columns(base.metadata.configuration, spelled)
        metadata = replace(base.metadata, schema_string=schema_json(schema), configuration=configuration)
        if set(metadata.schema.names) <= set(base.partition_columns):
            reason = "only columns would be left by which the table is partitioned."
            raise InvalidOption(option="columns", value=", ".join(map(_text, spelled)), reason=reason)
        return Alteration("DROP COLUMNS", {"columns": compact_json([_text(path) for path in spelled])}, metadata)


def check_droppable(base: Snapshot, paths: Sequence[Path]) -> list[Path]:
    """The paths in the table's spelling, all of which may be dropped.

    Raises:
        InvalidProperty: the table has no column mapping. UnknownColumn: there is no such column.
        ColumnInUse: the table is partitioned or clustered by one, or a rule of the table refers to it.
    """
    spelled = [_resolve_path(base, path, "DROP COLUMN") for path in paths]
    dropped = frozenset(path[0] for path in spelled if len(path) == 1)
    for path in spelled:
        _refuse_used(base, path, [*_layout(base, path), *_rules(base, path, dropped)])
    return spelled


def unlist_stats_columns(configuration: Mapping[str, str], paths: Sequence[Path]) -> dict[str, str]:
    """The properties, with these columns removed from the list of columns with statistics."""
    updated = dict(configuration)
    for path in paths:
        updated = _StatsColumnsEdit(path, None).apply_to(updated)
    return updated


def _resolve_path(base: Snapshot, path: Path, what: str) -> Path:
    """The path in the table's spelling."""
    if not is_mapped(base.metadata.configuration):
        rule = "columns are renamed and dropped under a column mapping only; set it to name first."
        reason = f"{what} is not supported for your Delta table: {rule}"
        raise InvalidProperty(property=MODE, value="none", reason=reason)
    if not path:
        raise InvalidOption(option="columns", value="none", reason="name the column.")
    fields: list[Field] = []

    def keep(struct: Struct, field: Field) -> Struct:
        fields.append(field)
        return struct

    resolved: list[str] = []
    for end in range(1, len(path) + 1):
        if end > 1 and isinstance(_type_at(base.schema, path[: end - 1]), Array | Map):
            resolved.append(path[end - 1].lower())
            continue
        rewrite_at(base.schema, path[:end], keep)
        resolved.append(fields[-1].name)
    if len(path) > 1 and LENGTH in base.schema.field(path[0]).metadata:
        raise NotBuilt(what=f"changing members of {path[0]}, which has texts of limited length", instead="Leave it.")
    return tuple(resolved)


def _type_at(schema: Struct, path: Path) -> DataType | None:
    type_: DataType | None = schema
    for name in path:
        if isinstance(type_, Struct):
            type_ = type_.field(name).type
        elif isinstance(type_, Array) and name.lower() == "element":
            type_ = type_.element
        elif isinstance(type_, Map) and name.lower() in ("key", "value"):
            type_ = type_.key if name.lower() == "key" else type_.value
        else:
            return None
    return type_


def _text(path: Path) -> str:
    return ".".join(f"`{name.replace('`', '``')}`" if not name.isidentifier() else name for name in path)


# -- what refers to a column -------------------------------------------------------------------------------------------


def _refuse_used(base: Snapshot, path: Path, users: Sequence[str]) -> None:
    if users:
        column = _text(path)
        raise ColumnInUse(table=base.table, column=column, users=", ".join(users), said=_usage_text(column, users))


_CHECK, _GENERATED, _PARTITIONING, _CLUSTERING = (
    "the constraint ",
    "the generated column ",
    "the partitioning",
    "the clustering",
)


def _usage_text(column: str, users: Sequence[str]) -> str:
    """Why a column cannot be changed, in delta-spark's words."""
    layout = {_PARTITIONING: "partition", _CLUSTERING: "clustering"}
    sentences = [
        f"Dropping {layout[user]} columns ({column}) is not allowed: it is used by {user}."
        for user in users
        if user in layout
    ]
    for kind, prefix in (("check constraint(s)", _CHECK), ("generated column(s)", _GENERATED), ("", "")):
        names = [user.removeprefix(prefix) for user in users if user.startswith(prefix) and user not in layout]
        users = [user for user in users if not user.startswith(prefix)]
        by = f"the following {kind}: " if kind else ""
        because = f"Cannot alter column {column} because this column is referenced by"
        sentences += [f"{because} {by}{', '.join(names)}."] if names else []
    return " ".join(sentences)


def _rules(base: Snapshot, path: Path, dropped: frozenset[str] = frozenset()) -> list[str]:
    """The rules of the table whose text may refer to the column or to a column around it. The rules of columns that are
    ``dropped`` too do not count.
    """
    remaining = Struct(tuple(field for field in base.schema if field.name not in dropped))
    rules = rules_of(replace(base.metadata, schema_string=schema_json(remaining)))
    users = [(f"{_CHECK}{rule.name}", rule.expression) for rule in rules.checks]
    users += [(f"{_GENERATED}{rule.column}", rule.expression) for rule in rules.generated]
    used = [
        f"{user} ({expression})" for user, expression in users if may_use(expression, members_of(base.schema, path))
    ]
    return used + (users_of(path[0], base.metadata.configuration) if len(path) == 1 else [])


def _layout(base: Snapshot, path: Path) -> Iterator[str]:
    """Yields the partitioning and the clustering if they use the column."""
    if len(path) == 1 and path[0] in base.partition_columns:
        yield _PARTITIONING
    if any(columns[: len(path)] == path for columns in base.clustering_columns):
        yield _CLUSTERING


# -- the list of columns with statistics -------------------------------------------------------------------------------


def _with_columns(metadata: Metadata, columns: Struct, properties: _StatsColumnsEdit) -> Metadata:
    configuration = properties.apply_to(metadata.configuration)
    return replace(metadata, schema_string=schema_json(columns), configuration=configuration)


@dataclass(frozen=True)
class _StatsColumnsEdit:
    """An edit of the list of columns with statistics: renames ``old`` to ``new``, or removes it with all inside."""

    old: Path
    new: Path | None

    def apply_to(self, configuration: Mapping[str, str]) -> dict[str, str]:
        text = configuration.get(STATS_COLUMNS, "")
        if not text.strip():
            return dict(configuration)
        try:
            listed = column_list(text)
        except ValueError as error:
            raise InvalidProperty(property=STATS_COLUMNS, value=text, reason=f"{error}.") from None
        moved = [self._move_path(path) for path in listed]
        remaining = [path for path in moved if path is not None]
        rest = {key: value for key, value in configuration.items() if key != STATS_COLUMNS}
        return {**rest, STATS_COLUMNS: format_column_list(remaining)} if remaining else rest

    def _move_path(self, path: Path) -> Path | None:
        if _fold_case(path[: len(self.old)]) != _fold_case(self.old):
            return path
        return None if self.new is None else (*self.new, *path[len(self.old) :])


def _fold_case(path: Path) -> Path:
    return tuple(name.lower() for name in path)
