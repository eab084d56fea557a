"""Types nested deep: they work, or a typed error says that they are too deep; nothing ends in an error of Python's."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch._log.file_names import commit_name
from anabranch._protocol.actions import DomainMetadata
from anabranch._protocol.layout.clustering import clustering_of, same_clustering
from anabranch._protocol.schema.types import (
    DEEPEST,
    LEVELS_IN_FILES,
    Array,
    DataType,
    Field,
    Map,
    Struct,
    arrow_type,
    from_arrow,
    levels_in_files,
    parse_schema,
    schema_json,
)
from anabranch.commands.ddl.create import Create
from anabranch.commands.dml.append import Append
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.maintenance.check import check
from anabranch.errors import AnabranchError, CorruptLog, InvalidOption, InvalidSchema
from tests.support.tiers import examples
from tests.support.worlds import World, table_path

WAYS: dict[str, tuple[Callable[[DataType], DataType], Callable[[Any], Any]]] = {
    "struct": (lambda inner: Struct((Field("a", inner),)), lambda value: {"a": value}),
    "array": (Array, lambda value: [value]),
    "map": (lambda inner: Map("string", inner), lambda value: [("k", value)]),
}


def nested(way: str, times: int) -> tuple[DataType, Any]:
    """A type and a value of it."""
    wrap, put = WAYS[way]
    data_type: DataType = "long"
    value: Any = 1
    for _ in range(times):
        data_type, value = wrap(data_type), put(value)
    return data_type, value


def deepest(way: str) -> int:
    return LEVELS_IN_FILES - 1 if way == "struct" else (LEVELS_IN_FILES - 1) // 2


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_columns_nested_as_deep_as_files_may_be_go_through_every_verb(tmp_path: Path, way: str) -> None:
    type_, value = nested(way, deepest(way))
    world = World(table_path(tmp_path))
    Create(world.path, NewTable(Struct((Field("id", "long"), Field("deep", type_))))).run()
    rows = pa.table({"id": pa.array([1, 2]), "deep": pa.array([value, None], arrow_type(type_))})
    Append(world.path, rows).run()
    world.update("id = 1", id=3)
    world.optimize()
    world.restore(1)
    assert len(world.rows()) == 2
    assert check(world.log.snapshot(), deep=True).is_clean  # DuckDB takes hours for such a type


@pytest.mark.parametrize("times", [1, 2, 100, 1_000])
@pytest.mark.parametrize("way", WAYS)
def test_columns_nested_deeper_are_refused_before_anything_is_written(tmp_path: Path, way: str, times: int) -> None:
    type_, value = nested(way, min(deepest(way) + times, 1_000))
    world = World(table_path(tmp_path))
    with pytest.raises(InvalidSchema):
        Create(world.path, NewTable(Struct((Field("deep", type_),)))).run()
    with pytest.raises((InvalidSchema, InvalidOption)):  # of a list of pairs Arrow makes no map
        Append(world.path, [{"deep": value}]).run()
    assert not Path(world.path).exists()


@pytest.mark.parametrize("times", [10_000, pytest.param(examples(1_000_000, 100_000), marks=pytest.mark.slow)])
def test_rows_nested_without_end_do_not_end_the_process(tmp_path: Path, times: int) -> None:
    value: Any = 1
    for _ in range(times):
        value = [value]
    with pytest.raises(InvalidSchema):
        Append(table_path(tmp_path), [{"deep": value}]).run()
    with pytest.raises(InvalidSchema):
        Append(table_path(tmp_path), {"deep": [value]}).run()
    while isinstance(value, list):  # Python itself would free it by recursion
        value = value.pop()


@pytest.mark.parametrize("times", [DEEPEST + 1, 1_000, 100_000])
def test_a_schema_of_a_log_that_is_nested_deeper_is_refused(times: int) -> None:
    inner = '{"type":"array","containsNull":true,"elementType":' * times + '"long"' + "}" * times
    with pytest.raises(InvalidSchema):
        parse_schema('{"type":"struct","fields":[{"name":"a","type":' + inner + "}]}")


def test_the_levels_of_a_file_are_counted_as_arrow_counts_them() -> None:
    assert [levels_in_files(nested(way, 10)[0]) for way in WAYS] == [11, 21, 21]
    struct = Struct((Field("deep", nested("struct", DEEPEST - 1)[0]),))
    assert parse_schema(schema_json(struct)) == struct
    assert from_arrow(pa.schema([("deep", arrow_type(struct.fields[0].type))])) == struct


@pytest.mark.parametrize("times", [1_000, 100_000])
@pytest.mark.parametrize("way", ["[]", "{}"])
def test_json_of_a_log_that_is_nested_deep_is_read_or_refused(tmp_path: Path, way: str, times: int) -> None:
    deep = "[" * times + "]" * times if way == "[]" else '{"a":' * times + "1" + "}" * times
    lines = {
        "an unknown action": f'{{"strange":{deep}}}',
        "what a commit says of itself": f'{{"commitInfo":{{"tags":{deep}}}}}',
        "tags of a file": '{"add":{"path":"p","partitionValues":{},"size":1,"tags":' + deep + "}}",
        "statistics": json.dumps({"add": {"path": "p", "partitionValues": {}, "size": 1, "stats": deep}}),
        "metadata of a field": json.dumps({"metaData": {"id": "i", "schemaString": deep, "partitionColumns": []}}),
    }
    original = World(table_path(tmp_path)).create([{"id": 1}])
    for what, line in lines.items():
        world = original.copy(tmp_path)
        (Path(world.path) / "_delta_log" / commit_name(1).removeprefix("_delta_log/")).write_text(line + "\n")
        for verb in (world.rows, partial(world.append, {"id": 2}), partial(world.delete, "id = 1")):
            try:
                verb()
            except AnabranchError:
                continue
            except FileNotFoundError:
                assert what in ("statistics", "tags of a file")  # the file that the line names


def test_a_domain_that_is_nested_deep_is_damaged() -> None:
    damaged = DomainMetadata("delta.clustering", "[" * 100_000)
    with pytest.raises(CorruptLog, match="clustering columns"):
        clustering_of("t", {"delta.clustering": damaged}, Struct())
    assert same_clustering(damaged, damaged)
    assert not same_clustering(damaged, replace(damaged, configuration='{"clusteringColumns":[]}'))
