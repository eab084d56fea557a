"""Which table features can be dropped, and how a log shows that one was used.

Knows PROTOCOL.md, "Table Features", "Checkpoint Protection", and which features delta-spark 4 can drop. Pure.
Guarantee: a feature for which `is_used` is false in a version may be removed from that version's protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from anabranch._protocol.actions import Metadata, Protocol
from anabranch._protocol.features import row_tracking, widening
from anabranch._protocol.features.known import (
    BY_NAME,
    CHECK_CONSTRAINTS,
    CHECKPOINT_POLICY,
    CHECKPOINT_PROTECTION,
    COLUMN_MAPPING,
    COORDINATED_COMMITS,
    DELETION_VECTORS,
    ROW_TRACKING,
    V2_CHECKPOINT,
)
from anabranch._protocol.features.table_features import reader_features, with_features, writer_features
from anabranch._protocol.features.widening import LISTED_BY
from anabranch._protocol.in_commit_timestamps import ENABLED, IN_COMMIT, KEPT_BY_WRITERS
from anabranch._protocol.inactive_properties import PROTECTED_BEFORE
from anabranch._protocol.materialised_partitions import ENABLED as MATERIALISES
from anabranch._protocol.materialised_partitions import FEATURE as MATERIALISED_PARTITIONS
from anabranch._protocol.properties import Properties
from anabranch._protocol.rules.table_rules import CONSTRAINT_PREFIX, is_constraint
from anabranch._protocol.schema.column_mapping import IN_COLUMNS, MAX_ID, MODE, fields_of, number_in, without_keys
from anabranch._protocol.schema.geospatial import KINDS
from anabranch._protocol.schema.types import parse_schema, schema_json, type_names
from anabranch.errors import FeatureNotDropped

DOMAINS = "domainMetadata"


@dataclass(frozen=True)
class Removable:
    """A feature that can be dropped.

    Attributes:
        name: the feature's name.
        switches: properties that must have these values first; None: unset, for their defaults.
        leftovers: properties that are removed with those, whatever their values.
        owned: properties that are removed with the feature.
        column_keys: keys of column metadata that show its use.
        types: column types that show its use, without their parameters; their columns must be dropped first.
        file_fields: fields of file actions that show its use, such as a deletion vector.
        rewrites: whether files must be rewritten.
        is_in_history: whether readers without it could not read older versions.
    """

    name: str
    switches: Mapping[str, str | None] = field(default_factory=dict)
    leftovers: tuple[str, ...] = ()
    owned: tuple[str, ...] = ()
    column_keys: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    file_fields: tuple[str, ...] = ()
    rewrites: bool = False
    is_in_history: bool = False

    @property
    def leaves_traces(self) -> bool:
        """Whether a version can show that the feature is used."""
        return bool(self.switches or self.column_keys or self.types or self.file_fields)

    def is_switched_on(self, metadata: Metadata) -> bool:
        """Whether properties use the feature."""
        return self.properties_when_off(metadata) != metadata.configuration

    def is_used_by(self, metadata: Metadata) -> bool:
        """Whether metadata uses the feature."""
        return self.is_switched_on(metadata) or self.is_in_columns(metadata)

    def is_in_columns(self, metadata: Metadata) -> bool:
        """Whether columns, by their metadata or types, show the feature."""
        return bool(self.columns_with_types(metadata)) or self._is_in_column_metadata(metadata)

    def columns_with_types(self, metadata: Metadata) -> list[str]:
        """The top-level columns that have, at any depth, a type that shows the feature."""
        schema = parse_schema(metadata.schema_string) if self.types else ()
        return [column.name for column in schema if not type_names(column.type).isdisjoint(self.types)]

    def _is_in_column_metadata(self, metadata: Metadata) -> bool:
        if not self.column_keys:
            return False
        fields = fields_of(parse_schema(metadata.schema_string))  # the schema as written, whatever other properties are
        return any(key in column.metadata for column in fields for key in self.column_keys)

    def is_used_in(self, files: pa.Table) -> bool:
        """Whether file actions use the feature."""
        return any(files[name].null_count < len(files) for name in self.file_fields)

    def properties_when_off(self, metadata: Metadata) -> dict[str, str]:
        """The properties with the feature switched off; the others stay."""
        properties = without_properties(metadata.configuration, self.leftovers)
        for key, value in self.switches.items():
            if Properties(properties)[key] != Properties({} if value is None else {key: value})[key]:
                properties.pop(key, None)
                properties |= {} if value is None else {key: value}
        return properties


_VECTORS = Removable(
    DELETION_VECTORS,
    {"delta.enableDeletionVectors": None},
    file_fields=("deletionVector",),
    rewrites=True,
    is_in_history=True,
)
_ROW_TRACKING = Removable(
    ROW_TRACKING,
    {row_tracking.ENABLED: "false", row_tracking.SUSPENDED: "true"},
    owned=(
        row_tracking.ENABLED,
        row_tracking.SUSPENDED,
        row_tracking.ROW_ID_COLUMN,
        row_tracking.COMMIT_VERSION_COLUMN,
    ),
    file_fields=row_tracking.FILE_FIELDS,
)
_MAPPING = Removable(
    COLUMN_MAPPING, {MODE: None}, leftovers=(MAX_ID,), column_keys=IN_COLUMNS, rewrites=True, is_in_history=True
)


def _widening(name: str) -> Removable:
    """Type widening, under one of its names."""
    switch = {widening.ENABLED: None}
    return Removable(name, switch, column_keys=(widening.TYPE_CHANGES,), rewrites=True, is_in_history=True)


REMOVABLE: Mapping[str, Removable] = {
    feature.name: feature
    for feature in (
        _VECTORS,
        Removable("vacuumProtocolCheck", is_in_history=True),
        Removable(CHECK_CONSTRAINTS),
        Removable(COORDINATED_COMMITS),
        Removable(DOMAINS),
        Removable(CHECKPOINT_PROTECTION, owned=(PROTECTED_BEFORE,)),
        Removable(MATERIALISED_PARTITIONS, owned=(MATERIALISES,)),
        Removable(IN_COMMIT, {ENABLED: None}, leftovers=KEPT_BY_WRITERS),
        Removable(V2_CHECKPOINT, {CHECKPOINT_POLICY: "classic"}, is_in_history=True),
        _ROW_TRACKING,
        *(_widening(name) for name in sorted(LISTED_BY)),
        _MAPPING,
        *(Removable(name, types=KINDS, is_in_history=True) for name in ("geospatial", "geospatial-dev")),
    )
}
_NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")
"""Characters that Spark cannot read or write in a Parquet column name, unless the column has another physical name."""


def to_drop(table: str, name: str, protocol: Protocol, metadata: Metadata, *, truncates: bool) -> Removable:
    """The removable feature of this name. Raises FeatureNotDropped, with the rule that forbids dropping it from this
    table.
    """
    present = reader_features(protocol) | writer_features(protocol)
    spelled = next((feature for feature in present if feature.lower() == name.lower()), name)
    for rule, reason in _objections(spelled, present, metadata, truncates=truncates):
        raise FeatureNotDropped(table=table, feature=name, delta_condition=rule, reason=reason)
    return REMOVABLE[spelled]


def _objections(
    name: str, present: frozenset[str], metadata: Metadata, *, truncates: bool
) -> Iterator[tuple[str, str]]:
    """Yield why a feature cannot be dropped: delta-spark's condition and a reason, the most important first."""
    if name.lower().startswith("delta."):
        yield "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY", "this is a property, not a feature."
    if name not in BY_NAME:
        yield "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE", "this version of Anabranch does not know it."
    if name not in present:
        yield "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", "it is not currently present in the table's protocol."
    if name not in REMOVABLE:
        yield "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "no engine can drop it."
    dependents = sorted(feature for feature in present & BY_NAME.keys() if name in BY_NAME[feature].needs)
    if dependents:
        yield "DELTA_FEATURE_DROP_DEPENDENT_FEATURE", f"{', '.join(dependents)} needs it; drop that first."
    constraints = sorted(key[len(CONSTRAINT_PREFIX) :] for key in metadata.configuration if is_constraint(key))
    if name == CHECK_CONSTRAINTS and constraints:
        reason = f"the following constraints must be dropped first: {', '.join(constraints)}."
        yield "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE", reason
    typed = REMOVABLE[name].columns_with_types(metadata)
    if typed:
        reason = f"the columns of its types must be dropped first: {', '.join(typed)}."
        yield "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE", reason
    unfit = [column.name for column in fields_of(metadata.schema) if not _NOT_IN_NAMES.isdisjoint(column.name)]
    if name == COLUMN_MAPPING and unfit:
        reason = f"files cannot have columns of these names, rename them first: {', '.join(map(repr, unfit))}."
        yield "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING", reason
    if name == CHECKPOINT_PROTECTION and not truncates:
        rule = "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
        yield rule, "it protects history and can only be dropped with it: add TRUNCATE HISTORY."
    if truncates and name != CHECKPOINT_PROTECTION and not REMOVABLE[name].is_in_history:
        rule = "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
        yield rule, "it binds writers only, so history can stay: omit TRUNCATE HISTORY."


def protocol_without(protocol: Protocol, feature: str, *, guarded: bool) -> Protocol:
    """The least protocol without a feature; ``guarded`` adds the feature that protects the checkpoints of history.

    Example:
        >>> without(Protocol(1, 3), "checkConstraints", guarded=False)
        Protocol(min_reader=1, min_writer=2, reader_features=None, writer_features=None)
    """
    remaining = (reader_features(protocol) | writer_features(protocol)) - {feature}
    return with_features(Protocol(1, 1), remaining | (frozenset({CHECKPOINT_PROTECTION}) if guarded else frozenset()))


def without_columns_of(metadata: Metadata, feature: Removable) -> Metadata:
    """The metadata without the feature's keys in its columns."""
    schema = without_keys(parse_schema(metadata.schema_string), feature.column_keys)
    return replace(metadata, schema_string=schema_json(schema))


def without_properties(configuration: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """A table's properties without these."""
    removed = set(keys)
    return {key: value for key, value in configuration.items() if key not in removed}


def checkpoint_protection_version(metadata: Metadata) -> int:
    """The version before which history may only be removed at once; 0 if nothing is protected."""
    return number_in(metadata.configuration, PROTECTED_BEFORE)
