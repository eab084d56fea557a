"""By which columns a table is clustered: what the domain says, and what cannot be clustered by."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.actions import DomainMetadata, Metadata
from anabranch._protocol.layout.clustering import (
    DOMAIN,
    check_clustering,
    check_zorder,
    clustering_of,
    domain_of,
    paths_of,
    resolve_columns,
    same_clustering,
)
from anabranch._protocol.schema.types import PHYSICAL_NAME, Array, Field, Struct, schema_json
from anabranch.errors import CorruptLog, InvalidOption

INNER = Struct((Field("b", "string"), Field("odd.name", "date")))
SCHEMA = Struct((Field("id", "long"), Field("s", INNER), Field("flag", "boolean"), Field("list", Array("long", True))))


def metadata(partitions: tuple[str, ...] = (), **properties: str) -> Metadata:
    named = {key.replace("_", ".", 1): value for key, value in properties.items()}
    return Metadata("x", schema_json(SCHEMA), partition_columns=partitions, configuration=named)


def read(domain: DomainMetadata, schema: Struct = SCHEMA) -> tuple[tuple[str, ...], ...]:
    return clustering_of("t", {domain.domain: domain}, schema)


@given(st.lists(st.sampled_from([("id",), ("s", "b"), ("s", "odd.name"), ("flag",)]), unique=True, max_size=4))
def test_what_was_said_is_read_again(columns: list[tuple[str, ...]]) -> None:
    assert read(domain_of(columns, SCHEMA)) == tuple(columns)


def test_the_domain_holds_physical_names() -> None:
    schema = Struct((Field("id", "long", metadata={PHYSICAL_NAME: "col-1"}),))
    domain = domain_of([("id",)], schema)
    assert json.loads(domain.configuration)["clusteringColumns"] == [["col-1"]]
    assert read(domain, schema) == (("id",),)


def test_plain_names_as_in_the_protocols_example_are_columns_too() -> None:
    schema = Struct((Field("day", "date", metadata={PHYSICAL_NAME: "col-1"}), Field("id", "long")))
    assert read(DomainMetadata(DOMAIN, '{"clusteringColumns": ["col-1", "id"]}'), schema) == (("day",), ("id",))


def test_no_columns_take_the_domain_away() -> None:
    domain = domain_of([], SCHEMA)
    assert domain.removed
    assert read(domain) == ()
    assert same_clustering(domain, None)


def test_a_domain_that_names_no_column_of_the_table_is_a_damaged_log() -> None:
    for text in ('{"clusteringColumns": [["gone"]]}', "{}", "[]", "nonsense", '{"clusteringColumns": [["id", "b"]]}'):
        with pytest.raises(CorruptLog, match="clustering columns"):
            read(DomainMetadata(DOMAIN, text))


def test_a_dot_parts_a_struct_from_its_member_outside_of_backticks() -> None:
    assert paths_of(["id", "s.b", "s.`odd.name`"]) == (("id",), ("s", "b"), ("s", "odd.name"))
    for name in ("", "s.", "`id", 7):
        with pytest.raises(InvalidOption):
            paths_of([name])  # type: ignore[list-item]


def test_names_are_spelled_as_the_schema_spells_them() -> None:
    assert resolve_columns([("ID",), ("S", "B")], SCHEMA) == (("id",), ("s", "b"))
    with pytest.raises(InvalidOption, match="columns are id"):
        resolve_columns([("nope",)], SCHEMA)
    with pytest.raises(InvalidOption, match="cannot be nope: Z-Ordering column nope does not exist"):
        resolve_columns([("nope",)], SCHEMA, "ZORDER BY")


@pytest.mark.parametrize(
    ("columns", "made", "reason"),
    [
        (["id"], metadata(("flag",)), "not both"),
        (["id", "id"], metadata(), "named twice"),
        (["flag"], metadata(), "without minimum and maximum"),
        (["list"], metadata(), "without minimum and maximum"),
        (["s"], metadata(), "without minimum and maximum"),
        (["s.b"], metadata(delta_dataSkippingNumIndexedCols="1"), "no statistics"),
        (["id"], metadata(delta_dataSkippingStatsColumns="s"), "no statistics"),
        (["id", "s.b", "s.`odd.name`", "flag", "list"], metadata(), "at most 4"),
    ],
)
def test_a_table_cannot_be_clustered_by_what_gets_no_bounds(columns: list[str], made: Metadata, reason: str) -> None:
    with pytest.raises(InvalidOption, match=reason):
        check_clustering(paths_of(columns), made)


def test_members_of_structs_may_be_clustered_by() -> None:
    check_clustering(paths_of(["id", "s.b", "s.`odd.name`"]), metadata())


def test_a_member_may_have_the_name_of_a_partition_column() -> None:
    schema = Struct((Field("id", "long"), Field("b", "long"), Field("s", INNER)))
    known = Metadata("x", schema_json(schema), partition_columns=("b",))
    check_zorder([("s", "b")], known)
    with pytest.raises(InvalidOption, match="b is a partition column"):
        check_zorder([("id",), ("b",)], known)
