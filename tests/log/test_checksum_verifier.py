"""A checkpoint that something contradicts is not believed, and nothing is deleted on one witness."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._log import checkpointing
from anabranch._log.checkpoint_parts import checkpoints_in
from anabranch._log.cleanup import is_confirmed
from anabranch._log.confirmation import confirm
from anabranch._log.file_names import (
    LAST_CHECKPOINT,
    checkpoint_name,
    checksum_name,
    commit_name,
    commit_version,
    first_name,
)
from anabranch._log.last_checkpoint import hint_bytes
from anabranch._log.log import Log, forget
from anabranch.commands.maintenance.vacuum import Vacuum
from anabranch.errors import AnabranchError, CorruptLog, LiveFilesNotConfirmed
from anabranch.testing import DictStore, mounted
from tests.support.raw_logs import WITH_VECTORS, Action, add, info, metadata, remove, text_of

Files = Mapping[str, bytes]
LIVE = {f"f{i}.parquet" for i in range(1, 7)}
CHECKPOINT, NEWEST = 3, 5


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    forget()
    yield
    forget()


def commits() -> dict[int, list[Action]]:
    added = [add(f"f{i}.parquet", size=10 + i, stats=json.dumps({"numRecords": i})) for i in range(7)]
    return {
        0: [info(), WITH_VECTORS, metadata(), *added[:3]],
        1: [info(), added[3], added[4]],
        2: [info(), remove("f0.parquet", size=10)],
        3: [info(), {"txn": {"appId": "a", "version": 1}}],
        4: [info(), added[5]],
        5: [info(), added[6]],
    }


def log_files(*, sums: bool = True, checkpoint: int = CHECKPOINT) -> dict[str, bytes]:
    """A log with one checkpoint, whose adds lie in two row groups, and, unless told otherwise, all checksum files."""
    store = DictStore("memory://witness/base", now_ms=lambda: 1)
    for version, actions in commits().items():
        store.put(commit_name(version), text_of(*actions).encode())
    log = Log(store)
    if sums:
        for version in commits():
            store.put_hint(checksum_name(version), log.snapshot(version).checksum().to_json())
    log.write_checkpoint(log.snapshot(checkpoint), now_ms=0)
    found = {name: kept.data for name, kept in store.kept.items() if sums or not name.endswith(".crc")}
    whole = pq.read_table(io.BytesIO(found[checkpoint_name(checkpoint)]))
    sink = io.BytesIO()
    pq.write_table(whole, sink, row_group_size=3, write_page_checksum=True)
    return {**found, checkpoint_name(checkpoint): sink.getvalue()}


def shortened(files: Files) -> dict[str, bytes]:
    """One bit of the checkpoint's footer is wrong: its last row group has fewer rows."""
    name = checkpoint_name(CHECKPOINT)
    return {**files, name: _shortened(files[name])}


@cache
def _shortened(data: bytes) -> bytes:
    true = [pq.read_metadata(io.BytesIO(data)).row_group(i).num_rows for i in range(3)]
    first = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for at in reversed(range(first, len(data) - 8)):  # the last row group is told near the end
        for bit in range(8) if data[at] == 2 * true[-1] else ():  # so small numbers are one byte, doubled
            wrong = data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
            try:
                footer = pq.read_metadata(io.BytesIO(wrong))
                rows = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
            except Exception:
                continue
            if rows[:-1] == true[:-1] and 0 <= rows[-1] < true[-1] and footer.num_rows == sum(true):
                return wrong
    raise AssertionError("no bit does this")


def rewritten(files: Files, change: Callable[[list[Action]], list[Action]]) -> dict[str, bytes]:
    """The checkpoint as an honest one that says something else."""
    name = checkpoint_name(CHECKPOINT)
    table = pq.read_table(io.BytesIO(files[name]))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), table.schema), sink)
    return {**files, name: sink.getvalue()}


def without_one_file(files: Files) -> dict[str, bytes]:
    return rewritten(files, lambda rows: [row for row in rows if (row["add"] or {}).get("path") != "f3.parquet"])


