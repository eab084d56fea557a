"""GENERATE: manifests list exactly the live files, and are refused where a list cannot say what the table holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import anabranch
from anabranch import errors
from anabranch._cli import app
from anabranch._protocol.schema.types import Field, Struct
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.ddl.create import Replace
from anabranch.commands.dml.new_table import NewTable
from anabranch.commands.maintenance.generate import FOLDER
from tests.support.raw_logs import PROTOCOL, add, metadata, put_commit
from tests.support.worlds import World, table_path

ROWS = [{"id": 1, "p": "a b/%="}, {"id": 2, "p": None}, {"id": 3, "p": "c"}]


def files_in(world: World) -> set[str]:
    """The data files that all manifests together list, as they lie on the disk."""
    manifests = Path(world.path, FOLDER).rglob("manifest")
    return {line for each in manifests for line in each.read_text().splitlines()}


def live(world: World) -> set[str]:
    table = world.log.snapshot()
    return {f"file://{world.path}/{Path(found).relative_to(world.path)}" for found in _there(world, table.files)}


def _there(world: World, files: object) -> list[str]:
    from urllib.parse import unquote

    return [f"{world.path}/{unquote(path)}" for path in files["path"].to_pylist()]  # type: ignore[index]


def test_a_table_without_partitions_has_one_manifest_of_its_live_files(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    world.append({"id": 4, "p": "d"})
    done = anabranch.generate(world.path)
    assert (done.version, done.written, done.removed) == (1, (f"{FOLDER}/manifest",), ())
    assert files_in(world) == live(world)
    assert all(Path(line.removeprefix("file://")).exists() for line in files_in(world))


def test_a_partitioned_table_has_one_for_each_partition_in_sparks_folders(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, partition_by=("p",))
    done = anabranch.generate(world.path)
    assert done.written == (
        f"{FOLDER}/p=__HIVE_DEFAULT_PARTITION__/manifest",
        f"{FOLDER}/p=a b%2F%25%3D/manifest",
        f"{FOLDER}/p=c/manifest",
    )
    assert files_in(world) == live(world)


def test_a_folder_behind_a_link_out_of_the_table_is_not_listed(tmp_path: Path) -> None:
    """Where there is no manifest to write, nothing else would find out."""
    world = World(table_path(tmp_path)).create(ROWS, partition_by=("p",))
    world.delete("true")
    (tmp_path / "others").mkdir()
    Path(world.path, FOLDER).symlink_to(tmp_path / "others")
    with pytest.raises(errors.StoreError, match="leads out of the root"):
        anabranch.generate(world.path)


def test_manifests_of_partitions_without_a_file_are_removed(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, partition_by=("p",))
    anabranch.generate(world.path)
    world.delete("p = 'c'")
    done = anabranch.generate(world.path)
    assert done.removed == (f"{FOLDER}/p=c/manifest",)
    assert files_in(world) == live(world)


def test_a_table_that_lost_its_partitions_lost_their_manifests(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS, partition_by=("p",))
    anabranch.generate(world.path)
    Replace(world.path, NewTable(Struct((Field("id", "long"),)))).run()
    done = anabranch.generate(world.path)
    assert (done.written, len(done.removed)) == ((f"{FOLDER}/manifest",), 3)
    assert files_in(world) == set()


def test_what_is_listed_is_no_file_of_the_table(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    anabranch.generate(world.path)
    world.assert_clean()


def test_deletion_vectors_in_live_files_refuse_it_and_nothing_is_written(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    world.delete("id = 1")
    with pytest.raises(errors.ManifestRefused) as refused:
        anabranch.generate(world.path)
    assert refused.value.getCondition() == "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"
    assert not Path(world.path, FOLDER).exists()
    world.overwrite(*ROWS)
    assert anabranch.generate(world.path).version == 2


@pytest.mark.parametrize("path", ["a%0Afile:/etc/x", "p=1%0D/x", "file:/data/a%0Ab/x", "a\nb"])
def test_a_name_that_would_be_two_lines_refuses_it(tmp_path: Path, path: str) -> None:
    put_commit(tmp_path / "t", 0, PROTOCOL, metadata(), add("ok.parquet"), add(path))
    with pytest.raises(errors.ManifestRefused) as refused:
        anabranch.generate(str(tmp_path / "t"))
    assert "contains a line break" in refused.value.reason
    assert not (tmp_path / "t" / FOLDER).exists()


def test_a_file_at_the_top_of_the_disk_has_one_slash(tmp_path: Path) -> None:
    put_commit(tmp_path / "t", 0, PROTOCOL, metadata(), add("file:/x.parquet"))
    anabranch.generate(str(tmp_path / "t"))
    assert (tmp_path / "t" / FOLDER / "manifest").read_text() == "/x.parquet\n"


def test_a_column_mapping_refuses_it(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    SetProperties(world.path, {"delta.columnMapping.mode": "name"}).run()
    with pytest.raises(errors.ManifestRefused) as refused:
        anabranch.generate(world.path)
    assert refused.value.getCondition() == "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"


def test_an_unknown_mode_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    with pytest.raises(errors.InvalidOption, match="Did you mean symlink_format_manifest"):
        anabranch.generate(world.path, "symlink_manifest")
    assert anabranch.generate(world.path, "SYMLINK_FORMAT_MANIFEST").version == 0


def test_the_command_line_does_the_same(tmp_path: Path) -> None:
    world = World(table_path(tmp_path)).create(ROWS)
    assert CliRunner().invoke(app, ["generate", world.path]).output.startswith("1 manifest of version 0")
    assert files_in(world) == live(world)
