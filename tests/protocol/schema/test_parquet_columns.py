"""The columns of Parquet files, as Spark reads them."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._protocol.schema.parquet_columns import MergeConflict, columns_of, merge_columns, with_partitions
from anabranch._protocol.schema.types import Array, Field, Map, Struct
from anabranch.errors import UnsupportedType

_NOTES = "org.apache.spark.sql.parquet.row.metadata"


def footer_of(schema: pa.Schema, **options: Any) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink, **options)
    return pq.read_metadata(io.BytesIO(sink.getvalue()))


def type_in(arrow: pa.DataType, **options: Any) -> Any:
    return columns_of(footer_of(pa.schema([("c", arrow)]), **options)).field("c").type


@pytest.mark.parametrize(
    ("arrow", "type_"),
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "byte"),
        (pa.int16(), "short"),
        (pa.int32(), "integer"),
        (pa.int64(), "long"),
        (pa.uint8(), "short"),
        (pa.uint16(), "integer"),
        (pa.uint32(), "long"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.float32(), "float"),
        (pa.float64(), "double"),
        (pa.string(), "string"),
        (pa.large_string(), "string"),
        (pa.dictionary(pa.int32(), pa.string()), "string"),
        (pa.binary(), "binary"),
        (pa.binary(7), "binary"),
        (pa.date32(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ms", "Europe/Paris"), "timestamp"),
        (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(9, 2), "decimal(9,2)"),
        (pa.decimal128(38, 10), "decimal(38,10)"),
        (pa.duration("us"), "long"),
        (pa.list_(pa.int32()), Array("integer")),
        (pa.list_(pa.int32(), 3), Array("integer")),
        (pa.map_(pa.string(), pa.int64()), Map("string", "long")),
        (pa.struct([("a", pa.int8()), ("b", pa.list_(pa.struct([("c", pa.date32())])))]), None),
    ],
)
def test_a_column_is_what_spark_reads(arrow: pa.DataType, type_: Any) -> None:
    nested = Struct((Field("a", "byte"), Field("b", Array(Struct((Field("c", "date"),))))))
    assert type_in(arrow) == (type_ or nested)


def test_old_timestamps_are_timestamps() -> None:
    assert type_in(pa.timestamp("us"), use_deprecated_int96_timestamps=True) == "timestamp"


@pytest.mark.parametrize("arrow", [pa.time64("us"), pa.time32("ms"), pa.timestamp("ns"), pa.null(), pa.float16()])
def test_what_spark_does_not_read_is_refused_by_name(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedType) as refused:
        type_in(pa.struct([("deep", arrow)]))
    assert refused.value.column == "c.deep"


def test_columns_follow_each_other_behind_nested_ones() -> None:
    schema = pa.schema([("a", pa.map_(pa.string(), pa.list_(pa.int8()))), ("b", pa.date32()), ("c", pa.bool_())])
    assert [each.type for each in columns_of(footer_of(schema))] == [Map("string", Array("byte")), "date", "boolean"]


def noted(type_: Any, **metadata: Any) -> pa.Schema:
    fields = [{"name": "c", "type": type_, "nullable": False, "metadata": metadata}]
    return pa.schema([("c", pa.int64())], metadata={_NOTES: json.dumps({"type": "struct", "fields": fields})})


def test_a_comment_that_spark_left_is_kept_and_nothing_else_of_its_notes() -> None:
    (column,) = columns_of(footer_of(noted("long", comment="how many", other=1)))
    assert column == Field("c", "long", True, {"comment": "how many"})


@pytest.mark.parametrize("type_", ["interval", "variant", {"type": "array", "elementType": "void"}])
def test_a_type_that_spark_keeps_as_another_one_is_refused(type_: Any) -> None:
    with pytest.raises(UnsupportedType):
        columns_of(footer_of(noted(type_)))


def test_intervals_are_told_from_numbers_by_what_spark_noted() -> None:
    (column,) = columns_of(footer_of(noted("interval hour to second")))
    assert column.type == "interval day to second"
    (column,) = columns_of(footer_of(noted("interval year")))
    assert column.type == "long"  # the file holds no months
    inside = {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": "interval month"}}
    fields = [{"name": "c", "type": {"type": "struct", "fields": [{"name": "m", "type": inside}]}, "nullable": True}]
    kind = pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int32())))])
    (column,) = columns_of(footer_of(pa.schema([("c", kind)], metadata={_NOTES: json.dumps({"fields": fields})})))
    assert column.type == Struct((Field("m", Map("string", Array("interval year to month"))),))


@pytest.mark.parametrize("notes", ["no json", "[]", '{"fields": 5}', '{"fields": [{"name": "c"}]}', '{"fields": [5]}'])
def test_notes_that_are_none_are_left_aside(notes: str) -> None:
    schema = pa.schema([("c", pa.int64())], metadata={_NOTES: notes})
    assert columns_of(footer_of(schema)) == Struct((Field("c", "long"),))


TWICE = [("a", pa.int8()), ("A", pa.int8())]


@pytest.mark.parametrize("schema", [pa.schema(TWICE), pa.schema([("s", pa.struct(TWICE))])])
def test_two_columns_of_one_name_are_refused(schema: pa.Schema) -> None:
    with pytest.raises(MergeConflict, match="twice"):
        columns_of(footer_of(schema))


def test_columns_of_two_files_are_joined_in_the_order_of_their_first_appearance() -> None:
    first = Struct((Field("b", "byte"), Field("s", Struct((Field("x", "long"),))), Field("m", Map("string", "short"))))
    second = Struct((Field("z", "date"), Field("m", Map("string", "byte")), Field("s", Struct((Field("y", "long"),)))))
    assert merge_columns(first, second) == Struct(
        (
            Field("b", "byte"),
            Field("s", Struct((Field("x", "long"), Field("y", "long")))),
            Field("m", Map("string", "short")),
            Field("z", "date"),
        )
    )


APART = [("long", "integer"), ("decimal(9,2)", "decimal(10,2)"), ("timestamp", "timestamp_ntz"), ("float", "double")]


@pytest.mark.parametrize(
    ("one", "other"), [*APART, ("string", "binary"), (Array("long"), "long"), (Map("string", "long"), Struct(()))]
)
def test_types_that_files_keep_differently_do_not_go_together(one: Any, other: Any) -> None:
    with pytest.raises(MergeConflict):
        merge_columns(Struct((Field("c", one),)), Struct((Field("c", other),)))


def test_columns_of_folders_come_last_or_where_the_files_have_them() -> None:
    files, folders = (
        Struct((Field("P", "long"), Field("id", "long"))),
        Struct((Field("q", "date"), Field("p", "string"))),
    )
    assert with_partitions(files, folders) == Struct((Field("p", "string"), Field("id", "long"), Field("q", "date")))
