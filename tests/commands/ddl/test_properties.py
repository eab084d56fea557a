"""Table properties that change what a writer does, as the files and the log show it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import anabranch
from anabranch._protocol.actions import Protocol
from anabranch._protocol.compression import CODEC_PROPERTY
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import RunContext
from anabranch.commands.ddl.alter import SetProperties
from anabranch.commands.dml.append import Append
from anabranch.commands.idempotence import application
from anabranch.errors import InvalidProperty
from anabranch.errors.process_state import forget
from tests.support.worlds import World, table_path

ROWS = [{"id": 1, "day": "a"}, {"id": 2, "day": "b"}]


def made(tmp_path: Path, rows: list[dict[str, Any]] = ROWS, **properties: str) -> World:
    return World(table_path(tmp_path)).create(rows, partition_by=("day",), **properties)


def paths(world: World) -> list[str]:
    return world.log.snapshot().files["path"].to_pylist()


@pytest.mark.parametrize(
    ("codec", "written"), [("zstd", "ZSTD"), ("gzip", "GZIP"), ("lz4", "LZ4"), ("none", "UNCOMPRESSED")]
)
def test_data_files_are_compressed_as_the_table_says(tmp_path: Path, codec: str, written: str) -> None:
    world = made(tmp_path, **{"delta_parquet.compression.codec": codec})
    for path in paths(world):
        assert pq.read_metadata(f"{world.path}/{path}").row_group(0).column(0).compression == written
    assert len(world.rows()) == 2
    world.assert_clean()


@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize(("codec", "written"), [("ZSTD", "ZSTD"), ("lz4_raw", "LZ4"), ("none", "UNCOMPRESSED")])
def test_change_data_and_checkpoints_are_compressed_as_the_table_says(
    tmp_path: Path, codec: str, written: str, policy: str
) -> None:
    properties = {
        "delta_checkpointPolicy": policy,
        "delta_checkpointInterval": "1",
        "delta_enableChangeDataFeed": "true",
    }
    world = made(tmp_path, **properties, **{"delta_parquet.compression.codec": codec})
    anabranch.table(world.path).update("id = 1", {"day": "'b'"})
    feed = [*Path(world.path, "_change_data").rglob("*.parquet")]
    checkpoints = [*Path(world.path, "_delta_log").rglob("*.checkpoint*.parquet")]
    assert feed
    assert checkpoints
    assert {_compression(file) for file in feed + checkpoints} == {written}
    forget()
    assert {row["day"] for row in world.rows()} == {"b"}
    world.assert_clean()


def _compression(file: Path) -> str:
    return str(pq.read_metadata(file).row_group(0).column(0).compression)


def test_a_table_whose_codec_another_engine_invented_is_read_and_not_written(tmp_path: Path) -> None:
    world = made(tmp_path)
    log = Path(world.path, "_delta_log", f"{0:020d}.json")
    log.write_text(log.read_text().replace('"configuration":{', f'"configuration":{{"{CODEC_PROPERTY}":"lzo",'))
    log.with_suffix(".crc").unlink(missing_ok=True)
    forget()
    assert world.rows() == ROWS
    with pytest.raises(InvalidProperty, match="it takes gzip, lz4"):
        world.append({"id": 3, "day": "c"})
    with pytest.raises(InvalidProperty, match="it takes gzip, lz4"):
        anabranch.table(world.path).update("id = 1", {"day": "'b'"})
    SetProperties(world.path, {CODEC_PROPERTY: "zstd"}).run()
    world.append({"id": 3, "day": "c"})
    assert len(world.rows()) == 3
    world.assert_clean()


def test_files_lie_below_random_folders_where_the_table_says_so(tmp_path: Path) -> None:
    world = made(tmp_path, delta_randomizeFilePrefixes="true", delta_randomPrefixLength="7")
    assert all(re.match(r"[0-9a-f]{7}/part-", path) for path in paths(world))
    world.delete("day = 'a'")
    assert world.rows() == [ROWS[1]]
    world.assert_clean()


def test_old_words_of_applications_are_forgotten_after_the_time_that_the_table_says(tmp_path: Path) -> None:
    world = made(tmp_path, **{"delta_setTransactionRetentionDuration": "interval 1 hour"})
    txn = application("stream", 5)
    Append(world.path, ROWS, txn=txn).run(context=RunContext(runtime=Runtime(now_ms=lambda: 1_000_000_000_000)))
    again = Append(world.path, ROWS, txn=txn)
    again.run(context=RunContext(runtime=Runtime(now_ms=lambda: 1_000_000_000_000 + 3_599_000)))
    assert len(world.rows()) == 4
    again.run(context=RunContext(runtime=Runtime(now_ms=lambda: 1_000_000_000_000 + 3_600_000)))
    assert len(world.rows()) == 6


def test_a_table_is_born_with_the_protocol_that_its_properties_ask_for(tmp_path: Path) -> None:
    world = made(tmp_path, delta_minReaderVersion="1", delta_minWriterVersion="4", team="harbour")
    snapshot = world.log.snapshot()
    assert snapshot.protocol == Protocol(1, 4)
    assert snapshot.metadata.configuration == {"team": "harbour"}, "vectors need a newer protocol"
    world.delete("id = 1")
    world.assert_clean()

    listed = made(tmp_path, **{"delta_feature.domainMetadata": "supported"}).log.snapshot()
    assert "domainMetadata" in (listed.protocol.writer_features or ())
    assert listed.properties.vectors


def test_properties_raise_the_protocol_of_a_table(tmp_path: Path) -> None:
    world = made(tmp_path, delta_enableDeletionVectors="false")
    assert SetProperties(world.path, {"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"}).run()
    assert world.log.snapshot().protocol == Protocol(1, 4)
    assert world.log.snapshot().metadata.configuration == {"delta.enableDeletionVectors": "false"}
    assert SetProperties(world.path, {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"}).run() is None


def test_a_table_is_not_born_with_a_property_that_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProperty, match="metadata of other formats"):
        anabranch.append(tmp_path / "t", ROWS, properties={"delta.universalFormat.enabledFormats": "iceberg"})
    assert not (tmp_path / "t").exists()
