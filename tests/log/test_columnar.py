"""File actions as columns: what stands in a line comes out, whatever stands beside it."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch._log import columnar
from anabranch._log.columnar import file_actions
from anabranch._protocol.actions import ADDS, DROPS, FILES, add_lines, files_table
from tests.log.histories import COLUMNS, texts
from tests.support.raw_logs import add, remove, text_of
from tests.support.tiers import examples

cells = st.none() | texts
maps = st.dictionaries(texts, cells, max_size=3)


def read(*lines: str, columns: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    adds, removes = file_actions("\n".join(lines).encode(), columns)
    return sorted([*adds.to_pylist(), *removes.to_pylist()], key=lambda row: row["line"])


def add_with(text: str) -> str:
    """An add line with a piece of raw JSON in it."""
    return '{"add":{"path":"a","size":1,' + text + "}}"


def test_no_lines_give_empty_tables() -> None:
    for lines in (b"", b"\n", b" \r\n\t\n"):
        adds, removes = file_actions(lines, ())
        assert (adds.drop_columns(["line"]).schema, removes.drop_columns(["line"]).schema) == (ADDS, DROPS)
        assert len(adds) == len(removes) == 0


def test_lines_are_numbered_across_both_kinds() -> None:
    text = text_of(add("a"), remove("b"), add("c"), remove("d")).encode()
    adds, removes = file_actions(text, ())
    assert dict(zip(adds["path"].to_pylist(), adds["line"].to_pylist(), strict=True)) == {"a": 0, "c": 2}
    assert dict(zip(removes["path"].to_pylist(), removes["line"].to_pylist(), strict=True)) == {"b": 1, "d": 3}


@settings(max_examples=examples(60, 12))
@given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, cells)), min_size=1, max_size=4))
def test_partition_values_keep_nulls_and_empty_texts_apart(rows: list[dict[str, str | None]]) -> None:
    lines = text_of(*(add(str(i), partitionValues=row) for i, row in enumerate(rows))).encode()
    adds, _ = file_actions(lines, COLUMNS)
    assert [dict(each) for each in adds["partitionValues"].to_pylist()] == rows


def test_a_partition_column_that_a_line_does_not_name_is_null_there() -> None:
    (row,) = read(add_with('"partitionValues":{"q":"1"}'), columns=COLUMNS)
    assert dict(row["partitionValues"]) == {"p": None, "q": "1"}


@pytest.mark.parametrize("column", ["", "a.b", "a b", 'quo"te', "é😀", "line", "path", "a\\b"])
def test_a_partition_column_may_have_any_name(column: str) -> None:
    (row,) = read(json.dumps(add("a", partitionValues={column: "v"})), columns=(column,))
    assert dict(row["partitionValues"]) == {column: "v"}


@settings(max_examples=examples(60, 12))
@given(st.lists(st.none() | st.dictionaries(texts, texts, max_size=3), min_size=1, max_size=4))
def test_tags_come_out_as_they_stand(rows: list[dict[str, str] | None]) -> None:
    lines = text_of(*(add(str(i), **({} if row is None else {"tags": row})) for i, row in enumerate(rows))).encode()
    adds, _ = file_actions(lines, ())
    assert [None if each is None else dict(each) for each in adds["tags"].to_pylist()] == rows


@pytest.mark.parametrize("spelling", ['"tags":{"k":"v"}', '"tags" : {"k" : "v"}', '"tags":\t{ "k":"v" }'])
def test_tags_come_out_whatever_the_white_space(spelling: str) -> None:
    (row,) = read(add_with(spelling))
    assert row["tags"] == [("k", "v")]


def test_what_looks_like_tags_inside_statistics_is_left_alone() -> None:
    stats = json.dumps({"tags": {"k": "v"}, "numRecords": 1})
    (row,) = read(json.dumps(add("a", stats=stats)))
    assert (row["stats"], row["tags"]) == (stats, None)


@settings(max_examples=examples(60, 12))
@given(
    st.lists(
        st.fixed_dictionaries(
            {"path": texts, "size": st.integers(-(2**63), 2**63 - 1), "modificationTime": st.integers(0, 2**62)},
            optional={"stats": texts, "baseRowId": st.integers(0, 9), "clusteringProvider": texts},
        ),
        max_size=4,
    )
)
def test_what_is_written_as_lines_is_read_back(rows: list[dict[str, Any]]) -> None:
    files = files_table(rows)
    lines = "\n".join(add_lines(files, data_change=True)).encode()
    adds, _ = file_actions(lines, ())
    assert adds.select(FILES.names).equals(files)
    assert adds["dataChange"].to_pylist() == [True] * len(rows)


def test_unknown_fields_are_ignored_on_every_level() -> None:
    text = '"new":{"a":[1,{"b":null}]},"deletionVector":{"storageType":"i","pathOrInlineDv":"x","maxRowIndex":7,'
    (row,) = read(add_with(text + '"sizeInBytes":1,"cardinality":1}'), columns=())
    vector = row["deletionVector"]
    assert vector == {"storageType": "i", "pathOrInlineDv": "x", "offset": None, "sizeInBytes": 1, "cardinality": 1}


def test_what_stands_beside_an_action_is_ignored() -> None:
    (row,) = read('{"add":{"path":"a","size":1,"tags":{"k":"v"}},"note":5,"list":[{"tags":{"x":1}}]}')
    assert row["tags"] == [("k", "v")]


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_lines_longer_than_any_block_are_read(megabytes: int) -> None:
    stats = "x" * (megabytes << 20)
    rows = read(*(json.dumps(add(str(i), stats=stats)) for i in range(4)))
    assert [(row["path"], len(row["stats"])) for row in rows] == [(str(i), len(stats)) for i in range(4)]


@pytest.mark.slow
def test_many_blocks_keep_the_order_of_their_lines() -> None:
    stats = "x" * 1000
    lines = (text_of(add("{}", stats=stats)) * 18_000).encode()
    assert len(lines) > 1 << 24
    adds, removes = file_actions(lines + text_of(remove("r")).encode(), ())
    assert adds["line"].to_pylist() == list(range(18_000))
    assert removes["line"].to_pylist() == [18_000]


@pytest.mark.parametrize("separator", ["\r\n", "\n\n", "\n \t\n", "\r\n\r\n"])
def test_carriage_returns_and_blank_lines_say_nothing(separator: str) -> None:
    lines = separator.join(json.dumps(add(path)) for path in "abc") + separator
    adds, _ = file_actions(lines.encode(), ())
    assert adds["path"].to_pylist() == ["a", "b", "c"]


def test_escapes_are_resolved() -> None:
    (row,) = read('{"add":{"path":"a\\/b\\u00e9\\ud83d\\ude00\\n","size":1}}')
    assert row["path"] == "a/bé😀\n"


@pytest.mark.parametrize(
    "text",
    [
        '{"add":{"path":"a","size":"1"}}',
        '{"add":{"path":"a","size":1.5}}',
        '{"add":{"path":"a","size":99999999999999999999}}',
        '{"add":{"path":5,"size":1}}',
        '{"add":{"path":"a","size":1,"stats":{"numRecords":1}}}',
        '{"add":{"path":"a","size":1,"dataChange":"true"}}',
        '{"add":{"path":"a","size":1,"partitionValues":{"p":1}}}',
        '{"add":{"path":"a","size":1,"partitionValues":["p"]}}',
        '{"add":{"path":"a","size":1,"tags":{"k":1}}}',
        '{"add":{"path":"a","size":1,"deletionVector":{"offset":99999999999}}}',
        '{"add":["path"]}',
        '{"add":{}}',
        '{"add":{"path":null,"size":1}}',
        '{"remove":{}}',
        '{"add":{"path":"a"}}',
        '{"add":{"path":"a","size":1}',
        '{"add":{"path":"a","size":1}} x',
        '{"add":{"path":"lone \\ud83d","size":1}}',
    ],
)
def test_a_line_that_is_not_as_the_protocol_says_is_refused(text: str) -> None:
    good = json.dumps(add("good"))
    for lines in ((text,), (good, text), (text, good)):
        with pytest.raises((ValueError, pa.ArrowException)):
            read(*lines, columns=("p",))


def test_bytes_that_are_not_utf_8_are_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        file_actions(b'{"add":{"path":"\xff","size":1}}', ())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["add", "remove"])
def test_tags_of_very_many_names_are_read_and_others_stay_what_they_are(kind: str) -> None:
    many = {f"k{i}": f"v{i}" for i in range(20_000)}
    bodies = [{"path": "a", "size": 1, "tags": many}, {"path": "b", "size": 1}, {"path": "c", "size": 1, "tags": {}}]
    lines = "\n\n".join(json.dumps({kind: body}) for body in bodies).encode()
    adds, removes = file_actions(lines, ())
    found = (adds if kind == "add" else removes)["tags"].to_pylist()
    assert dict(found[0]) == many
    assert found[1:] == [None, []]


def test_partition_values_of_very_many_columns_are_read_and_one_that_is_not_named_is_null() -> None:
    columns = [f"k{i}" for i in range(2_000)]
    bodies = [
        {"path": "a", "size": 1, "partitionValues": {name: f"v{name}" for name in columns}, "tags": {"t": "1"}},
        {"path": "b", "size": 1, "partitionValues": {"k7": "x", "k8": None, "no column": "y"}},
    ]
    rows = read(*(json.dumps({"add": body}) for body in bodies), columns=tuple(columns))
    assert dict(rows[0]["partitionValues"]) == bodies[0]["partitionValues"]
    assert dict(rows[1]["partitionValues"]) == {**dict.fromkeys(columns), "k7": "x"}
    assert rows[0]["tags"] == [("t", "1")]


def test_no_column_of_arrow_is_made_for_each_of_very_many_partition_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    members: list[int] = []
    original = columnar.pj.ParseOptions

    def seen(explicit_schema: pa.Schema, **more: Any) -> Any:
        members.extend(
            len(member.type) for kind in explicit_schema for member in kind.type if pa.types.is_struct(member.type)
        )
        return original(explicit_schema=explicit_schema, **more)

    monkeypatch.setattr(columnar.pj, "ParseOptions", seen)
    columns = tuple(f"k{i}" for i in range(1_000))
    line = json.dumps({"add": {"path": "a", "size": 1, "partitionValues": dict.fromkeys(columns, "v" * 20)}})
    assert len(read(line, columns=columns)) == 1
    assert 0 < max(members) < 100


@pytest.mark.parametrize("value", [1, ["x"], {"x": "y"}])
def test_very_many_partition_values_are_texts(value: Any) -> None:
    columns = tuple(f"k{i}" for i in range(1_000))
    line = json.dumps(
        {"add": {"path": "a", "size": 1, "partitionValues": {**dict.fromkeys(columns, "v" * 20), "k3": value}}}
    )
    with pytest.raises(ValueError, match="partitionValues are no texts by name"):
        read(line, columns=columns)


vectors = st.fixed_dictionaries(
    {"storageType": st.just("u"), "pathOrInlineDv": texts, "sizeInBytes": st.integers(1, 9), "cardinality": st.just(3)},
    optional={"offset": st.integers(0, 9), "unknown": st.just(1)},
)
MORE = {
    "stats": cells,
    "tags": st.none() | maps,
    "deletionVector": st.none() | vectors,
    "baseRowId": st.none() | st.integers(0, 2**62),
    "defaultRowCommitVersion": st.integers(0, 9),
    "clusteringProvider": cells,
    "extendedFileMetadata": st.booleans(),
    "partitionValues": st.fixed_dictionaries(dict.fromkeys(COLUMNS, cells)),
    "unknown": st.none() | st.just({"x": [1]}),
}
fields = st.fixed_dictionaries({}, optional=MORE)


@pytest.mark.slow
@settings(max_examples=examples(200, 20))
@given(st.lists(fields, min_size=1, max_size=3), st.lists(st.tuples(st.booleans(), fields), max_size=4), st.booleans())
def test_what_only_later_lines_have_is_not_lost(
    first: list[dict[str, Any]], later: list[tuple[bool, dict[str, Any]]], drops: bool
) -> None:
    """The small way, which reads each line by itself, tells what each holds."""
    alike = [(remove if drops else add)(str(i), **first[i % len(first)]) for i in range(20)]
    lines = [json.dumps(each) for each in [*alike, *((remove if r else add)("z", **more) for r, more in later)]]
    wanted = [[{**row, "line": i} for row in read(line, columns=COLUMNS)] for i, line in enumerate(lines)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "small_file_actions", lambda *_: None)
        assert read(*lines, columns=COLUMNS) == list(chain.from_iterable(wanted))
