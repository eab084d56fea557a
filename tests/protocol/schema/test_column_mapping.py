"""The algebra of column mapping: numbers, physical names, and the way between them and logical ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import errors
from anabranch._protocol.actions import Metadata
from anabranch._protocol.schema.column_mapping import (
    FIELD_ID,
    MAX_ID,
    MODE,
    PARQUET_ID,
    apply_mapping_mode,
    assign_ids_and_names,
    check_change,
    fields_of,
    file_schema,
    has_ids,
    inherit_mapping,
    is_renamed,
    physical_schema,
    relabel,
    renaming,
    resolve_by_id,
)
from anabranch._protocol.schema.evolution import drop_column, evolve_schema, rename_column
from anabranch._protocol.schema.types import PHYSICAL_NAME, Array, DataType, Field, Map, Struct, schema_json, to_arrow

NAMES = st.sampled_from(["a", "B", "c d", "e.f", "g,;{}()", "`h`", "ü"])
PRIMITIVES: st.SearchStrategy[DataType] = st.sampled_from(["long", "string", "double", "boolean", "timestamp"])


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[Struct]:
    fields = st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3, unique_by=lambda pair: pair[0].lower())
    return fields.map(lambda pairs: Struct(tuple(Field(name, type_) for name, type_ in pairs)))


TYPES = st.recursive(
    PRIMITIVES,
    lambda inner: st.one_of(
        structs(inner), inner.map(Array), st.builds(Map, st.just("string"), inner), structs(inner).map(Array)
    ),
    max_leaves=6,
)
SCHEMAS = structs(TYPES)
MODES = st.sampled_from(["name", "id"])


def mapped_schema(schema: Struct, mode: str = "name", last: str = "0") -> tuple[Struct, dict[str, str]]:
    whole, configuration = assign_ids_and_names(schema, {MODE: mode, MAX_ID: last}, uuid4)
    return whole, dict(configuration)


def ids(schema: Struct) -> list[int]:
    return [each.metadata[FIELD_ID] for each in fields_of(schema)]


@given(SCHEMAS, MODES, st.integers(0, 100))
def test_every_field_gets_a_number_and_a_name_of_its_own(schema: Struct, mode: str, last: int) -> None:
    whole, configuration = mapped_schema(schema, mode, str(last))
    count = len(list(fields_of(schema)))
    assert sorted(ids(whole)) == list(range(last + 1, last + 1 + count))
    assert configuration[MAX_ID] == str(last + count)
    assert len({each.physical_name for each in fields_of(whole)}) == count
    assert all(each.physical_name.startswith("col-") for each in fields_of(whole))
    assert apply_mapping_mode(whole, configuration) == whole
    assert [each.name for each in fields_of(whole)] == [each.name for each in fields_of(schema)]


@given(SCHEMAS, MODES)
def test_completing_again_changes_nothing(schema: Struct, mode: str) -> None:
    whole, configuration = mapped_schema(schema, mode)
    assert assign_ids_and_names(whole, configuration, uuid4) == (whole, configuration)


@given(SCHEMAS, SCHEMAS)
def test_new_columns_get_what_none_had_and_old_ones_keep_theirs(schema: Struct, more: Struct) -> None:
    whole, configuration = mapped_schema(schema)
    try:
        wider = evolve_schema(whole, more, "t")
    except errors.SchemaMismatch:
        return
    after, changed = assign_ids_and_names(wider, configuration, uuid4)
    kept = set(ids(whole))
    assert kept <= set(ids(after))
    assert all(number > int(configuration[MAX_ID]) for number in set(ids(after)) - kept)
    assert int(changed[MAX_ID]) == max(ids(after))
    assert apply_mapping_mode(after, changed) == after


@pytest.mark.slow
@given(SCHEMAS)
def test_a_table_that_has_files_keeps_its_names_in_them(schema: Struct) -> None:
    whole, _ = assign_ids_and_names(schema, {MODE: "name"}, uuid4, named=True)
    assert not is_renamed(whole)
    assert schema_names(physical_schema(whole)) == schema_names(schema)


def schema_names(schema: Struct) -> list[str]:
    return [each.name for each in fields_of(schema)]


@pytest.mark.slow
@given(SCHEMAS)
def test_without_a_mapping_names_that_were_left_mean_nothing(schema: Struct) -> None:
    whole, configuration = mapped_schema(schema)
    assert apply_mapping_mode(whole, {**configuration, MODE: "none"}) == schema
    assert assign_ids_and_names(schema, {MODE: "NONE"}, uuid4) == (schema, {MODE: "NONE"})


@given(SCHEMAS)
def test_what_is_dropped_and_added_again_is_another_column(schema: Struct) -> None:
    if len(schema) < 2:
        return
    whole, configuration = mapped_schema(schema)
    gone = whole.fields[0]
    again = Struct((*drop_column(whole, [gone.name]), Field(gone.name, schema.fields[0].type)))
    after, _ = assign_ids_and_names(again, configuration, uuid4)
    new = after.field(gone.name)
    assert new.metadata[FIELD_ID] > int(configuration[MAX_ID])
    assert new.physical_name != gone.physical_name


@given(SCHEMAS)
def test_a_rename_changes_no_physical_name(schema: Struct) -> None:
    whole, _ = mapped_schema(schema)
    after = rename_column(whole, [whole.fields[0].name], "brand new")
    assert physical_schema(after) == physical_schema(whole)
    assert after.names[0] == "brand new"


VALUES: dict[str, Any] = {"long": 7, "string": "x", "double": 0.5, "boolean": True, "timestamp": None}


def value_of(data_type: DataType) -> Any:
    if isinstance(data_type, Struct):
        return {each.name: value_of(each.type) for each in data_type}
    if isinstance(data_type, Array):
        return [value_of(data_type.element), None]
    if isinstance(data_type, Map):
        return [(value_of(data_type.key), value_of(data_type.value))]
    return VALUES[data_type]


@given(SCHEMAS)
def test_rows_go_into_files_and_come_back(schema: Struct) -> None:
    whole, _ = mapped_schema(schema)
    rows = [value_of(whole), dict.fromkeys(whole.names), value_of(whole)]
    table = pa.Table.from_pylist(rows, schema=to_arrow(whole)).slice(1)
    stored = relabel(table, file_schema(whole))
    stored.validate(full=True)
    found = renaming(stored.schema, whole)
    assert [found.row(row) for row in stored.to_pylist()] == table.to_pylist()
    assert [int(field.metadata[PARQUET_ID]) for field in stored.schema] == [
        each.metadata[FIELD_ID] for each in whole.fields
    ]


@given(SCHEMAS)
def test_numbers_find_columns_whatever_a_file_calls_them(schema: Struct) -> None:
    whole, _ = mapped_schema(schema)
    other, _ = assign_ids_and_names(apply_mapping_mode(whole, {}), {MODE: "name"}, uuid4)
    foreign = renumbered(other, whole)
    there = file_schema(foreign)
    assert has_ids(there)
    assert physical_schema(resolve_by_id(whole, there)) == physical_schema(foreign)


def renumbered(names: Struct, numbers: Struct) -> Struct:
    """The physical names of one schema under the numbers of another of the same shape."""
    fields = zip(names, numbers, strict=True)
    return Struct(tuple(_renumbered(own, known) for own, known in fields))


def _renumbered(own: Field, known: Field) -> Field:
    metadata = {**known.metadata, PHYSICAL_NAME: own.physical_name}
    return replace(known, metadata=metadata, type=_renumbered_type(own.type, known.type))


def _renumbered_type(own: Any, known: Any) -> Any:
    if isinstance(known, Struct):
        return renumbered(own, known)
    if isinstance(known, Array):
        return replace(known, element=_renumbered_type(own.element, known.element))
    if isinstance(known, Map):
        return replace(known, value=_renumbered_type(own.value, known.value))
    return known


def test_a_number_that_a_file_lacks_finds_nothing_there() -> None:
    whole, _ = mapped_schema(Struct((Field("a", "long"), Field("b", "long"))))
    a, b = whole.fields
    there = pa.schema([pa.field(b.physical_name, pa.int64(), metadata={PARQUET_ID: b"1"})])
    found = resolve_by_id(whole, there)
    assert found.fields[0].physical_name == b.physical_name, "the number counts, not the name"
    assert found.fields[1].physical_name not in (a.physical_name, b.physical_name)
    assert not has_ids(pa.schema([("a", pa.int64())]))


def test_a_replaced_schema_inherits_what_stays() -> None:
    old, _ = mapped_schema(Struct((Field("a", "long"), Field("s", Struct((Field("m", "long"),))), Field("x", "date"))))
    new = Struct(
        (Field("A", "long"), Field("s", Struct((Field("m", "string"), Field("n", "long")))), Field("x", "long"))
    )
    found = inherit_mapping(new, old)
    assert found.field("A").metadata == old.field("a").metadata
    inner = found.field("s").type
    assert isinstance(inner, Struct)
    assert found.field("s").metadata == old.field("s").metadata
    assert [dict(each.metadata) for each in (*inner, found.field("x"))] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ({}, {MODE: "name"}, False),
        ({MODE: "none"}, {MODE: "NAME"}, False),
        ({MODE: "name"}, {MODE: "name", "team": "x"}, False),
        ({}, {MODE: "id"}, True),
        ({MODE: "name"}, {}, True),
        ({MODE: "name"}, {MODE: "id"}, True),
        ({MODE: "id"}, {MODE: "name"}, True),
        ({MODE: "name", MAX_ID: "3"}, {MODE: "name", MAX_ID: "4"}, True),
        ({MODE: "name", MAX_ID: "3"}, {MODE: "name"}, True),
    ],
)
def test_a_table_with_files_goes_from_none_to_name_only(
    before: dict[str, str], after: dict[str, str], refused: bool
) -> None:
    if not refused:
        return check_change(before, after)
    with pytest.raises(errors.InvalidProperty, match="columnMapping"):
        check_change(before, after)
    return None


@pytest.mark.parametrize(
    "field",
    [
        Field("a", "long"),
        Field("a", "long", metadata={FIELD_ID: 1}),
        Field("a", "long", metadata={PHYSICAL_NAME: "x"}),
        Field("a", "long", metadata={FIELD_ID: 2, PHYSICAL_NAME: "x"}),
        Field("a", "long", metadata={FIELD_ID: 1, PHYSICAL_NAME: "Y"}),
        Field("a", "long", metadata={FIELD_ID: "1", PHYSICAL_NAME: "x"}),
    ],
)
def test_a_column_without_its_own_number_and_name_is_refused(field: Field) -> None:
    other = Field("b", "long", metadata={FIELD_ID: 2, PHYSICAL_NAME: "y"})
    with pytest.raises(errors.InvalidSchema):
        apply_mapping_mode(Struct((field, other)), {MODE: "name"})


def test_a_mode_that_is_none_is_refused_with_its_schema() -> None:
    metadata = Metadata("x", schema_json(Struct((Field("a", "long"),))), configuration={MODE: "nome"})
    with pytest.raises(errors.InvalidSchema, match="nome"):
        _ = metadata.schema


def test_a_column_with_an_id_and_no_name_in_files_gets_both() -> None:
    """As a column does that another writer, or a user's own schema, gave an id."""
    given = Struct((Field("id", "long", metadata={FIELD_ID: 7}), Field("n", "long", metadata={PHYSICAL_NAME: "n"})))
    whole, configuration = assign_ids_and_names(given, {MODE: "name", MAX_ID: "7"}, uuid4)
    assert ids(whole) == [8, 9]
    assert all(each.metadata[PHYSICAL_NAME].startswith("col-") for each in whole)
    assert configuration[MAX_ID] == "9"
