"""Features: what a table demands of its readers and writers, and what is understood here.

Knows PROTOCOL.md, sections "Table Features" and "Requirements for Readers / Writers". Pure. Guarantee: a table that
needs a feature unknown here is refused by that feature's name, before anything is read wrongly or written at all.

A feature can be *listed* (the protocol action names it, or an old version number implies it) and *active* (the
metadata uses it). A feature whose listing alone binds a writer is refused when listed; the others only when active.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from anabranch.errors import InvalidOption, UnsupportedFeature
from anabranch.protocol import rules
from anabranch.protocol.actions import Metadata, Protocol
from anabranch.protocol.schema import Array, DataType, Field, Map, Struct, parse_schema

DELETION_VECTORS = "deletionVectors"
TIMESTAMP_NTZ = "timestampNtz"

READABLE = frozenset({DELETION_VECTORS, TIMESTAMP_NTZ, "vacuumProtocolCheck", "columnMapping", "variantType"})
"""Reader features understood here; ``columnMapping`` while its mode is ``none``, ``variantType`` while no column is."""

WRITABLE = READABLE | {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "identityColumns",
    "allowColumnDefaults",
    "domainMetadata",
    "icebergCompatV1",
    "icebergCompatV2",
    "columnMapping",
}
"""Writer features whose listing asks nothing as long as they are not active (see `active`)."""

_OF_READERS = frozenset({DELETION_VECTORS, TIMESTAMP_NTZ, "vacuumProtocolCheck", "columnMapping", "variantType"})
"""Features that bind readers as well as writers."""

_IMPLIED_BY_READER = {2: {"columnMapping"}}
_IMPLIED_BY_WRITER = {
    2: {"appendOnly", "invariants"},
    3: {"checkConstraints"},
    4: {"changeDataFeed", "generatedColumns"},
    5: {"columnMapping"},
    6: {"identityColumns"},
}
_LENGTHS = "char / varchar length"
_RULES = frozenset({"invariants", "checkConstraints", "generatedColumns", "allowColumnDefaults", "identityColumns"})
_HONOURED_WHEN_ACTIVE = (
    frozenset({DELETION_VECTORS, TIMESTAMP_NTZ, "appendOnly", "vacuumProtocolCheck", "domainMetadata", _LENGTHS})
    | _RULES
)
"""What `anabranch.protocol.rules` knows of them: rules of top-level columns, and invariants of members of structs."""
SUPPORTED = _HONOURED_WHEN_ACTIVE & WRITABLE
"""Features that a user may switch on here: all that they ask is done."""

_ONLY_CHANGES = frozenset({"changeDataFeed"})
"""Active features that bind a writer who changes rows, but not one who only adds some."""

_BY_FLAG = {
    "changeDataFeed": "delta.enableChangeDataFeed",
    "icebergCompatV1": "delta.enableIcebergCompatV1",
    "icebergCompatV2": "delta.enableIcebergCompatV2",
    "rowTracking": "delta.enableRowTracking",
    "inCommitTimestamp": "delta.enableInCommitTimestamps",
}
_BY_COLUMN = {
    "generatedColumns": rules.GENERATION,
    "identityColumns": "delta.identity.start",
    "invariants": rules.INVARIANT,
    "allowColumnDefaults": rules.DEFAULT,
    _LENGTHS: rules.LENGTH,
}


def reader_features(protocol: Protocol) -> frozenset[str]:
    """The features that a reader must understand, by name, whichever way the protocol says it."""
    if protocol.min_reader >= 3:
        return protocol.reader_features or frozenset()
    return frozenset().union(
        *(names for version, names in _IMPLIED_BY_READER.items() if version <= protocol.min_reader)
    )


def writer_features(protocol: Protocol) -> frozenset[str]:
    """The features that a writer must understand, by name."""
    if protocol.min_writer >= 7:
        return protocol.writer_features or frozenset()
    return frozenset().union(
        *(names for version, names in _IMPLIED_BY_WRITER.items() if version <= protocol.min_writer)
    )


def active(metadata: Metadata) -> frozenset[str]:
    """The features that this metadata really uses."""
    configuration = metadata.configuration
    names = {feature for feature, key in _BY_FLAG.items() if configuration.get(key, "").lower() == "true"}
    in_columns, _, by_types = _asked_by(metadata.schema_string)
    names |= {feature for feature, key in _BY_COLUMN.items() if key in in_columns}
    if any(map(rules.is_constraint, configuration)):
        names.add("checkConstraints")
    if configuration.get("delta.columnMapping.mode", "none").lower() != "none":
        names.add("columnMapping")
    return frozenset(names | by_types)


@lru_cache(maxsize=256)  # asked at each commit, and a schema may have thousands of columns
def _asked_by(schema_string: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The keys in the metadata of a schema's columns, those of them that stand too deep to be held here, and the
    features that the types ask for.
    """
    schema = parse_schema(schema_string)
    deep = Counter(key for field in _fields(schema) for key in field.metadata)
    deep.subtract(key for field in schema for key in field.metadata)
    deep.subtract(rules.INVARIANT for field in _members(schema) if rules.INVARIANT in field.metadata)
    keys = frozenset(key for field in _fields(schema) for key in field.metadata)
    return keys, frozenset(key for key, count in deep.items() if count > 0), required_by_types(schema)


def required_by_types(schema: Struct) -> frozenset[str]:
    """The features that the types of these columns ask for."""
    types = set(_type_names(schema))
    return frozenset(
        ({TIMESTAMP_NTZ} if "timestamp_ntz" in types else set()) | ({"variantType"} if "variant" in types else set())
    )


