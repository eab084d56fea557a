"""Nothing is deleted because one file of the log says so, when the commits say otherwise path by path."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

import anabranch
from anabranch._log.log import forget
from anabranch.errors import LiveFilesNotConfirmed
from tests.support.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Five appends, an overwrite, two appends: every commit is there, and no checkpoint."""
    made = World(str(tmp_path / "t"))
    made.create([{"id": 0, "x": 0}])
    for each in range(1, 5):
        made.append({"id": each, "x": each})
    made.overwrite({"id": 6, "x": 6})
    for each in (7, 8):
        made.append({"id": each, "x": each})
    return made


def lines_of(log: Path, version: int) -> list[str]:
    return [line for line in (log / f"{version:020d}.json").read_text().splitlines() if '"commitInfo"' not in line]


@pytest.mark.slow
@pytest.mark.parametrize("has_checksums", [True, False], ids=["with checksum files", "without"])
@pytest.mark.parametrize("dead", [True, False], ids=["a dead file of the same size", "one file left out"])
def test_a_wrong_log_compaction_file_deletes_no_live_file(world: World, has_checksums: bool, dead: bool) -> None:
    log, live = Path(world.path, "_delta_log"), anabranch.files(world.path)["path"].to_pylist()
    if not has_checksums:
        for each in log.glob("*.crc"):
            each.unlink()
    compacted = [*lines_of(log, 6), *lines_of(log, 7)]
    wrong = [next(line for line in lines_of(log, 3) if '"add"' in line)] if dead else []
    name = log / f"{6:020d}.{7:020d}.compacted.json"
    name.write_text("\n".join([*wrong, *compacted[1:]]) + "\n")
    forget()
    with suppress(LiveFilesNotConfirmed):  # where no checksum file tells readers to take another way
        anabranch.vacuum(world.path, 0, check_retention=False)
    assert [each for each in live if not Path(world.path, each).exists()] == []
    name.unlink()
    forget()
    assert sorted(row["id"] for row in world.rows()) == [6, 7, 8]
