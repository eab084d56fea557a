"""A commit file that is empty, cut off or no commit is refused by its name, also by a writer who only appends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anabranch import errors
from anabranch._log import commits, file_lines
from anabranch._log.columnar import file_actions
from anabranch._log.commit_files import Raw
from anabranch._log.commits import parse_commit, parse_files, parse_head
from anabranch._log.file_names import commit_name
from anabranch._log.replay import replay
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.maintenance.check import check
from anabranch.commands.opening import open_log
from tests.support.raw_logs import PROTOCOL, SCHEMA, add, info, listing, metadata, put_commit, remove, text_of
from tests.support.worlds import World

GOOD = text_of(info(), add("a"), remove("b"))
METADATA = metadata()["metaData"]


def parsed_whole(raw: Raw) -> None:
    commit = parse_commit("t", raw, ("p",))
    assert commit.adds is not None
    assert commit.removes is not None


def refused(data: bytes | str, version: int = 3) -> errors.CorruptLog:
    raw = Raw(version, data.encode() if isinstance(data, str) else data)
    with pytest.raises(errors.CorruptLog) as refusal:
        parsed_whole(raw)
    assert refusal.value.file == commit_name(version)
    assert refusal.value.table == "t"
    return refusal.value


# -- what is read ------------------------------------------------------------------------------------------------------


def test_a_whole_commit_is_read() -> None:
    lines = text_of(
        info(operation="X", txnId="me", isBlindAppend=True),
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        metadata(partition_by=("x",)),
        {"txn": {"appId": "app", "version": 7}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        add("a", partitionValues={"x": "1"}),
        remove("b"),
    )
    commit = parse_commit("t", Raw(3, lines.encode(), timestamp=55), ())
    assert (commit.version, commit.timestamp, commit.txn_id) == (3, 55, "me")
    assert commit.head.protocol is not None
    assert commit.head.metadata is not None
    assert [each.app_id for each in commit.head.app_transactions] == ["app"]
    assert [each.domain for each in commit.head.domains] == ["d"]
    assert commit.adds["partitionValues"].to_pylist() == [[("x", "1")]]
    assert commit.removes["path"].to_pylist() == ["b"]


def test_an_in_commit_timestamp_counts_more_than_the_files() -> None:
    commit = parse_commit("t", Raw(0, text_of(info(inCommitTimestamp=99)).encode(), timestamp=55), ())
    assert commit.timestamp == 99


@pytest.mark.parametrize(
    "spelling", ['{"cdc":{"path":"x"}}', ' { "cdc" : {"path":"x"} }', '{"a":1,"cdc":{"path":"x"}}']
)
def test_a_change_feed_is_noticed_however_it_is_spelled(spelling: str) -> None:
    assert parse_commit("t", Raw(0, (GOOD + spelling).encode()), ()).has_change_feed
    assert not parse_commit("t", Raw(0, text_of(info(operation="cdc"), add("cdc")).encode()), ()).has_change_feed


def test_a_commit_without_file_actions_is_a_commit() -> None:
    commit = parse_commit("t", Raw(0, text_of(info()).encode()), ())
    assert len(commit.adds) == len(commit.removes) == 0


def test_a_commit_without_commit_info_is_a_commit() -> None:
    assert parse_commit("t", Raw(0, text_of(add("a")).encode(), timestamp=5), ()).timestamp == 5


def test_a_byte_order_mark_and_unknown_actions_are_ignored() -> None:
    text = b"\xef\xbb\xbf" + text_of(info(operation="X"), {"checkpointMetadata": {}}, {"new": [1]}, add("a")).encode()
    commit = parse_commit("t", Raw(0, text), ())
    assert commit.head.info["operation"] == "X"
    assert commit.adds["path"].to_pylist() == ["a"]


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["", "\n", " \r\n \t\n"])
def test_an_empty_commit_is_never_an_empty_version(data: str) -> None:
    assert "empty" in refused(data).reason


def test_a_commit_cut_anywhere_inside_a_line_is_refused() -> None:
    data = text_of(add("a", tags={"k": "}"}), info(), add("é", partitionValues={"p": None}, stats='{"a":{}}')).encode()
    whole = {i for i in range(len(data) + 1) if data[:i].endswith((b"\n", b"}}")) and _parses(data[:i])}
    for length in set(range(1, len(data))) - whole:
        refused(data[:length])


def _parses(data: bytes) -> bool:
    try:
        return all(isinstance(json.loads(line), dict) for line in data.split(b"\n") if line.strip())
    except ValueError:
        return False


def test_a_writer_who_only_appends_notices_a_cut_file_action() -> None:
    """It reads no file actions, yet may not build on a version that is not whole."""
    for end in (1, 2, 20, len('{"remove":{"path":"b"')):
        with pytest.raises(errors.CorruptLog, match="cut off"):
            parse_head("t", Raw(0, GOOD.rstrip()[:-end].encode()))


@pytest.mark.parametrize(
    "line",
    [
        "garbage",
        "[1]",
        '"text"',
        "5",
        "null",
        "true",
        '{"commitInfo":{}} {}',
        '{"commitInfo":{}',
        "[" * 100_000,
        '{"commitInfo":null}',
        '{"commitInfo":"x"}',
        '{"commitInfo":[1]}',
        '{"commitInfo":{"inCommitTimestamp":"soon"}}',
        '{"protocol":{}}',
        '{"protocol":null}',
        '{"protocol":{"minReaderVersion":"x","minWriterVersion":2}}',
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":"all"}}',
        '{"protocol":{"minReaderVersion":0,"minWriterVersion":2}}',
        '{"protocol":{"minReaderVersion":1,"minWriterVersion":-1}}',
        '{"protocol":{"minReaderVersion":1.0,"minWriterVersion":2}}',
        '{"protocol":{"minReaderVersion":1,"minWriterVersion":1e400}}',
        '{"protocol":{"minReaderVersion":1,"minWriterVersion":' + "9" * 5000 + "}}",
        '{"metaData":[]}',
        '{"metaData":{"id":"x","schemaString":"{"}}',
        '{"metaData":{"id":"x","schemaString":"[]"}}',
        '{"metaData":{"id":"x","schemaString":""}}',
        '{"metaData":{"id":"x","schemaString":"{\\"type\\":\\"struct\\"}"}}',
        '{"txn":{"appId":["x"],"version":1}}',
        '{"txn":{"appId":"x","version":"one"}}',
        '{"txn":{"version":1}}',
        '{"txn":{"appId":"x","version":1e400}}',
        '{"commitInfo":{"inCommitTimestamp":1e400}}',
        '{"domainMetadata":{"domain":{},"configuration":""}}',
        '{"domainMetadata":{"configuration":""}}',
        '{"add":{"path":"a","size":"big"}}',
        '{"add":{"path":"a"}}',
        '{"remove":[]}',
        ' {"add":{"path":7,"size":1}}',
    ],
)
def test_a_line_that_is_no_action_is_refused(line: str) -> None:
    refused(GOOD + line + "\n")
    refused(line + "\n" + GOOD)


def test_bytes_that_are_no_text_are_refused() -> None:
    refused(GOOD.encode() + b'{"add":{"path":"\xff","size":1}}\n')
    refused(GOOD.encode() + b'{"commitInfo":{"operation":"\xff"}}\n')


@pytest.mark.parametrize("said", [{}, {"schemaString": None}])
def test_metadata_without_a_schema_are_a_table_without_columns(tmp_path: Path, said: dict[str, None]) -> None:
    """As the first version of a table of Delta Live Tables; the second one has the schema."""
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, info(), PROTOCOL, {"metaData": {"id": "x", **said}})
    assert world.rows() == []
    assert world.log.snapshot().schema.fields == ()
    put_commit(world.path, 1, info(), metadata(Struct((Field("id", "long"),))))
    world.append({"id": 1})
    assert world.rows() == [{"id": 1}]
    assert world.rows(0) == []
    assert check(world.log.snapshot(), deep=True).is_clean


@pytest.mark.parametrize("kind", ["protocol", "metaData"])
def test_two_actions_of_a_kind_that_may_stand_once_are_refused(kind: str) -> None:
    body = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}, "metaData": METADATA}[kind]
    assert f"2 {kind}" in refused(text_of({kind: body}, {kind: body})).reason


def test_a_line_of_a_wrong_type_among_many_commits_is_traced_to_its_file() -> None:
    raws = [Raw(version, GOOD.encode()) for version in range(5)]
    raws[2] = Raw(2, b'{"add":{"path":"a","size":"big"}}\n')
    with pytest.raises(errors.CorruptLog) as refusal:
        parse_files("t", raws, ())
    assert refusal.value.file == commit_name(2)


def test_a_cut_line_in_the_middle_is_named_by_its_number() -> None:
    data = text_of(info(), add("a"), '{"add":{"path":"b"', add("c"))
    assert "line 3" in refused(data).reason


# -- on a table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage", ["", '{"commitInfo":{}}\n{"add":{"path":"x","si', '{"add":{"path":"x","partitionValues":{}', "garbage"]
)
@pytest.mark.parametrize("command", ["append", "delete", "read"])
def test_nothing_is_built_on_a_damaged_commit(tmp_path: Path, damage: str, command: str) -> None:
    world = World(str(tmp_path / "t")).create([{"id": 1, "x": 1}])
    put_commit(world.path, 1, damage).write_text(damage)
    before = listing(world.path)
    run: dict[str, Any] = {
        "append": lambda: world.append({"id": 2, "x": 2}),
        "delete": lambda: world.delete("id = 1"),
        "read": world.rows,
    }
    with pytest.raises(errors.CorruptLog) as refusal:
        run[command]()
    assert refusal.value.file == commit_name(1)
    assert not refusal.value.retryable
    assert listing(world.path) == before


@pytest.mark.parametrize("damage", ["", '{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}'])
def test_a_table_whose_newest_version_cannot_be_read_can_be_read_at_an_earlier_one(tmp_path: Path, damage: str) -> None:
    """The error says so."""
    world = World(str(tmp_path / "t")).create([{"id": 1, "x": 1}])
    put_commit(world.path, 1, damage).write_text(damage)
    assert world.rows(version=0) == [{"id": 1, "x": 1}]
    with pytest.raises(errors.TableError):
        world.rows(version=1)
    with pytest.raises(errors.VersionNotFound):
        world.rows(version=2)


def test_the_schema_of_a_hand_written_table_is_read(tmp_path: Path) -> None:
    world = World(str(tmp_path / "t"))
    put_commit(world.path, 0, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, metadata())
    assert world.log.snapshot().schema == SCHEMA


# -- large commits -----------------------------------------------------------------------------------------------------


def large(first: str, last: str) -> list[Raw]:
    """Two commits: many adds with a remove among them and other lines between, and adds and removes of the same."""
    adds = [text_of(add(f"file {i}", partitionValues={"p": str(i % 3)}, stats=STATS)) for i in range(60)]
    one = first + "".join(adds[:20]) + text_of(remove("file 3"), info()) + "".join(adds[20:]) + last
    two = text_of(metadata(partition_by=("p",))) + adds[7] + text_of(remove("file 50"), add("x")) + adds[3]
    return [Raw(3, one.encode() if last else one.rstrip("\n").encode()), Raw(4, two.rstrip("\n").encode())]


STATS = json.dumps({"numRecords": 3, "maxValues": {"word": "schön"}}, ensure_ascii=False)
ENDS = ["", "\n \t\n", "\r\n", '{ "add": {"path": "odd", "size": 1}}\n', '{"cdc":{"path":"c"}}\n\n{"note":1}\n']


@pytest.mark.slow
@pytest.mark.parametrize("first", ENDS)
@pytest.mark.parametrize("last", ENDS)
def test_a_commit_read_in_pieces_is_the_commit_read_at_once(
    first: str, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raws = large(first, last)
    whole = [each.to_pylist() for each in replay(*parse_files("t", raws, ()))[:2]]
    assert len(whole[0]) == 60 + ("odd" in first + last)
    for size in (1, 300, 2000):
        monkeypatch.setattr(file_lines, "PIECE_BYTES", size)
        assert [each.to_pylist() for each in replay(*parse_files("t", raws, ()))[:2]] == whole
    commit = parse_commit("t", raws[0], ("p",))
    assert commit.adds.num_rows == 60 + sum("odd" in each for each in (first, last))
    assert commit.removes["path"].to_pylist() == ["file 3"]
    assert commit.has_change_feed == ("cdc" in first + last)


def test_no_piece_is_much_larger_than_it_may_be_and_each_is_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def noted(lines: bytes, keys: frozenset[str]) -> tuple[pa.Table, pa.Table]:
        sizes.append(len(lines))
        assert all(json.loads(line) for line in lines.splitlines())
        return file_actions(lines, keys)

    monkeypatch.setattr(file_lines, "PIECE_BYTES", 500)
    monkeypatch.setattr(commits, "file_actions", noted)
    parse_files("t", large("", ""), ())
    assert len(sizes) > 10
    assert max(sizes) < 1000


def test_a_line_that_is_cut_off_is_refused_in_whatever_piece_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lines, "PIECE_BYTES", 500)
    good, bad = large("", "")
    broken = Raw(4, bad.data.replace(b'"path":"x"', b'"path":"x'))
    with pytest.raises(errors.CorruptLog) as refusal:
        parse_files("t", [good, broken], ())
    assert refusal.value.file == commit_name(4)


@pytest.mark.parametrize(
    "action",
    [
        {"txn": {"appId": "x", "version": 1, "lastUpdated": True}},
        {"txn": {"appId": "x", "version": 2**63}},
        {"txn": {"appId": "half \ud800", "version": 1}},
        {"domainMetadata": {"domain": "x", "configuration": {}}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["half \udfff"]}},
        {"commitInfo": {"inCommitTimestamp": {}}},
        {"commitInfo": {"inCommitTimestamp": ""}},
        {"commitInfo": {"inCommitTimestamp": 10**400}},
        {"metaData": {**METADATA, "id": 7}},
        {"metaData": {**METADATA, "name": []}},
        {"metaData": {**METADATA, "createdTime": "soon"}},
        {"metaData": {**METADATA, "format": "parquet"}},
        {"metaData": {**METADATA, "format": {"provider": None}}},
        {"metaData": {**METADATA, "format": {"options": 2**63}}},
        {"metaData": {**METADATA, "description": "half \ud83d"}},
    ],
    ids=lambda each: next(iter(each)),
)
def test_a_part_of_another_type_than_the_protocol_says_is_refused_before_anyone_uses_it(action: dict[str, Any]) -> None:
    refused(GOOD + json.dumps(action) + "\n")


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"commitInfo": {"inCommitTimestamp": "abc"}}, "inCommitTimestamp is no whole number of 64 bits"),
        ({"commitInfo": [1]}, "commitInfo is no object"),
        ({"metaData": {"schemaString": "{}"}}, "id is missing"),
        ({"metaData": {**METADATA, "partitionColumns": "day"}}, "partitionColumns is no list of texts"),
        ({"protocol": {"minReaderVersion": 0}}, "minReaderVersion is no version of the protocol"),
    ],
)
@pytest.mark.parametrize("shows_rows", ["true", "false"])
def test_a_malformed_field_is_named_in_a_sentence_and_not_by_an_error_of_python(
    action: dict[str, Any], why: str, shows_rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANABRANCH_ROWS_IN_ERRORS", shows_rows)
    with pytest.raises(errors.CorruptLog) as refusal:
        parse_head("t", Raw(0, (GOOD + json.dumps(action) + "\n").encode()))
    assert refusal.value.facts["reason"] == f"an action is not whole ({why})."


def test_half_of_a_character_in_what_a_commit_tells_of_itself_is_a_question_mark() -> None:
    text = json.dumps({"commitInfo": {"userMetadata": "half \ud83d, whole \U0001f600"}})
    head = parse_head("t", Raw(0, (text + "\n").encode()))
    assert head.info == {"userMetadata": "half ?, whole \U0001f600"}


# -- very many actions -------------------------------------------------------------------------------------------------

MANY: dict[str, list[dict[str, Any]]] = {
    "txn": [{"txn": {"appId": f"a{i}", "version": i}} for i in range(2_000)],
    "domainMetadata": [
        {"domainMetadata": {"domain": f"d{i}", "configuration": "{}", "removed": False}} for i in range(2_000)
    ],
}


@pytest.mark.parametrize("kind", list(MANY))
def test_each_action_of_a_large_commit_is_parsed_once_until_the_files_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The texts that are parsed as JSON are counted: most of the time of such a commit goes there."""
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata"]}}
    put_commit(tmp_path, 0, info(), protocol, metadata(), add("a"), *MANY[kind])
    parsed, loads = list[str](), json.loads
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or loads(text))
    snapshot = open_log(str(tmp_path)).snapshot()
    assert snapshot.files["path"].to_pylist() == ["a"]
    assert len(snapshot.state.app_transactions or snapshot.state.domains) == len(MANY[kind])
    assert len(parsed) < len(MANY[kind]) + 20