def check_readable(table: str, protocol: Protocol, metadata: Metadata) -> None:
    """Refuse a table that cannot be read rightly.

    Raises:
        UnsupportedFeature: with the feature's name.
    """
    if protocol.min_reader > 3:
        raise UnsupportedFeature(table=table, kind="reader", feature=f"of reader version {protocol.min_reader}")
    _refuse(table, "reader", reader_features(protocol) - READABLE)
    _refuse(table, "reader", active(metadata) & {"columnMapping", "variantType"})


def check_writable(table: str, protocol: Protocol, metadata: Metadata, *, changes_rows: bool) -> None:
    """Refuse a table that cannot be written rightly; ``changes_rows`` is false for a command that only adds rows.

    Raises:
        UnsupportedFeature: with the feature's name.
    """
    check_readable(table, protocol, metadata)
    if protocol.min_writer > 7:
        raise UnsupportedFeature(table=table, kind="writer", feature=f"of writer version {protocol.min_writer}")
    _refuse(table, "writer", writer_features(protocol) - WRITABLE)
    spared = _HONOURED_WHEN_ACTIVE | (frozenset() if changes_rows else _ONLY_CHANGES)
    _refuse(table, "writer", active(metadata) - spared)
    _, deep, _ = _asked_by(metadata.schema_string)
    inside = frozenset(f"{feature} (inside a nested column)" for feature, key in _BY_COLUMN.items() if key in deep)
    _refuse(table, "writer", inside)


def protocol_for(metadata: Metadata, *, vectors: bool) -> Protocol:
    """The least protocol for a new table, as delta-spark 4 chooses it: an old version where that says exactly what is
    needed, else features by name.
    """
    by_name = required_by_types(metadata.schema) | (frozenset({DELETION_VECTORS}) if vectors else frozenset())
    writers = frozenset({"appendOnly", "invariants"}) | by_name | (active(metadata) & _RULES)
    if by_name:
        return Protocol(3, 7, by_name, writers)
    for version in (2, 3, 4):
        if writer_features(Protocol(1, version)) == writers:
            return Protocol(min_reader=1, min_writer=version)
    return Protocol(1, 7, None, writers)


def needed_by(metadata: Metadata) -> frozenset[str]:
    """The features that a table must list before this metadata may stand in its log, of those that we switch on."""
    flags = {DELETION_VECTORS: "delta.enableDeletionVectors", "appendOnly": "delta.appendOnly"}
    on = {name for name, key in flags.items() if metadata.configuration.get(key, "").strip().lower() == "true"}
    not_null = {"invariants"} if any(not each.nullable for each in metadata.schema) else set()
    return required_by_types(metadata.schema) | (active(metadata) & _RULES) | on | not_null


def with_features(protocol: Protocol, features: frozenset[str]) -> Protocol:
    """The protocol with these features on top, by the least that says so: a version number, else their names.

    Source: PROTOCOL.md "Table Features"; what the old versions stand for is written out when names begin.

    Example:
        >>> with_features(Protocol(1, 2), frozenset({"checkConstraints"})).min_writer
        3
    """
    new = features - writer_features(protocol)
    if not new:
        return protocol
    readers, writers = reader_features(protocol) | (new & _OF_READERS), writer_features(protocol) | new
    for version in range(protocol.min_writer, 7):
        older = Protocol(protocol.min_reader, version)
        if writer_features(older) == writers and reader_features(older) == readers:
            return older
    if new & _OF_READERS or protocol.min_reader >= 3:
        return Protocol(3, 7, readers, writers)
    return Protocol(protocol.min_reader, 7, None, writers)


def upgraded_to(protocol: Protocol, reader: int, writer: int) -> Protocol:
    """The protocol at higher versions; what the old versions stand for is written out where names begin.

    Raises:
        InvalidOption: a version is lower than the present one, or is none, or reader 3 comes without writer 7.
    """
    present = (protocol.min_reader, protocol.min_writer)
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


def upgraded(protocol: Protocol, metadata: Metadata) -> Protocol | None:
    """The protocol that a table needs under this metadata; None where the present one is enough."""
    found = with_features(protocol, needed_by(metadata))
    return None if found == protocol else found


def _refuse(table: str, kind: str, features: frozenset[str]) -> None:
    for feature in sorted(features):
        raise UnsupportedFeature(table=table, kind=kind, feature=feature)


def _fields(type_: DataType) -> Iterator[Field]:
    if isinstance(type_, Struct):
        for field in type_.fields:
            yield field
            yield from _fields(field.type)
    for part in _parts(type_):
        yield from _fields(part)


def _members(schema: Struct) -> Iterator[Field]:
    """The members of structs that stand in no array and no map."""
    for field in schema:
        if isinstance(field.type, Struct):
            yield from field.type
            yield from _members(field.type)


def _type_names(type_: DataType) -> Iterator[str]:
    if isinstance(type_, str):
        yield type_
    for part in _parts(type_):
        yield from _type_names(part)
    if isinstance(type_, Struct):
        for field in type_.fields:
            yield from _type_names(field.type)


def _parts(type_: DataType) -> tuple[Any, ...]:
    if isinstance(type_, Array):
        return (type_.element,)
    return (type_.key, type_.value) if isinstance(type_, Map) else ()


def describe(protocol: Protocol) -> Mapping[str, Any]:
    """The protocol in the words of DESCRIBE DETAIL."""
    return {
        "minReaderVersion": protocol.min_reader,
        "minWriterVersion": protocol.min_writer,
        "tableFeatures": sorted(reader_features(protocol) | writer_features(protocol)),
    }