def alone(files: Files) -> dict[str, bytes]:
    """Without the commits before the checkpoint."""
    return {name: data for name, data in files.items() if (v := commit_version(name)) is None or v >= CHECKPOINT}


def without(files: Files, *names: str) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name not in names}


def stored(files: Files, *, data: bool = True) -> DictStore:
    forget()
    store = DictStore("memory://witness/table", now_ms=lambda: time.time_ns() // 1_000_000 - 60_000)
    for name, each in files.items():
        store.put(name, each)
    for path in (*LIVE, "f0.parquet", "stray.parquet") if data else ():
        store.put(path, b"data")
    return store


def live(files: Files) -> set[str]:
    return set(Log(stored(files)).snapshot().files["path"].to_pylist())


def vacuumed(files: Files) -> set[str]:
    """The live files that a VACUUM leaves, whatever it says."""
    store = stored(files)
    with mounted(store) as location:
        try:
            Vacuum(location, 0, check_retention=False).run()
        except AnabranchError:
            assert "stray.parquet" in store.kept, "who refuses removes nothing"
    return LIVE & set(store.kept)


def refusal(files: Files, version: int | None = None) -> LiveFilesNotConfirmed:
    with pytest.raises(LiveFilesNotConfirmed) as caught:
        confirm(Log(stored(files)).snapshot(version))
    return caught.value


# -- what is read ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_one_wrong_bit_in_a_footer_hides_no_file_and_vacuum_removes_none() -> None:
    files = shortened(log_files())
    assert live(files) == LIVE
    assert vacuumed(files) == LIVE


def test_such_a_footer_is_told_where_there_is_no_other_way() -> None:
    files = shortened(alone(log_files(sums=False)))
    with pytest.raises(CorruptLog, match="contradicts itself") as caught:
        live(files)
    assert caught.value.file == checkpoint_name(CHECKPOINT)
    assert vacuumed(files) == LIVE


@pytest.mark.slow
@pytest.mark.parametrize("sums", [True, False], ids=["the checksum file", "the hint"])
def test_a_checkpoint_that_something_contradicts_is_passed_by(sums: bool) -> None:
    files = without_one_file(log_files(sums=sums))
    assert live(files) == LIVE
    with pytest.raises(CorruptLog) as caught:
        live(alone(files))
    assert caught.value.file == checkpoint_name(CHECKPOINT)
    assert vacuumed(files) == vacuumed(alone(files)) == LIVE


def test_a_checkpoint_without_its_other_actions_is_passed_by_where_a_sealed_hint_says_so() -> None:
    files = rewritten(log_files(), lambda rows: [row for row in rows if row["txn"] is None])
    assert Log(stored(files)).snapshot().state.app_transactions["a"].version == 1


def stating_less(files: Files, version: int) -> dict[str, bytes]:
    """The checksum file of a version as a wrong one."""
    own = json.loads(files[checksum_name(version)])
    return {**files, checksum_name(version): json.dumps({**own, "numFiles": 3}).encode()}


@pytest.mark.parametrize("checkpoint", [CHECKPOINT, NEWEST])
def test_commits_decide_against_a_checksum_file_and_a_warning_names_it(
    checkpoint: int, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = stating_less(log_files(checkpoint=checkpoint), NEWEST)
    assert live(wrong) == LIVE
    assert f"{checksum_name(NEWEST)} of memory://witness/table is wrong" in caplog.text
    assert live(without(wrong, checkpoint_name(checkpoint))) == LIVE


def test_a_checkpoint_that_no_commits_confirm_is_not_believed_against_a_checksum_file() -> None:
    wrong = stating_less(log_files(checkpoint=NEWEST), NEWEST)
    with pytest.raises(CorruptLog, match="states other numbers of files 3, not 6"):
        live({name: data for name, data in wrong.items() if (v := commit_version(name)) is None or v >= NEWEST})


def test_the_checksum_file_of_another_table_says_nothing() -> None:
    files = log_files()
    own = json.loads(files[checksum_name(NEWEST)])
    of_another = {**own, "numFiles": 3, "metadata": {**own["metadata"], "id": "another"}}
    assert live({**files, checksum_name(NEWEST): json.dumps(of_another).encode()}) == LIVE


@pytest.mark.slow
def test_a_commit_that_lost_a_line_is_told_in_a_warning_and_vacuum_removes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = log_files()
    name = commit_name(NEWEST)
    lost = {**files, name: files[name].splitlines(keepends=True)[0]}
    assert live(lost) == LIVE - {"f6.parquet"}
    assert f"{checksum_name(NEWEST)} of memory://witness/table is wrong" in caplog.text
    assert vacuumed(lost) == LIVE


# -- what is deleted ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sums", [True, False])
@pytest.mark.parametrize("cut", [True, False])
def test_a_whole_log_is_confirmed_with_and_without_checksum_files_and_old_commits(sums: bool, cut: bool) -> None:
    files = log_files(sums=sums)
    store = stored(alone(files) if cut else files)
    confirm(Log(store).snapshot())
    with mounted(store) as location:
        removed = Vacuum(location, 0, check_retention=False).run()
    assert {entry.name for entry in removed.files} == {"f0.parquet", "stray.parquet"}


@pytest.mark.slow
def test_a_log_that_lost_its_newest_commit_is_not_confirmed() -> None:
    files = without(log_files(), commit_name(NEWEST))
    assert refusal(files, NEWEST - 1).file == checksum_name(NEWEST)
    assert vacuumed(files) == LIVE
    hinted = {**without(log_files(sums=False), commit_name(NEWEST))}
    hinted[LAST_CHECKPOINT] = hint_bytes({"version": NEWEST, "size": 9})
    assert refusal(hinted).file == LAST_CHECKPOINT


@pytest.mark.slow
@pytest.mark.parametrize("what", ['{"aed":', '"deletionVectpr":null,"path":'])
def test_what_is_not_known_in_a_commit_that_nothing_else_speaks_for_is_not_confirmed(what: str) -> None:
    files = log_files(sums=False)
    name = commit_name(NEWEST)
    old = '{"add":' if what.startswith("{") else '"path":'
    garbled = {**files, name: files[name].replace(old.encode(), what.encode())}
    assert refusal(garbled).file == name
    assert vacuumed(garbled) == LIVE


def test_commits_of_plain_actions_need_no_checksum_file_and_others_one_that_follows_them() -> None:
    """Of the table: that of another one speaks for nothing."""
    plain, own = log_files(sums=False), log_files()
    confirm(Log(stored(plain)).snapshot())
    name, sums = commit_name(NEWEST - 1), checksum_name(NEWEST - 1)
    odd = {**plain, name: plain[name].replace(b'"path":', b'"unheardOf":1,"path":')}
    assert refusal(odd).file == name
    confirm(Log(stored({**odd, sums: own[sums]})).snapshot())
    said = json.loads(own[sums])
    of_another = {**said, "metadata": {**said["metadata"], "id": "another"}}
    assert refusal({**odd, sums: json.dumps(of_another).encode()}).file == name


@pytest.mark.parametrize("schema", ['{"type":"struct","fields":[]}', "~"])
def test_a_checksum_file_with_another_schema_confirms_nothing(schema: str) -> None:
    files, name = log_files(), checksum_name(NEWEST)
    own = json.loads(files[name])
    wrong = {**own, "metadata": {**own["metadata"], "schemaString": schema}}
    assert refusal({**files, name: json.dumps(wrong).encode()}).file == name


VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1, "cardinality": 1}


@pytest.mark.parametrize("fields", [{"odd": None}, {"deletionVector": {**VECTOR, "odd": 1}}], ids=["file", "vector"])
def test_a_field_that_is_not_known_is_told_whether_the_file_has_it_or_its_vector(fields: Mapping[str, object]) -> None:
    def log(**fields: object) -> Files:
        return {commit_name(0): text_of(info(), WITH_VECTORS, metadata(), add("a", size=1, **fields)).encode()}

    refused = refusal(log(**fields))
    assert refused.file == commit_name(0)
    assert "line 4 has an action add with ['odd']" in str(refused)
    confirm(Log(stored(log(deletionVector={**VECTOR, "maxRowIndex": 1}))).snapshot())


def test_two_ways_that_differ_are_not_confirmed() -> None:
    files = without(without_one_file(log_files(sums=False)), LAST_CHECKPOINT)
    assert refusal(files).file == commit_name(NEWEST)
    assert vacuumed(files) == LIVE


def test_a_file_that_is_live_twice_is_not_confirmed() -> None:
    files = log_files(sums=False)
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    again = {"add": {**add("f6.parquet", size=16)["add"], "deletionVector": vector}}
    files[commit_name(NEWEST + 1)] = text_of(info(), again).encode()
    assert refusal(files).file == "f6.parquet"


def test_a_live_file_whose_name_is_garbled_costs_no_file() -> None:
    files = {name: data.replace(b"f6.parquet", b"g6.parquet") for name, data in log_files().items()}
    store = stored(files)
    with mounted(store) as location, pytest.raises(LiveFilesNotConfirmed) as caught:
        Vacuum(location, 0, check_retention=False).run()
    assert caught.value.file == "g6.parquet"
    assert set(store.kept) >= LIVE
    assert commit_name(NEWEST + 1) not in store.kept, "nothing is written either"


@pytest.mark.slow
def test_lite_removes_nothing_that_a_commit_brought_back() -> None:
    files = log_files()
    files[commit_name(NEWEST + 1)] = text_of(info(), remove("f2.parquet", size=12)).encode()
    files[commit_name(NEWEST + 2)] = text_of(info(), add("f2.parquet", size=12)).encode()
    store = stored(files)
    log = Log(store)
    log.write_checkpoint(log.snapshot(), now_ms=0)
    name = checkpoint_name(NEWEST + 2)
    table = pq.read_table(io.BytesIO(store.get(name)))
    sink = io.BytesIO()
    pq.write_table(table.filter([(row["add"] or {}).get("path") != "f2.parquet" for row in table.to_pylist()]), sink)
    store.put(name, sink.getvalue())
    for each in (LAST_CHECKPOINT, checksum_name(NEWEST + 2)):
        store.delete(each)
    forget()
    with mounted(store) as location, pytest.raises(LiveFilesNotConfirmed):
        Vacuum(location, 0, lite=True, check_retention=False).run()
    assert "f2.parquet" in store.kept


# -- the clean-up of the log -------------------------------------------------------------------------------------------


def relied_upon(files: Files) -> bool:
    log = Log(stored(files))
    found = checkpoints_in(log.store.list_from(first_name(0)))[-1]
    return is_confirmed(log.snapshot(), found)


@pytest.mark.slow
def test_a_checkpoint_is_relied_upon_where_its_commits_or_its_checksum_say_the_same() -> None:
    assert relied_upon(log_files())
    assert relied_upon(log_files(sums=False))
    assert relied_upon(alone(log_files()))
    assert not relied_upon(alone(log_files(sums=False))), "there is one witness"


@pytest.mark.slow
@pytest.mark.parametrize("sums", [True, False])
def test_a_checkpoint_that_lacks_a_file_or_an_application_is_not_relied_upon(sums: bool) -> None:
    files = without(log_files(sums=sums), LAST_CHECKPOINT)
    assert not relied_upon(without_one_file(files))
    assert not relied_upon(rewritten(files, lambda rows: [row for row in rows if row["metaData"] is None]))


def test_small_sidecars_are_held_against_what_the_hint_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpointing, "SIDECAR_ACTIONS", 2)
    v2 = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["v2Checkpoint"],
            "writerFeatures": ["v2Checkpoint"],
        }
    }
    store = DictStore("memory://witness/v2")
    store.put(
        commit_name(0),
        text_of(
            info(), v2, metadata(delta_checkpointPolicy="v2"), *(add(f"f{i}.parquet", size=1) for i in range(5))
        ).encode(),
    )
    log = Log(store)
    log.write_checkpoint(log.snapshot(), now_ms=0)
    sidecars = [name for name in store.kept if "_sidecars" in name]
    assert len(sidecars) == 3
    store.put(sidecars[0], store.get(sidecars[1]))  # whole, and not what belongs there
    forget()
    assert len(log.snapshot().files) == 5
