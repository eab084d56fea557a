"""The metadata and the protocol with which a table is created, evolved or replaced.

Knows columns, properties and features; no row and no commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from anabranch._protocol import iceberg
from anabranch._protocol.actions import Metadata
from anabranch._protocol.actions import Protocol as TableProtocol
from anabranch._protocol.features.requested_by_properties import (
    ProtocolRequest,
    read_protocol_request,
    without_requests,
)
from anabranch._protocol.features.row_tracking import with_columns
from anabranch._protocol.features.table_features import protocol_for, required_features
from anabranch._protocol.features.widening import widen_to_rows
from anabranch._protocol.inactive_properties import PROTECTED_BEFORE
from anabranch._protocol.layout.clustering import Path
from anabranch._protocol.properties import (
    IGNORE_DEFAULTS,
    Properties,
    canonical_properties,
    check_properties,
    check_retention,
)
from anabranch._protocol.rules.column_names import check_spelling
from anabranch._protocol.rules.identity import STEP, keep_assigned_values
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION
from anabranch._protocol.schema.column_mapping import highest_number, inherit_mapping, is_mapped
from anabranch._protocol.schema.evolution import evolve_schema
from anabranch._protocol.schema.keys import check_keys, without_invalid_keys
from anabranch._protocol.schema.leaves import check_stats_columns
from anabranch._protocol.schema.types import OPAQUE, VOID, Struct, schema_json
from anabranch._protocol.session_settings import current
from anabranch._transaction.retry import Runtime
from anabranch.errors import InvalidOption

MetadataChange = Literal["merge", "overwrite", "replace"]
"""How an insert changes a table's metadata: it adds columns, replaces columns and partitioning, or replaces all."""


