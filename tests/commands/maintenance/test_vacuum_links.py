"""VACUUM of a folder that knows its files by more than one name, or by none, or holds the tables of others."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.commands.maintenance.test_vacuum import all_aged, vacuum
from tests.support.raw_logs import PROTOCOL, metadata, put_commit, put_rows, remove
from tests.support.worlds import World

ROWS = [{"id": 1, "x": 1}]
each_kind = pytest.mark.parametrize("lite", [False, True])


@each_kind
@pytest.mark.parametrize(
    "live", ["linked/a.parquet", "a-link.parquet", "file:ROOT/linked/a.parquet", "file:OTHER/a.parquet"]
)
def test_a_file_that_the_log_knows_by_a_link_is_kept(tmp_path: Path, live: str, lite: bool) -> None:
    """An older version had it by its own name, which was removed."""
    table = tmp_path / "t"
    old = put_rows(table, "data/a.parquet", ROWS)
    (table / "linked").symlink_to("data")
    (table / "a-link.parquet").symlink_to("data/a.parquet")
    (tmp_path / "other").symlink_to(table / "data")
    path = live.replace("ROOT", str(table)).replace("OTHER", str(tmp_path / "other"))
    put_commit(table, 0, PROTOCOL, metadata(), old, put_rows(table, "gone.parquet", ROWS))
    put_commit(table, 1, remove("data/a.parquet"), remove("gone.parquet"), {"add": {**old["add"], "path": path}})
    put_commit(table, 2, put_rows(table, "b.parquet", ROWS))
    all_aged(str(table), 1000)
    before = World(str(table)).rows()
    assert [entry.name for entry in vacuum(str(table), lite=lite).files] == ["gone.parquet"]
    assert World(str(table)).rows() == before


@each_kind
@pytest.mark.parametrize("linked", [False, True])
def test_a_table_inside_keeps_its_files(tmp_path: Path, lite: bool, linked: bool) -> None:
    """Its log may lie elsewhere, behind a link; and a log may say of its files that they are the outer table's."""
    table = tmp_path / "t"
    inner = World(str(table / "sub" / "inner")).create(ROWS)
    log = table / "sub" / "inner" / "_delta_log"
    if linked:
        log.rename(tmp_path / "elsewhere")
        log.symlink_to(tmp_path / "elsewhere")
    (name,) = inner.log.snapshot().files["path"].to_pylist()
    put_commit(table, 0, PROTOCOL, metadata(), put_rows(table, "gone.parquet", ROWS))
    put_commit(table, 1, remove(f"sub/inner/{name}"), remove("gone.parquet"))
    put_commit(table, 2, put_rows(table, "b.parquet", ROWS))
    all_aged(str(table), 1000)
    assert [entry.name for entry in vacuum(str(table), lite=lite).files] == ["gone.parquet"]
    assert inner.rows() == ROWS


@pytest.mark.skipif(sys.platform != "linux", reason="other disks hold no such names")
def test_names_that_are_no_text_are_left_where_they_are(tmp_path: Path) -> None:
    table = tmp_path / "t"
    put_commit(table, 0, PROTOCOL, metadata(), put_rows(table, "gone.parquet", ROWS))
    put_commit(table, 1, remove("gone.parquet"), put_rows(table, "b.parquet", ROWS))
    strange = [os.path.join(os.fsencode(table), name) for name in (b"caf\xe9.parquet", b"d\xff/a.parquet")]
    for path in strange:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(b"")
    all_aged(str(table), 1000)
    assert [entry.name for entry in vacuum(str(table)).files] == ["gone.parquet"]
    assert all(map(os.path.exists, strange))
