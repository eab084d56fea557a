"""Actions come back from their JSON, and their lines hold what the protocol asks for and nothing without a value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.actions import (
    FILES,
    AppTransaction,
    DomainMetadata,
    Metadata,
    Protocol,
    add_body,
    add_lines,
    empty_files,
    files_table,
    line,
    remove_body,
)
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch._protocol.schema.column_mapping import FIELD_ID, MODE
from anabranch._protocol.schema.types import PHYSICAL_NAME, Field, Struct, schema_json

SCHEMA = schema_json(Struct((Field("id", "long"), Field("day", "string"))))

texts = st.text(st.characters(codec="utf-8"), max_size=8)
longs = st.integers(-(2**63), 2**63 - 1)
text_maps = st.dictionaries(texts, texts, max_size=3)
features = st.frozensets(texts, max_size=3)
protocols = st.one_of(
    st.builds(Protocol, st.integers(1, 2), st.integers(1, 6)),
    st.builds(Protocol, st.integers(1, 2), st.just(7), st.none(), features),
    st.builds(Protocol, st.just(3), st.just(7), features, features),
)
metadatas = st.builds(
    Metadata,
    id=texts,
    schema_string=st.just(SCHEMA),
    partition_columns=st.lists(texts, max_size=2, unique=True).map(tuple),
    configuration=text_maps,
    name=st.none() | texts,
    description=st.none() | texts,
    created_time=st.none() | longs,
)
vectors = st.builds(Descriptor, st.sampled_from("up"), texts, st.integers(0, 99), longs, st.none() | st.integers(0, 99))
files = st.fixed_dictionaries(
    {"path": texts, "size": longs, "modificationTime": longs},
    optional={
        "partitionValues": st.dictionaries(texts, st.none() | texts, max_size=3),
        "stats": texts,
        "tags": st.dictionaries(texts, st.none() | texts, max_size=3),
        "deletionVector": vectors.map(Descriptor.to_row),
        "baseRowId": longs,
        "defaultRowCommitVersion": longs,
        "clusteringProvider": texts,
    },
)


def parsed(text: str) -> dict[str, Any]:
    assert "\n" not in text
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


# -- there and back ----------------------------------------------------------------------------------------------------


@given(protocols)
def test_a_protocol_comes_back(protocol: Protocol) -> None:
    assert Protocol.from_json(parsed(line("protocol", protocol.to_json()))["protocol"]) == protocol


@given(metadatas)
def test_metadata_come_back(metadata: Metadata) -> None:
    assert Metadata.from_json(parsed(line("metaData", metadata.to_json()))["metaData"]) == metadata


@given(st.builds(AppTransaction, texts, longs, st.none() | longs))
def test_an_application_transaction_comes_back(transaction: AppTransaction) -> None:
    assert AppTransaction.from_json(parsed(line("txn", transaction.to_json()))["txn"]) == transaction


@given(st.builds(DomainMetadata, texts, texts, st.booleans()))
def test_a_domain_comes_back(domain: DomainMetadata) -> None:
    assert DomainMetadata.from_json(parsed(line("domainMetadata", domain.to_json()))["domainMetadata"]) == domain


@pytest.mark.slow
@given(st.lists(files, max_size=3))
def test_an_add_line_holds_each_field_that_has_a_value(rows: list[dict[str, Any]]) -> None:
    table = files_table(rows)
    assert table.schema == FILES
    bodies = [parsed(text)["add"] for text in add_lines(table, data_change=True)]
    for row, body in zip(rows, bodies, strict=True):
        vector = {k: v for k, v in row.get("deletionVector", {}).items() if v is not None}
        given = {name: value for name, value in row.items() if name != "deletionVector"}
        assert body == {"partitionValues": {}, **given, "dataChange": True} | (
            {"deletionVector": vector} if vector else {}
        )


@given(files)
def test_a_remove_names_the_vector_that_it_ends(row: dict[str, Any]) -> None:
    """PROTOCOL.md, "Add File and Remove File": a logical file is a path together with its vector."""
    (file,) = files_table([row]).to_pylist()
    body = parsed(line("remove", remove_body(file, deletion_timestamp=7, data_change=False)))["remove"]
    added = add_body(file, data_change=False)
    assert body.pop("deletionTimestamp") == 7
    assert body.pop("extendedFileMetadata") is True
    assert body == {k: v for k, v in added.items() if k not in ("modificationTime", "clusteringProvider")}


# -- what the protocol asks for ----------------------------------------------------------------------------------------


def test_feature_lists_stand_only_where_the_versions_ask_for_them() -> None:
    assert Protocol(1, 2).to_json() == {"minReaderVersion": 1, "minWriterVersion": 2}
    with_features = Protocol(3, 7, frozenset({"b", "a"}), frozenset())
    assert with_features.to_json() == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["a", "b"],
        "writerFeatures": [],
    }


def test_an_add_has_the_required_fields_even_without_partitions() -> None:
    (file,) = files_table([{"path": "a", "size": 1, "modificationTime": 2}]).to_pylist()
    assert add_body(file, data_change=True) == {
        "path": "a",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 2,
        "dataChange": True,
    }


def test_a_null_partition_value_stays_in_the_line() -> None:
    (file,) = files_table([{"path": "a", "partitionValues": {"p": None, "q": ""}}]).to_pylist()
    assert add_body(file, data_change=True)["partitionValues"] == {"p": None, "q": ""}


def test_a_line_is_one_line_whatever_stands_in_it() -> None:
    assert (
        parsed(line("txn", AppTransaction("a\nb\r\u2028\x00é😀", 1).to_json()))["txn"]["appId"] == "a\nb\r\u2028\x00é😀"
    )


def test_no_files_have_the_columns_of_files() -> None:
    assert empty_files().schema == FILES
    assert files_table([]).equals(empty_files())


# -- what other engines write ------------------------------------------------------------------------------------------


def test_metadata_of_the_least_kind_are_read() -> None:
    metadata = Metadata.from_json({"id": "x", "schemaString": SCHEMA})
    assert (metadata.partition_columns, metadata.configuration, metadata.name) == ((), {}, None)
    assert metadata.format == {"provider": "parquet", "options": {}}
    assert metadata.schema.names == ("id", "day")


def test_partition_values_stand_under_the_names_that_files_have_for_columns() -> None:
    day = Field("day", "string", metadata={FIELD_ID: 1, PHYSICAL_NAME: "col-1"})
    metadata = Metadata("x", schema_json(Struct((day,))), ("day", "gone"), configuration={MODE: "name"})
    assert metadata.partition_keys == ("col-1", "gone")


def test_a_property_without_a_value_counts_as_not_set() -> None:
    """delta-rs once wrote such."""
    metadata = Metadata.from_json({"id": "x", "schemaString": SCHEMA, "configuration": {"a": None, "b": "1"}})
    assert metadata.configuration == {"b": "1"}


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (5, "5")])
def test_a_property_written_without_quotes_is_read_as_its_text(value: Any, text: str) -> None:
    metadata = Metadata.from_json({"id": "x", "schemaString": SCHEMA, "configuration": {"a": value}})
    assert metadata.configuration == {"a": text}


@pytest.mark.parametrize("value", [["x"], {}])
def test_a_property_that_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"delta\.appendOnly"):
        Metadata.from_json({"id": "x", "schemaString": SCHEMA, "configuration": {"delta.appendOnly": value}})


@pytest.mark.parametrize("columns", ["day", {"day": 1}, 5])
def test_partition_columns_that_are_no_list_are_refused(columns: Any) -> None:
    with pytest.raises(TypeError, match="partitionColumns"):
        Metadata.from_json({"id": "x", "schemaString": SCHEMA, "partitionColumns": columns})


def test_a_partition_column_that_is_named_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="partitionColumns name a column twice"):
        Metadata.from_json({"id": "x", "schemaString": SCHEMA, "partitionColumns": ["day", "x", "day"]})


@pytest.mark.parametrize("field", ["readerFeatures", "writerFeatures"])
def test_features_that_are_no_list_are_refused(field: str) -> None:
    with pytest.raises(TypeError, match=field):
        Protocol.from_json(
            {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], field: "deletionVectors"}
        )


def test_a_wrong_name_of_a_feature_is_read_and_its_own_written() -> None:
    """delta-kernel-rs #2557: some tables list ``timestampWithoutTimezone`` for ``timestampNtz``."""
    wrong = ["timestampWithoutTimezone", "appendOnly"]
    action = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": wrong[:1], "writerFeatures": wrong}
    protocol = Protocol.from_json(action)
    assert protocol == Protocol(3, 7, frozenset({"timestampNtz"}), frozenset({"timestampNtz", "appendOnly"}))
    assert protocol.to_json()["writerFeatures"] == ["appendOnly", "timestampNtz"]


def test_versions_written_as_text_are_read() -> None:
    assert Protocol.from_json({"minReaderVersion": "1", "minWriterVersion": "2"}) == Protocol(1, 2)
