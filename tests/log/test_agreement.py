"""A checkpoint or log compaction that says something else than the commits is found, though its sums are right."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._log.agreement import disagreements
from anabranch._log.file_names import checkpoint_name, checksum_name, commit_name, compacted_range
from anabranch._log.log import Log, forget
from anabranch.commands.maintenance.check import check
from laboratory.shapes import CHECKPOINT, KINDS, NEWEST, Files, opened, store_of, table

COMPACTION = f"_delta_log/{1:020d}.{3:020d}.compacted.json"
CLASSIC = checkpoint_name(CHECKPOINT)


def found(files: Files) -> list[tuple[str, str]]:
    """The file and the problem of each disagreement, whatever way the version itself was read."""
    forget()
    snapshot = Log(store_of(files)).snapshot()
    return [(each.file, each.problem) for each in disagreements(snapshot)]


def other_protocol(row: dict[str, Any]) -> None:
    if row["protocol"] is not None:
        row["protocol"]["writerFeatures"].append("vacuumProtocolCheck")


def rewritten(files: Files, change: Callable[[dict[str, Any]], object], name: str = CLASSIC) -> dict[str, bytes]:
    """A checkpoint with other rows, each changed in place."""
    whole = pq.read_table(io.BytesIO(files[name]))
    rows = whole.to_pylist()
    for row in rows:
        change(row)
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, whole.schema), sink)
    return {**files, name: sink.getvalue()}


def other_add(row: dict[str, Any]) -> None:
    """As large as it was, elsewhere."""
    if row["add"] is not None and row["add"]["deletionVector"] is None:
        row["add"]["path"] = "other.parquet"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_found_in_a_whole_log(kind: str) -> None:
    assert found(table(kind)) == []
    with opened(table(kind)) as (_, store):
        assert check(Log(store).snapshot(), deep=True).is_clean


@pytest.mark.slow
def test_a_checkpoint_with_other_paths_of_equal_sums_is_found_by_the_deep_check() -> None:
    files = rewritten(table("classic"), other_add)
    with opened(files) as (_, store):
        findings = check(Log(store).snapshot(), deep=True).findings
    said = [(f.rule, f.file) for f in findings if f.rule == "checkpoints say what the commits say"]
    assert set(said) == {("checkpoints say what the commits say", CLASSIC)}
    assert next(problem for _, problem in found(files)).endswith("the commits do not have, as other.parquet")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row["add"] and row["add"].update(partitionValues=[("p", "c")]), "other partition values"),
        (lambda row: row["metaData"] and row["metaData"].update(configuration=[]), "other metadata"),
        (other_protocol, "other protocol"),
    ],
)
def test_what_a_checkpoint_says_besides_paths_is_held_against_the_commits(change: Any, said: str) -> None:
    files = rewritten(table("classic"), change)
    ((name, problem),) = found({n: data for n, data in files.items() if not n.endswith(".crc")})
    assert (name, said in problem) == (CLASSIC, True)


@pytest.mark.slow
def test_a_checkpoint_is_held_against_the_one_before_it_where_older_commits_were_cleaned_up() -> None:
    with opened(table("classic alone")) as (_, store):
        log = Log(store)
        log.write_checkpoint(log.snapshot(NEWEST), now_ms=0)
        files = {name: kept.data for name, kept in store.kept.items()}
    assert found(files) == []
    wrong = rewritten(files, other_add, checkpoint_name(NEWEST))
    assert {name for name, _ in found(wrong)} == {checkpoint_name(NEWEST)}


@pytest.mark.parametrize("damage", ["a line less", "another path"])
def test_a_compaction_that_says_something_else_is_found(damage: str) -> None:
    files = table("compacted")
    lines = files[COMPACTION].splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"add"' in line)
    if damage == "a line less":
        del lines[at]
    else:
        lines[at] = json.dumps({"add": {**json.loads(lines[at])["add"], "path": "other.parquet"}}).encode() + b"\n"
    assert {name for name, _ in found({**files, COMPACTION: b"".join(lines)})} == {COMPACTION}


@pytest.mark.parametrize("name", [commit_name(2), COMPACTION])
def test_an_old_file_that_cannot_be_read_is_found_though_the_version_can(name: str) -> None:
    files = {**table("compacted"), **table("classic"), COMPACTION: table("compacted")[COMPACTION]}
    assert [file for file, _ in found({**files, name: files[name][:-30]})] == [name]


@pytest.mark.parametrize("sums", ["none", "garbled", "another"])
def test_a_compaction_for_which_no_checksum_file_speaks_is_not_believed(sums: str) -> None:
    """Its commits are all there; a line that it lost would be seen by nobody."""
    files = dict(table("compacted"))
    files[COMPACTION] = b"".join(line for line in files[COMPACTION].splitlines(True) if b'"remove"' not in line)
    own = json.loads(files[checksum_name(NEWEST)])
    other = {**own, "metadata": {**own["metadata"], "id": "another"}}
    files[checksum_name(NEWEST)] = {"none": b"", "garbled": b"{", "another": json.dumps(other).encode()}[sums]
    if sums == "none":
        files = {name: data for name, data in files.items() if not name.endswith(".crc")}
    assert live(files) == live(table("commits"))


def test_a_wrong_compaction_behind_the_only_checkpoint_is_passed_by() -> None:
    files = dict(table("classic alone"))
    name = f"_delta_log/{5:020d}.{6:020d}.compacted.json"
    assert compacted_range(name) == (5, 6)
    lines = [line for version in (5, 6) for line in files[commit_name(version)].splitlines(True)]
    files[name] = b"".join(line for line in lines if b'"add"' not in line)
    assert live(files) == live(table("commits"))


def live(files: Files) -> set[str]:
    forget()
    return set(Log(store_of(files)).snapshot().files["path"].to_pylist())