@dataclass(frozen=True)
class NewTable:
    """The definition of a new table; for an existing table only the partitioning is checked.

    ``schema`` may be a function, which is called only for a creation: not all rows that fit a table can create one.
    ``cluster_by`` is None if not specified. A ``bare`` table may have no columns yet: its first write adds them.
    """

    schema: Struct | Callable[[], Struct]
    partition_columns: tuple[str, ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    cluster_by: tuple[Path, ...] | None = None
    bare: bool = False

    @property
    def columns(self) -> Struct:
        """The schema, computed if it is a function."""
        return self.schema() if callable(self.schema) else self.schema


def first_protocol(table: str, new: NewTable, metadata: Metadata) -> TableProtocol:
    """The protocol of a new table: what its metadata needs and its properties request."""
    requested = read_protocol_request(table, new.properties)
    if requested == ProtocolRequest():
        return protocol_for(metadata, vectors=Properties(metadata.configuration).vectors)
    return requested.least_for(required_features(metadata) | requested.default_features)


def with_session_defaults(new: NewTable) -> NewTable:
    """The new table with the session's default properties; its own properties win, whatever the case of their names.
    The property ``comment`` is its description, unless it has one.

    If ``delta.ignoreProtocolDefaults`` is true, defaults that request protocol features are left out.
    """
    defaults = current().defaults()
    properties, comment = canonical_properties(new.properties, None)
    if {**defaults, **properties}.get(IGNORE_DEFAULTS, "false").strip().lower() == "true":
        defaults = without_requests(defaults)
    description = comment if new.description is None else new.description
    return replace(new, properties={**defaults, **properties}, description=description)


def new_metadata(new: NewTable, runtime: Runtime, before: Metadata | None = None, *, named: bool = False) -> Metadata:
    """The metadata of a new table; deletion vectors are on unless the properties switch them off. Column numbers of the
    metadata ``before`` are not reused; with ``named``, physical names are those of existing files.

    Raises:
        InvalidProperty, InvalidOption: there cannot be such a table.
    """
    properties = iceberg.with_defaults(without_requests(new.properties))
    check_properties(properties)
    check_retention(properties)
    schema = new.columns
    columns = match_spelling(schema, new.partition_columns or ())
    check_columns(schema, columns, bare=new.bare)
    _check_values(schema)
    check_keys(schema, properties)
    check_stats_columns(schema, columns, properties)
    is_older_than_vectors = read_protocol_request("", new.properties).is_older_than_vectors
    vectors = properties if is_older_than_vectors else {"delta.enableDeletionVectors": "true", **properties}
    metadata = Metadata(
        id=str(runtime.new_id()),
        name=new.name,
        description=new.description,
        schema_string=schema_json(schema),
        partition_columns=columns,
        configuration={**vectors, **(highest_number(before.configuration) if before and is_mapped(vectors) else {})},
        created_time=runtime.now_ms(),
    )
    metadata = metadata.with_schema(schema, runtime.new_id, named=named) if is_mapped(vectors) else metadata
    check_spelling(metadata)
    return with_columns(metadata, runtime.new_id, old=before)


def evolve_metadata(
    new: NewTable, metadata: Metadata, change: MetadataChange | None, table: str | None, runtime: Runtime
) -> Metadata:
    """A table's metadata with the changes that an insert with this definition makes; ``table`` as for `merge_columns`.

    Raises:
        SchemaMismatch: a column that stays has another type in the rows.
    """
    match change:
        case "merge":
            return merge_columns(metadata, new.columns, table, runtime)
        case "overwrite":
            return _replace_columns(new, metadata, runtime)
        case "replace":
            return replace_metadata(new, metadata, runtime)
    return metadata


def merge_columns(metadata: Metadata, rows: Struct, table: str | None, runtime: Runtime) -> Metadata:
    """A table's metadata with the columns and the wider types of rows; ``table`` as ``where`` of `evolve_schema`."""
    merged = evolve_schema(widen_to_rows(metadata, rows), rows, table)
    return metadata if merged == metadata.schema else metadata.with_schema(merged, runtime.new_id)


def _replace_columns(new: NewTable, metadata: Metadata, runtime: Runtime) -> Metadata:
    """A table's metadata with the columns and the partitioning of another definition."""
    columns = inherit_mapping(new.columns, metadata.schema)
    changed = metadata if columns == metadata.schema else metadata.with_schema(columns, runtime.new_id)
    return replace(
        changed,
        partition_columns=match_spelling(columns, new.partition_columns or ()),
        configuration=without_invalid_keys(changed.schema, changed.configuration),
    )


def replace_metadata(new: NewTable, metadata: Metadata, runtime: Runtime) -> Metadata:
    """The metadata after REPLACE TABLE: only the table's id, the assigned identity values and the protection of its
    history stay.
    """
    replaced = new_metadata(new, runtime, metadata)  # with a new creation time, so it always differs
    guard = {key: value for key, value in metadata.configuration.items() if key == PROTECTED_BEFORE}
    replaced = replace(replaced, id=metadata.id, configuration={**replaced.configuration, **guard})
    return keep_assigned_values(metadata, replaced)


def _check_values(schema: Struct) -> None:
    """Raises InvalidOption if a column would get its values in two ways, or by an expression that cannot be checked."""
    for column in schema:
        generated = GENERATION in column.metadata
        if DEFAULT in column.metadata and (generated or STEP in column.metadata):
            kind, what = ("GENERATED", "generated") if generated else ("IDENTITY", "an identity column")
            facts = {"column": column.name, "delta_condition": f"{kind}_COLUMN_WITH_DEFAULT_VALUE"}
            reason = f"{column.name} is {what}: it has no default."
            raise InvalidOption(option="DEFAULT", value=column.metadata[DEFAULT], reason=reason, **facts)
        if generated and column.type in OPAQUE:
            reason = f"a {column.type} cannot be compared, so {column.name} cannot be held to its expression."
            facts = {"column": column.name, "delta_condition": "DELTA_UNSUPPORTED_DATA_TYPE_IN_GENERATED_COLUMN"}
            raise InvalidOption(option="GENERATED", value=column.metadata[GENERATION], reason=reason, **facts)


def match_spelling(schema: Struct, names: Sequence[str]) -> tuple[str, ...]:
    """The names in the spelling of the columns; a name without a column stays as it is.

    Example:
        >>> match_spelling(Struct((Field("Gate", "string"),)), ["gate", "day"])
        ('Gate', 'day')
    """
    fields = ((name, schema.find(name)) for name in names)
    return tuple(name if field is None else field.name for name, field in fields)


def check_columns(schema: Struct, partition_columns: tuple[str, ...], *, bare: bool = False) -> None:
    """Raises InvalidOption unless a table can have these columns (none only if ``bare``) and this partitioning."""
    doubled = sorted(name for name, times in Counter(name.lower() for name in schema.names).items() if times > 1)
    if doubled:
        raise InvalidOption(option="columns", value=doubled, reason="a column is named twice (case does not count).")
    if not schema.names and not bare:
        raise InvalidOption(option="columns", value="none", reason="a table needs at least one column.")
    for index, name in enumerate(partition_columns):
        column = schema.find(name)
        if name in partition_columns[:index]:
            raise InvalidOption(option="partitionBy", value=name, reason="the column is named twice.")
        if column is None or column.name != name:
            reason = f"Partition column `{name}` not found in schema [{', '.join(schema.names)}]."
            raise InvalidOption(option="partitionBy", value=name, reason=reason)
        if not isinstance(column.type, str):
            raise InvalidOption(option="partitionBy", value=name, reason="a nested column cannot partition a table.")
        if column.type in OPAQUE or column.type == VOID:
            reason = f"a {column.type} cannot partition a table."
            raise InvalidOption(option="partitionBy", value=name, reason=reason)
        if STEP in column.metadata:
            reason = "PARTITIONED BY IDENTITY column is not supported: an identity column cannot partition a table."
            condition = "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED"
            raise InvalidOption(option="partitionBy", value=name, reason=reason, delta_condition=condition)
    if partition_columns and len(partition_columns) == len(schema.names):
        raise InvalidOption(
            option="partitionBy", value=list(partition_columns), reason="Cannot use all columns for partition columns."
        )
