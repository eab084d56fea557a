"""What a table requires of readers and writers, and what this package supports.

Knows PROTOCOL.md, sections "Table Features" and "Requirements for Readers / Writers". Pure. Guarantee: a table that
needs an unknown feature is refused by that feature's name, before anything is read wrongly or written at all.

A feature can be *listed* (the protocol action names it, or a legacy version implies it) and *active* (the metadata uses
it). The features and their support are in `anabranch._protocol.features.known`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any

from anabranch._protocol import iceberg
from anabranch._protocol.actions import Metadata, Protocol
from anabranch._protocol.features.known import (
    BY_NAME,
    CHECK_CONSTRAINTS,
    COLLATIONS,
    COLUMN_MAPPING,
    COORDINATED_COMMITS,
    COORDINATOR,
    DELETION_VECTORS,
    KNOWN,
    ROW_TRACKING,
)
from anabranch._protocol.features.refused import COLLATED, COORDINATED, why_refused
from anabranch._protocol.features.widening import unreadable_change
from anabranch._protocol.rules import table_rules
from anabranch._protocol.schema.column_mapping import fields_of
from anabranch._protocol.schema.lengths import LENGTH
from anabranch._protocol.schema.types import (
    LEVELS_IN_FILES,
    Field,
    Struct,
    levels_in_files,
    parse_schema,
    type_names,
)
from anabranch.errors import InvalidOption, InvalidSchema, UnsupportedFeature
from anabranch.errors.process_state import memo

READABLE = frozenset(feature.name for feature in KNOWN if feature.binds_readers)
"""Supported reader features."""

WRITABLE = frozenset(feature.name for feature in KNOWN)
"""Supported writer features."""

SUPPORTED = frozenset(feature.name for feature in KNOWN if feature.preview_of is None)
"""Features that a user may enable: every requirement is met or refused."""

_RULES = frozenset(feature.name for feature in KNOWN if feature.is_rule)
_NEVER_ACTIVE = frozenset({DELETION_VECTORS, "appendOnly"})
"""Their properties only affect how to write; the requirements are met whatever the properties are."""

COLLATION = "__COLLATIONS"
"""The key of a column's collations in its metadata."""
_LENGTHS = "char / varchar length"
_BY_FLAG = {feature.name: (feature.flag, feature.flag_value) for feature in KNOWN if feature.flag is not None}
_BY_COLUMN = {feature.name: feature.column_key for feature in KNOWN if feature.column_key is not None} | {
    _LENGTHS: LENGTH
}
_BY_TYPE = {name: feature.name for feature in KNOWN for name in feature.type_names}


def reader_features(protocol: Protocol) -> frozenset[str]:
    """The features that a reader must support, by name, whether listed or implied."""
    if protocol.min_reader >= 3:
        return protocol.reader_features or frozenset()
    return frozenset(f.name for f in KNOWN if f.reader_version is not None and f.reader_version <= protocol.min_reader)


def writer_features(protocol: Protocol) -> frozenset[str]:
    """The features that a writer must support, by name."""
    if protocol.min_writer >= 7:
        return protocol.writer_features or frozenset()
    return frozenset(f.name for f in KNOWN if f.writer_version is not None and f.writer_version <= protocol.min_writer)


def active(metadata: Metadata) -> frozenset[str]:
    """The features that this metadata uses."""
    configuration = metadata.configuration
    names = set(_enabled_features(configuration) - _NEVER_ACTIVE)
    in_columns, _, by_types = _schema_requirements(metadata.schema_string)
    names |= {feature for feature, key in _BY_COLUMN.items() if key in in_columns}
    if any(map(table_rules.is_constraint, configuration)):
        names.add(CHECK_CONSTRAINTS)
    if configuration.get("delta.columnMapping.mode", "none").lower() != "none":
        names.add(COLUMN_MAPPING)
    return frozenset(names | by_types)


def _enabled_features(configuration: Mapping[str, str]) -> frozenset[str]:
    """The features whose property has its activating value."""
    flags = _BY_FLAG.items()
    return frozenset(name for name, (key, value) in flags if configuration.get(key, "").strip().lower() == value)