TWICE = text_of(add("a")).rstrip("\n")
MANY_TAGS = {f"k{i}": "v" for i in range(70)}


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 1 << 20])
@pytest.mark.parametrize(
    "damage",
    [
        TWICE + text_of({"txn": {"appId": "x", "version": 1}}),
        TWICE + text_of(remove("b")),
        TWICE + " null\n",
        '{"add":{"path":"b","size":1,"x":\n' + TWICE + "}}\n",
        TWICE + text_of(add("x", tags=MANY_TAGS), add("y", tags=MANY_TAGS), remove("r")),
    ],
)
def test_a_line_of_several_values_is_refused_and_none_is_lost(
    damage: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lines, "PIECE_BYTES", size)
    for before in ("", text_of(*(add(f"{i}") for i in range(400)))):
        with pytest.raises(errors.CorruptLog):
            parse_files("t", [Raw(3, (before + damage + text_of(add("c"))).encode())], ())


def test_blank_lines_among_file_actions_are_no_actions() -> None:
    text = text_of(add("a")) + "\n \t\n\r\n" + text_of(add("b")) + "\n"
    assert file_actions(text.encode() * 200, ())[0].num_rows == 400


def test_an_action_nested_without_end_is_refused_by_a_typed_error() -> None:
    deep = TWICE.removesuffix("}}") + ',"tags":{"k":"v"},"x":' + "[" * 50_000 + "]" * 50_000 + "}}\n"
    with pytest.raises(errors.CorruptLog):
        parse_files("t", [Raw(3, (deep + text_of(add("c"))).encode())], ())


@pytest.mark.parametrize("bad", [b"\xed\xb0\x80", b"\xff"])
def test_bytes_that_are_no_text_are_refused_in_every_action(bad: bytes) -> None:
    line = text_of({"txn": {"appId": "x@", "version": 1}}).encode().replace(b"@", bad)
    for lines in (line, text_of(info()).encode("utf-16-le") + b"\n"):
        with pytest.raises(errors.CorruptLog):
            parse_head("t", Raw(3, GOOD.encode() + lines))


@pytest.mark.parametrize("spelling", ['{ "add" :', r'{"\u0061dd":', r'{"\u0061\u0064\u0064":'])
def test_a_file_action_is_found_however_it_is_spelled(spelling: str) -> None:
    lines = text_of(info(), MANY["txn"][0], add("a")).replace('{"add":', spelling)
    (adds, _) = parse_files("t", [Raw(0, lines.encode())], ())
    assert adds["path"].to_pylist() == ["a"]
