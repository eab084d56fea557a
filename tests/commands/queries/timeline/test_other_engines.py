"""Tables of delta-rs: what it says is shown, and what it does not say is unknown."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from anabranch.commands.opening import open_log
from anabranch.commands.queries.timeline.read import timeline
from tests.commands.queries.timeline.test_totals import totals_of

pytestmark = pytest.mark.interop


def test_a_table_of_delta_rs_has_a_timeline(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for number in range(3):
        deltalake.write_deltalake(path, pa.table({"id": [number, number + 10]}), mode="append")
    deltalake.DeltaTable(path).delete("id = 1")
    deltalake.DeltaTable(path).optimize.compact()
    deltalake.DeltaTable(path).create_checkpoint()
    found = timeline(path)
    assert [each.kind for each in found.entries] == ["append", "append", "append", "change", "move"]
    assert [each.said.operation for each in found.entries][-2:] == ["DELETE", "OPTIMIZE"]
    assert [each.said.rebased_over for each in found.entries] == [None] * 5
    assert found.entries[-1].is_checkpoint
    log = open_log(path)
    for each in found.entries:
        assert each.totals == totals_of(log.snapshot(each.version), found.small_below)
