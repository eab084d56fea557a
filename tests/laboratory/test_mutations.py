"""Damaged files of every sort; `make lab` tries ten thousand of them, these among them."""

from __future__ import annotations

import io
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch._log.file_names import checkpoint_name, commit_name
from anabranch._log.log_end import End
from laboratory import mutations
from laboratory.damage import Mutation
from laboratory.mutations import Case, Fault, campaign, case_of, examined, truth_of
from laboratory.shapes import CHECKPOINT, KINDS, NEWEST, table
from tests.support.tiers import examples

FEW = examples(60, 4)


@pytest.mark.slow
def test_a_damaged_file_of_any_sort_costs_neither_truth_nor_file_nor_process() -> None:
    found = campaign(range(FEW))
    assert found.wrong == [], "python -m laboratory.mutations --tell NUMBER tells of one of them"
    assert found.count == FEW


@pytest.mark.slow
def test_any_hundred_mutations_have_every_sort_of_file_by_its_share() -> None:
    seen = Counter(case_of(number).sort for number in range(700, 800))
    assert seen == {sort.name: sort.share for sort in mutations.SORTS}
    assert sum(seen.values()) == 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_with_any_kind_of_log_says_the_same(kind: str) -> None:
    truth, plain = truth_of(kind), truth_of("commits")
    assert (truth.rows, truth.paths) == (plain.rows, plain.paths)
    assert truth.read[0] == plain.read[0]
    assert truth.paths < set(table(kind)), "there is something that a VACUUM may remove"


@pytest.mark.slow
def test_a_check_that_does_not_ask_the_commits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    files, name = table("classic"), checkpoint_name(CHECKPOINT)
    rows = pq.read_table(io.BytesIO(files[name]))
    actions = rows.to_pylist()
    for action in actions:
        if action["add"] is not None and action["add"]["deletionVector"] is None:
            action["add"]["partitionValues"] = [("p", "c")]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(actions, rows.schema), sink)
    case = Case(0, "classic checkpoint", "classic", files, Mutation("by hand", name, {**files, name: sink.getvalue()}))
    monkeypatch.setattr(mutations, "undecidable", lambda *args: "Parquet has no checksum over its footer")
    assert examined(case) == mutations.HONEST
    monkeypatch.setattr("anabranch.commands.maintenance.check.disagreements", lambda snapshot: ())
    with pytest.raises(Fault, match="CHECK finds nothing"):
        examined(case)


def test_a_vacuum_that_believes_a_log_without_its_newest_commit_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    files, lost = table("commits"), commit_name(NEWEST)
    without = {name: data for name, data in files.items() if name != lost}
    case = Case(0, "commit", "commits", files, Mutation("delete", lost, without))
    assert examined(case) == mutations.NAMED
    monkeypatch.setattr("anabranch.commands.maintenance.vacuum.require_confirmation", lambda *args: None)
    monkeypatch.setattr("anabranch._log.log.end_of", lambda *args: End.RIGHT)
    with pytest.raises(Fault, match="reading gives what is not true"):
        examined(case)
    with pytest.raises(Fault, match="VACUUM removed"):
        mutations._vacuum(case)


def test_a_file_of_vectors_that_is_as_the_log_describes_another_one_is_told_by_nobody() -> None:
    case = case_of(26643)
    assert (case.sort, case.mutation.kind) == ("deletion vectors", "replace")
    assert examined(case) == mutations.ROWS