@memo("what schemas ask for", 256)  # computed at each commit, and a schema may have thousands of columns
def _schema_requirements(schema_string: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The metadata keys of a schema's columns, the keys that are nested too deeply to be supported, and the features
    that the types require.
    """
    schema = parse_schema(schema_string)
    deep = Counter(key for field in fields_of(schema) for key in field.metadata)
    deep.subtract(key for field in schema for key in field.metadata)
    deep.subtract(table_rules.INVARIANT for field in _members(schema) if table_rules.INVARIANT in field.metadata)
    keys = frozenset(key for field in fields_of(schema) for key in field.metadata)
    return keys, frozenset(key for key, count in deep.items() if count > 0), features_of_types(schema)


@memo("unreadable changes of types", 256)
def _unreadable_change(schema_string: str) -> str | None:
    return unreadable_change(parse_schema(schema_string))


@memo("levels of schemas", 256)
def _check_levels(schema_string: str) -> None:
    for field in parse_schema(schema_string):
        if (levels := levels_in_files(field.type)) > LEVELS_IN_FILES:
            reason = f"the column {field.name} takes {levels} levels in a file, of which {LEVELS_IN_FILES} can be read."
            raise InvalidSchema(reason=reason)


def features_of_types(schema: Struct) -> frozenset[str]:
    """The features that the types of these columns require."""
    return frozenset(_BY_TYPE[name] for name in type_names(schema) & _BY_TYPE.keys())


def check_readable(table: str, protocol: Protocol, metadata: Metadata) -> None:
    """Raises `UnsupportedFeature`, with the feature's name, unless the table can be read correctly."""
    if protocol.min_reader > 3:
        _refuse(table, "reader", {f"of reader version {protocol.min_reader}"})
    _refuse(table, "reader", reader_features(protocol) - READABLE)
    if change := _unreadable_change(metadata.schema_string):
        _refuse(table, "reader", {"typeWidening"}, change)


def check_writable(table: str, protocol: Protocol, metadata: Metadata) -> None:
    """Raises UnsupportedFeature, with the feature's name, unless the table can be written correctly, and InvalidSchema
    if a column is nested deeper than files allow.
    """
    check_readable(table, protocol, metadata)
    _check_levels(metadata.schema_string)
    if protocol.min_writer > 7:
        _refuse(table, "writer", {f"of writer version {protocol.min_writer}"})
    _refuse(table, "writer", writer_features(protocol) - WRITABLE)
    _refuse(table, "writer", _row_tracking_faults(protocol, metadata))
    keys, deep, _ = _schema_requirements(metadata.schema_string)
    if COLLATION in keys:
        _refuse(table, "writer", writer_features(protocol) & COLLATIONS, COLLATED)
    if COORDINATOR in metadata.configuration:
        _refuse(table, "writer", writer_features(protocol) & {COORDINATED_COMMITS}, COORDINATED)
    inside = frozenset(f"{feature} (inside a nested column)" for feature, key in _BY_COLUMN.items() if key in deep)
    _refuse(table, "writer", inside, "rules inside nested columns are not enforced.")
    iceberg.check(metadata, vectors_listed=DELETION_VECTORS in writer_features(protocol))


def _row_tracking_faults(protocol: Protocol, metadata: Metadata) -> frozenset[str]:
    """Row tracking, if a property enables it but the protocol does not list it with the features it needs."""
    listed = writer_features(protocol)
    if ROW_TRACKING not in listed:
        return _enabled_features(metadata.configuration) & {ROW_TRACKING}
    missing = sorted(frozenset(BY_NAME[ROW_TRACKING].needs) - listed)
    return frozenset(f"{ROW_TRACKING} (without {feature})" for feature in missing)


def protocol_for(metadata: Metadata, *, vectors: bool) -> Protocol:
    """The least protocol for a new table, as delta-spark 4 chooses it: a legacy version if it means exactly the needed
    features, else features by name.
    """
    vectors_too = frozenset({DELETION_VECTORS}) if vectors else frozenset()
    needed = (required_features(metadata) - {DELETION_VECTORS}) | vectors_too
    writers, readers = frozenset({"appendOnly", "invariants"}) | needed, needed & READABLE
    if readers:
        return _protocol_of_features(readers, writers)
    for version in (2, 3, 4):
        if writer_features(Protocol(1, version)) == writers:
            return Protocol(min_reader=1, min_writer=version)
    return Protocol(1, 7, None, writers)


def required_features(metadata: Metadata) -> frozenset[str]:
    """The features, among those that Anabranch enables, that a table must list to have this metadata."""
    on = _enabled_features(metadata.configuration) & SUPPORTED
    not_null = {"invariants"} if any(not column.nullable for column in metadata.schema) else set()
    by_use = active(metadata) & (_RULES | {COLUMN_MAPPING})
    return _with_companions(features_of_types(metadata.schema) | by_use | on | not_null)


def _with_companions(features: frozenset[str]) -> frozenset[str]:
    """These features and those that must be listed with them."""
    return features | frozenset(needed for name in features for needed in BY_NAME[name].needs)


def with_features(protocol: Protocol, features: frozenset[str]) -> Protocol:
    """The protocol with these features added, in the least form: a version number, else names.

    Source: PROTOCOL.md "Table Features"; the features that legacy versions imply are listed as soon as names are.

    Example:
        >>> with_features(Protocol(1, 2), frozenset({"checkConstraints"})).min_writer
        3
    """
    listed = writer_features(protocol)
    new = _with_companions(features) - listed - {BY_NAME[name].preview_of for name in listed & BY_NAME.keys()}
    if not new:
        return protocol
    readers, writers = reader_features(protocol) | (new & READABLE), writer_features(protocol) | new
    for version in range(protocol.min_writer, 7):
        older = Protocol(protocol.min_reader, version)
        if writer_features(older) == writers and reader_features(older) == readers:
            return older
    if new & READABLE or protocol.min_reader >= 3:
        return _protocol_of_features(readers, writers) if protocol.min_reader < 3 else Protocol(3, 7, readers, writers)
    return Protocol(protocol.min_reader, 7, None, writers)


def _protocol_of_features(readers: frozenset[str], writers: frozenset[str]) -> Protocol:
    """The protocol that lists features; if readers need only column mapping, reader version 2 is enough."""
    return Protocol(2, 7, None, writers) if readers == {COLUMN_MAPPING} else Protocol(3, 7, readers, writers)


def upgrade_to_versions(protocol: Protocol, reader: int, writer: int) -> Protocol:
    """The protocol at higher versions, or unchanged if both are lower, as in delta-spark; the features that legacy
    versions imply are listed as soon as names are. Raises InvalidOption: one version is lower than the present one and
    the other higher, or one is invalid, or reader 3 comes without writer 7.
    """
    present = (protocol.min_reader, protocol.min_writer)
    if 1 <= reader <= present[0] and 1 <= writer <= present[1]:
        return protocol
    if not (present[0] <= reader <= 3 and present[1] <= writer <= 7):
        reason = f"the table has {present}; versions only go up, to at most 3 for readers and 7 for writers."
        raise InvalidOption(option="protocol", value=(reader, writer), reason=reason)
    if reader == 3 and writer < 7:
        raise InvalidOption(
            option="protocol", value=(reader, writer), reason="reader version 3 needs writer version 7."
        )
    if writer < 7:
        return Protocol(reader, writer)
    readers = reader_features(protocol) | (reader_features(Protocol(2, 5)) if reader == 2 else frozenset())
    names = readers if reader == 3 else None
    return Protocol(reader, writer, names, writer_features(protocol) | readers)


def upgrade_for_metadata(protocol: Protocol, metadata: Metadata) -> Protocol | None:
    """The protocol that a table needs with this metadata; None if the present one is enough."""
    upgraded = with_features(protocol, required_features(metadata))
    return None if upgraded == protocol else upgraded


def _refuse(table: str, kind: str, features: Set[str], reason: str | None = None) -> None:
    for feature in sorted(features):
        raise UnsupportedFeature(table=table, kind=kind, feature=feature, reason=reason or why_refused(feature))


def _members(schema: Struct) -> Iterator[Field]:
    """The members of structs outside arrays and maps."""
    for field in schema:
        if isinstance(field.type, Struct):
            yield from field.type
            yield from _members(field.type)


def describe(protocol: Protocol) -> Mapping[str, Any]:
    """The protocol as in DESCRIBE DETAIL."""
    return {
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
        "tableFeatures": sorted(reader_features(protocol) | writer_features(protocol)),
    }
