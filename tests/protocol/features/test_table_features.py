"""A table that needs what is not understood here is refused by the feature's name, before anything is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from anabranch import errors
from anabranch._log.log import forget
from anabranch._protocol.actions import Metadata, Protocol
from anabranch._protocol.features.known import COORDINATED_COMMITS, COORDINATOR, KNOWN
from anabranch._protocol.features.refused import REFUSED
from anabranch._protocol.features.table_features import (
    SUPPORTED,
    active,
    check_readable,
    check_writable,
    describe,
    features_of_types,
    protocol_for,
    reader_features,
    required_features,
    upgrade_for_metadata,
    writer_features,
)
from anabranch._protocol.schema.column_mapping import MODE, assign_ids_and_names
from anabranch._protocol.schema.types import Array, Field, Map, Struct, schema_json
from tests.support.raw_logs import PROTOCOL, add, listing, metadata, put_commit
from tests.support.worlds import World

PLAIN = Struct((Field("id", "long"),))
BASE = frozenset({"appendOnly", "invariants"})


def metadata_of(schema: Struct = PLAIN, **configuration: str) -> Metadata:
    named = {key.replace("_", ".", 1): value for key, value in configuration.items()}
    return Metadata("x", schema_json(schema), configuration=named)


VARIANTS = metadata_of(Struct((Field("v", "variant"),)))


def with_features(readers: set[str], writers: set[str]) -> Protocol:
    return Protocol(3, 7, frozenset(readers), frozenset(writers))


def refused(protocol: Protocol, metadata: Metadata) -> str:
    with pytest.raises(errors.UnsupportedFeature) as refusal:
        check_writable("t", protocol, metadata)
    return f"{refusal.value.kind} {refusal.value.feature}"


# -- what a protocol asks for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (1, 1, set()),
        (1, 2, {"appendOnly", "invariants"}),
        (1, 3, {"appendOnly", "invariants", "checkConstraints"}),
        (1, 4, {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}),
        (
            2,
            5,
            {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping"},
        ),
        (
            2,
            6,
            {
                "appendOnly",
                "invariants",
                "checkConstraints",
                "changeDataFeed",
                "generatedColumns",
                "columnMapping",
                "identityColumns",
            },
        ),
    ],
)
def test_old_versions_imply_the_features_of_the_protocols_table(reader: int, writer: int, expected: set[str]) -> None:
    """PROTOCOL.md, "Valid Feature Names in Table Features": each old version stands for all up to it."""
    protocol = Protocol(reader, writer)
    assert writer_features(protocol) == expected
    assert reader_features(protocol) == ({"columnMapping"} if reader == 2 else set())


def test_named_features_count_and_nothing_else_is_implied() -> None:
    protocol = with_features({"deletionVectors"}, {"deletionVectors", "domainMetadata"})
    assert reader_features(protocol) == {"deletionVectors"}
    assert writer_features(protocol) == {"deletionVectors", "domainMetadata"}


def test_an_old_reader_version_beside_named_writer_features_still_implies_its_own() -> None:
    protocol = Protocol(2, 7, None, frozenset({"columnMapping", "domainMetadata"}))
    assert reader_features(protocol) == {"columnMapping"}


def test_detail_names_all_features_in_order() -> None:
    assert describe(Protocol(1, 3)) == {
        "minReaderVersion": 1,
        "minWriterVersion": 3,
        "tableFeatures": ["appendOnly", "checkConstraints", "invariants"],
    }


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_a_plain_table_is_read_and_written() -> None:
    for protocol in (Protocol(1, 1), Protocol(1, 2), Protocol(2, 6), Protocol(3, 7, frozenset(), frozenset())):
        check_writable("t", protocol, metadata_of())


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview", "adaptiveMetadata", "ünknown"])
def test_an_unknown_reader_feature_is_refused_by_name(feature: str) -> None:
    protocol = with_features({feature, "deletionVectors"}, {feature, "deletionVectors"})
    with pytest.raises(errors.UnsupportedFeature) as refusal:
        check_readable("t", protocol, metadata_of())
    assert (refusal.value.kind, refusal.value.feature, refusal.value.table) == ("reader", feature, "t")
    assert feature in str(refusal.value)
    assert not refusal.value.retryable


@pytest.mark.parametrize("feature", ["icebergWriterCompatV3", "newFangled"])
def test_an_unknown_writer_feature_is_refused_by_name_and_may_be_read(feature: str) -> None:
    protocol = with_features(set(), {feature})
    check_readable("t", protocol, metadata_of())
    assert refused(protocol, metadata_of()) == f"writer {feature}"


@pytest.mark.parametrize("feature", ["collations", "collations-preview"])
def test_a_table_that_lists_collations_is_written_while_no_column_has_one(feature: str) -> None:
    protocol = with_features(set(), {feature, "domainMetadata"})
    check_writable("t", protocol, metadata_of(Struct((Field("s", "string"),))))
    collated = Field("s", "string", metadata={"__COLLATIONS": {"s": "spark.UTF8_LCASE"}})
    for field in (collated, Field("outer", Struct((collated,)))):
        with pytest.raises(errors.UnsupportedFeature, match="compare collated strings by their collations"):
            check_writable("t", protocol, metadata_of(Struct((field,))))


def test_a_table_that_lists_coordinated_commits_is_written_while_it_names_no_coordinator() -> None:
    protocol = with_features({"vacuumProtocolCheck"}, {COORDINATED_COMMITS, "inCommitTimestamp", "vacuumProtocolCheck"})
    check_writable("t", protocol, metadata_of())
    coordinated = replace(metadata_of(), configuration={COORDINATOR: "dynamodb"})
    check_readable("t", protocol, coordinated)
    with pytest.raises(errors.UnsupportedFeature, match="a coordinator outside the log"):
        check_writable("t", protocol, coordinated)
    check_writable("t", Protocol(1, 2), coordinated)


@pytest.mark.parametrize("feature", sorted(REFUSED))
def test_a_feature_that_is_refused_by_name_says_why_and_may_be_read_where_it_binds_writers_only(feature: str) -> None:
    binds_readers = REFUSED[feature].binds_readers
    protocol = with_features({feature} if binds_readers else set(), {feature})
    with pytest.raises(errors.UnsupportedFeature) as refusal:
        check_writable("t", protocol, metadata_of())
    assert (refusal.value.feature, refusal.value.reason) == (feature, REFUSED[feature].reason)
    assert REFUSED[feature].reason in str(refusal.value)
    assert refusal.value.kind == ("reader" if binds_readers else "writer")
    if not binds_readers:
        check_readable("t", protocol, metadata_of())
    assert feature not in {each.name for each in KNOWN}


@pytest.mark.parametrize(
    ("feature", "reads"),
    [
        ("adaptiveMetadata", False),
        ("adaptiveMetadata-preview", False),
        ("timestampNanos", False),
        ("redirectReaderWriter-preview", False),
        ("redirectWriterOnly-preview", True),
        ("multiTableTransaction", True),
        ("columnMappingUsageTracking", True),
        ("icebergWriterCompatV1", True),
    ],
)
def test_features_of_proposals_and_previews_bind_whom_their_authors_say(feature: str, reads: bool) -> None:
    """Source: protocol_rfcs, and the lists of features of delta-spark and Delta Kernel."""
    assert REFUSED[feature].binds_readers != reads


@pytest.mark.parametrize("name", ["typeWidening", "variantType", "variantShredding"])
@pytest.mark.parametrize("preview", ["", "-preview"])
def test_widening_and_variants_are_read_and_written_under_both_names(name: str, preview: str) -> None:
    listed = {name + preview} | ({"variantType" + preview} if name == "variantShredding" else set())
    check_writable("t", with_features(listed, listed), VARIANTS)
    assert (name in SUPPORTED, f"{name}-preview" in SUPPORTED) == (True, False)


def test_a_table_that_lists_a_preview_needs_no_other_name() -> None:
    preview = with_features({"variantType-preview"}, {"variantType-preview"} | BASE)
    assert upgrade_for_metadata(preview, VARIANTS) is None
    added = upgrade_for_metadata(with_features(set(), set(BASE)), VARIANTS)
    assert added is not None
    assert added.reader_features == {"variantType"}


def test_a_change_of_a_type_that_is_no_widening_is_refused_to_readers() -> None:
    """PROTOCOL.md, "Reader Requirements for Type Widening": fail when finding any unsupported type change."""
    both = {"typeWidening"}

    def changed(before: str, after: str) -> Metadata:
        facts = {"delta.typeChanges": [{"fromType": before, "toType": after}]}
        return metadata_of(Struct((Field("c", after, metadata=facts),)))

    check_readable("t", with_features(both, both), changed("integer", "long"))
    with pytest.raises(errors.UnsupportedFeature, match="column c was changed from string to long"):
        check_readable("t", with_features(both, both), changed("string", "long"))


def test_versions_to_come_are_refused() -> None:
    with pytest.raises(errors.UnsupportedFeature, match="reader version 4"):
        check_readable("t", Protocol(4, 7, frozenset(), frozenset()), metadata_of())
    assert refused(Protocol(3, 8, frozenset(), frozenset()), metadata_of()) == "writer of writer version 8"


@pytest.mark.parametrize(
    ("configuration", "feature"),
    [
        ({"delta_enableRowTracking": "TRUE"}, "rowTracking"),
    ],
)
def test_a_feature_that_is_used_binds_every_writer(configuration: dict[str, str], feature: str) -> None:
    assert refused(Protocol(1, 6), metadata_of(**configuration)).endswith(feature)


@pytest.mark.parametrize(
    ("rule", "feature"),
    [
        ({"delta.generationExpression": "id + 1"}, "generatedColumns"),
        ({"delta.invariants": '{"expression":{"expression":"id > 0"}}'}, "invariants"),
        ({"CURRENT_DEFAULT": "5"}, "allowColumnDefaults"),
        ({"delta.identity.start": 1, "delta.identity.step": 1}, "identityColumns"),
        ({"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}, "char / varchar length"),
    ],
)
def test_a_rule_is_held_on_the_top_level_and_refused_where_it_stands_too_deep(
    rule: dict[str, Any], feature: str
) -> None:
    column = Field("c", "string", metadata=rule)
    check_writable("t", Protocol(1, 6), metadata_of(Struct((column,))))
    assert refused(Protocol(1, 6), metadata_of(nested_in_lists(column))) == f"writer {feature} (inside a nested column)"
    member = metadata_of(Struct((Field("s", Struct((column,))),)))
    if feature == "invariants":
        check_writable("t", Protocol(1, 6), member)
    else:
        assert refused(Protocol(1, 6), member) == f"writer {feature} (inside a nested column)"


def nested_in_lists(column: Field) -> Struct:
    inner = Struct((column,))
    return Struct((Field("deep", Array(Map("string", inner, True), True)),))


def test_a_table_that_records_its_changes_names_the_feature() -> None:
    fed = metadata_of(delta_enableChangeDataFeed="true")
    check_writable("t", Protocol(1, 4), fed)
    assert upgrade_for_metadata(Protocol(1, 2), fed) == Protocol(
        1, 7, None, frozenset({"appendOnly", "invariants", "changeDataFeed"})
    )


@pytest.mark.parametrize("mode", ["none", "NONE"])
def test_column_mapping_that_is_off_asks_nothing(mode: str) -> None:
    check_writable("t", Protocol(2, 5), metadata_of(**{"delta_columnMapping.mode": mode}))


def test_column_mapping_is_asked_for_by_its_use_and_told_by_the_least_protocol() -> None:
    mapped, _ = assign_ids_and_names(Struct((Field("id", "long"),)), {MODE: "name"}, uuid4)
    metadata = Metadata("x", schema_json(mapped), configuration={MODE: "name"})
    names = frozenset({"appendOnly", "invariants", "columnMapping"})
    assert protocol_for(metadata, vectors=False) == Protocol(2, 7, None, names)
    assert upgrade_for_metadata(Protocol(1, 2), metadata) == Protocol(2, 7, None, names)
    assert upgrade_for_metadata(Protocol(2, 5), metadata) is None
    both = frozenset({"columnMapping", "deletionVectors"})
    assert protocol_for(metadata, vectors=True) == Protocol(3, 7, both, names | both)
    check_writable("t", Protocol(2, 5), metadata)


def test_a_type_that_needs_a_feature_is_found_wherever_it_stands() -> None:
    deep = Struct((Field("s", Struct((Field("m", Map("string", Array("timestamp_ntz", True), True)),))),))
    assert features_of_types(deep) == {"timestampNtz"}
    assert active(metadata_of(Struct((Field("v", "variant"),)))) == {"variantType"}


# -- nothing is written ------------------------------------------------------------------------------------------------

UNKNOWN_READER = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["a"], "writerFeatures": ["a"]}
UNKNOWN_WRITER = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking"]}


@pytest.mark.parametrize("protocol", [UNKNOWN_READER, UNKNOWN_WRITER])
@pytest.mark.parametrize("command", ["append", "delete", "update", "overwrite"])
def test_no_command_leaves_a_trace_on_a_table_that_it_does_not_understand(
    tmp_path: Path, protocol: dict[str, Any], command: str
) -> None:
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, {"protocol": protocol}, metadata(), add("a.parquet"))
    before = listing(world.path)
    run = {
        "append": lambda: world.append({"id": 1, "x": 1}),
        "delete": lambda: world.delete(),
        "update": lambda: world.update(None, x=1),
        "overwrite": lambda: world.overwrite({"id": 1, "x": 1}),
    }[command]
    with pytest.raises(errors.UnsupportedFeature):
        run()
    assert listing(world.path) == before


def test_a_feature_that_a_later_commit_brings_is_noticed_by_a_handle_that_knew_the_table(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 1, "x": 1}])
    put_commit(world.path, 1, {"protocol": UNKNOWN_READER})
    before = listing(world.path)
    with pytest.raises(errors.UnsupportedFeature, match="reader feature a"):
        world.append({"id": 2, "x": 2})
    assert listing(world.path) == before


def test_vectors_are_not_written_where_the_protocol_does_not_allow_them(tmp_path: Path) -> None:
    """A property alone, set by a careless hand, does not make other readers understand vectors."""
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, PROTOCOL, metadata(delta_enableDeletionVectors="true"))
    world.append({"id": 1, "x": 1}, {"id": 2, "x": 2})
    world.delete("id = 1")
    world.update("id = 2", x=3)
    assert world.rows() == [{"id": 2, "x": 3}]
    assert world.log.snapshot().files["deletionVector"].null_count == 1
    world.assert_clean()
    forget()


# -- new tables --------------------------------------------------------------------------------------------------------


def test_a_new_table_asks_for_no_more_than_it_needs() -> None:
    assert protocol_for(metadata_of(), vectors=False) == Protocol(1, 2)
    with_vectors = protocol_for(metadata_of(), vectors=True)
    assert with_vectors.reader_features == {"deletionVectors"}
    assert with_vectors.writer_features == {"deletionVectors", "appendOnly", "invariants"}
    ntz = Struct((Field("t", "timestamp_ntz"),))
    assert protocol_for(metadata_of(ntz), vectors=False).reader_features == {"timestampNtz"}


def test_a_column_that_is_not_null_needs_the_feature_of_invariants_and_no_other_does() -> None:
    assert required_features(metadata_of(Struct((Field("id", "long"), Field("x", "long", False))))) == {"invariants"}
    assert required_features(metadata_of()) == frozenset()


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("kind", ["long", "timestamp_ntz"])
def test_what_is_created_here_can_be_written_here(vectors: bool, kind: str) -> None:
    metadata = metadata_of(Struct((Field("c", kind),)))
    check_writable("t", protocol_for(metadata, vectors=vectors), metadata)


GENERATED = Struct((Field("id", "long"), Field("g", "long", metadata={"delta.generationExpression": "id"})))
DEFAULTED = Struct((Field("id", "long", metadata={"CURRENT_DEFAULT": "5"}),))
CHECKED = {"delta_constraints.positive": "id > 0"}


@pytest.mark.parametrize(
    ("schema", "configuration", "plain", "feature"),
    [
        (PLAIN, CHECKED, Protocol(1, 3), "checkConstraints"),
        (GENERATED, {}, Protocol(1, 7, None, BASE | {"generatedColumns"}), "generatedColumns"),
        (DEFAULTED, {}, Protocol(1, 7, None, BASE | {"allowColumnDefaults"}), "allowColumnDefaults"),
        (Struct((Field("c", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}),)), {}, Protocol(1, 2), None),
    ],
)
def test_a_new_table_with_rules_lists_what_they_need(
    schema: Struct, configuration: dict[str, str], plain: Protocol, feature: str | None
) -> None:
    """An old version only where it says exactly that: writer version 4 would promise a change feed too."""
    metadata = metadata_of(schema, **configuration)
    assert protocol_for(metadata, vectors=False) == plain
    with_vectors = protocol_for(metadata, vectors=True)
    assert with_vectors.writer_features == BASE | {"deletionVectors"} | ({feature} if feature else set())
    check_writable("t", with_vectors, metadata)


@pytest.mark.parametrize(
    "body",
    [
        {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": []},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []},
        {"minReaderVersion": 1, "minWriterVersion": 7},
        {"minReaderVersion": 3, "minWriterVersion": 6, "readerFeatures": []},
        {"minReaderVersion": 1, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": []},
        {"minReaderVersion": 1, "minWriterVersion": 2, "writerFeatures": ["appendOnly"]},
    ],
)
def test_a_list_of_features_stands_with_the_versions_that_know_features_and_no_others(body: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="version"):
        Protocol.from_json(body)


NO_VERSIONS = [0, -1, -(2**63), 2**31, 10**400, 1.0, 2.5, True, "0", "-1", "2.0", "9" * 5000, "٣", "x", None, [1], {}]


@pytest.mark.parametrize("which", ["minReaderVersion", "minWriterVersion"])
@pytest.mark.parametrize("version", NO_VERSIONS, ids=lambda each: repr(each)[:12])
def test_a_version_that_is_no_positive_integer_is_malformed(which: str, version: object) -> None:
    with pytest.raises(ValueError, match=f"^{which} is no version of the protocol$"):
        Protocol.from_json({"minReaderVersion": 1, "minWriterVersion": 2, which: version})


@pytest.mark.parametrize("version", [4, 8, 2**31 - 1])
def test_a_version_beyond_the_known_ones_is_refused_as_one_that_may_exist(version: int) -> None:
    metadata = metadata_of()
    with pytest.raises(errors.UnsupportedFeature, match=f"reader version {version}"):
        check_readable("t", Protocol.from_json({"minReaderVersion": version, "minWriterVersion": version}), metadata)


def test_an_empty_list_where_none_may_be_is_none() -> None:
    body = {"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": [], "writerFeatures": []}
    assert Protocol.from_json(body) == Protocol(1, 2)
