"""Spellings of one file: the log's, the reader's, and the one that Spark shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from anabranch._spark.reading.paths import log_prefix, metadata_file_path, places, spark_root
from anabranch._spark.reading.raw_rows import open_files
from anabranch._spark.reading.scan import scan
from anabranch.errors import CorruptLog, FileOutsideTable, MissingDataFile, UnknownStore
from tests.spark.tables import log_path, numbered
from tests.support.tiers import few_of


class Conf:
    """A session that has only settings."""

    def __init__(self, **settings: str) -> None:
        self._settings = {name.replace("__", "."): value for name, value in settings.items()}

    @property
    def conf(self) -> Any:
        return self

    def get(self, name: str, default: str | None = None) -> str | None:
        return self._settings.get(name, default)


def session(**settings: str) -> SparkSession:
    return cast(SparkSession, Conf(**settings))


PLAIN = session()


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        ("file:///data/a.parquet", "file:/data/a.parquet"),
        ("file:/data//x/a.parquet", "file:/data/x/a.parquet"),
        ("s3a://bucket/t/a b.parquet", "s3a://bucket/t/a%20b.parquet"),
        ('file:///50% #?[]{}|^\\"<>`', "file:/50%25%20%23%3F%5B%5D%7B%7D%7C%5E%5C%22%3C%3E%60"),
        ("file:///é漢\u00a0\u2028\u0085", "file:/é漢%C2%A0%E2%80%A8%C2%85"),
        ("file:///+=*&,;!'()@$~", "file:/+=*&,;!'()@$~"),
    ],
)
def test_spark_shows_a_path_as_java_quotes_it(reader: str, expected: str) -> None:
    assert metadata_file_path(reader) == expected


@pytest.mark.parametrize(
    ("path", "reader"),
    [
        ("a.parquet", "file:///data/t/a.parquet"),
        ("p=a%2520b/a%20b.parquet", "file:///data/t/p=a%20b/a b.parquet"),
        ("file:///other/a%20b.parquet", "file:///other/a b.parquet"),
        ("file:/other/a.parquet", "file:///other/a.parquet"),
        ("/other/a.parquet", "file:///other/a.parquet"),
        ("s3://bucket/a%23.parquet", "s3a://bucket/a#.parquet"),
    ],
)
def test_a_path_of_the_log_is_decoded_and_placed_under_the_root(path: str, reader: str) -> None:
    (place,) = places(PLAIN, "file:///data/t", [path], ["s3://bucket"])
    assert place.reader == reader


def test_a_root_is_taken_literally() -> None:
    (place,) = places(PLAIN, "file:///data/50%20 off", ["a.parquet"])
    assert (place.reader, place.shown) == ("file:///data/50%20 off/a.parquet", "file:/data/50%2520%20off/a.parquet")


def test_s3_is_read_as_s3a_unless_the_session_maps_s3_itself() -> None:
    assert spark_root(PLAIN, "s3://bucket/t") == "s3a://bucket/t"
    assert spark_root(session(spark__hadoop__fs__s3__impl="com.example.Fs"), "s3://bucket/t") == "s3://bucket/t"
    assert spark_root(PLAIN, "gs://bucket/t") == "gs://bucket/t"


@pytest.mark.parametrize("root", ["memory://m/t", "az://container/t", "https://host/t"])
def test_a_store_that_spark_cannot_reach_is_refused(root: str) -> None:
    with pytest.raises(UnknownStore) as caught:
        spark_root(PLAIN, root)
    assert caught.value.facts["location"] == root


def test_two_spellings_of_one_file_are_refused() -> None:
    with pytest.raises(CorruptLog) as caught:
        places(PLAIN, "file:///t", ["a%20b.parquet", "a b.parquet"])
    assert "a%20b.parquet" in str(caught.value)


@pytest.mark.parametrize("path", ["http://h/a.parquet", "hdfs://h/a.parquet", "s3://b/a.parquet", "file://h/a.parquet"])
def test_a_file_on_another_store_is_refused(path: str) -> None:
    with pytest.raises(FileOutsideTable):
        places(PLAIN, "file:///t", [path])


def test_a_path_that_leaves_the_table_is_refused() -> None:
    with pytest.raises(CorruptLog):
        places(PLAIN, "file:///t", ["../other/a.parquet"])


@pytest.mark.parametrize(
    "name",
    ["_a.parquet", "p=1/.a.parquet", "a._COPYING_", "_spark_metadata/a.parquet", "p=1/_spark_metadata/0/a.parquet"],
)
def test_a_file_that_spark_would_silently_leave_out_is_refused(name: str) -> None:
    with pytest.raises(MissingDataFile):
        places(PLAIN, "file:///t", [name])


def test_a_table_below_the_log_of_a_streams_sink_is_refused() -> None:
    with pytest.raises(MissingDataFile):
        places(PLAIN, "s3://bucket/_spark_metadata/t", ["a.parquet"])
    assert places(PLAIN, "s3://bucket/of_spark_metadata/t", ["_spark_metadata.parquet/a.parquet"])


def test_a_name_with_a_colon_is_refused_on_a_disk_alone() -> None:
    """Hadoop's checksums make a relative path of the name there."""
    with pytest.raises(MissingDataFile):
        places(PLAIN, "file:///t", ["p=1/a%3Ab.parquet"])
    assert places(PLAIN, "s3://bucket/t", ["a%3Ab.parquet"])
    assert places(PLAIN, "file:///t", ["p=1:2/a.parquet"])


TREATED_APART = ["_temporary", "_SUCCESS", "_metadata", "_common_metadata", "_committed_1", "_started_1", "a._COPYING_"]
TREATED_APART += ["_delta_log", "_change_data", "_spark_metadata", ".hidden", ".snapshot", ".crc", "part.crc", "a.tmp"]
TREATED_APART += ["a:b", "_x=1", "~"]


@pytest.mark.spark
def test_no_other_name_makes_spark_leave_a_file_out(spark: SparkSession, tmp_path: Path) -> None:
    """Every name that Spark's file index and Hadoop are known to treat apart is read, or it is refused."""
    names = [f"{word}/x.parquet" for word in TREATED_APART] + [f"d/{word}" for word in TREATED_APART]
    for at, name in enumerate(few_of(names, 12)):
        files = numbered(tmp_path / f"t{at}", {name: 2, "other.parquet": 2})
        try:
            found = scan(spark, files).count()
        except MissingDataFile:
            continue
        assert found == 4, name


def test_the_prefix_is_known_only_where_log_and_spark_spell_names_alike() -> None:
    assert log_prefix(places(PLAIN, "file:///t", ["a.parquet", "p=1/b.parquet"])) == "file:/t/"
    assert log_prefix(places(PLAIN, "file:///t", ["a.parquet", "b%20c.parquet"])) == "file:/t/"
    assert log_prefix(places(PLAIN, "file:///t", ["a.parquet", "b%5Bc%C3%A9.parquet"])) is None
    assert log_prefix(places(PLAIN, "file:///t", ["a.parquet", "file:///u/b.parquet"])) is None


NASTY = [f"x{c}y.parquet" for c in " %#?+=[]*{}|^\\\"'<>`&,;!()@$~\t\n\r\x01\x7f\x85\u00a0\u2028é漢😀ﬁ"]
NASTY += ["e\u0301.parquet", "%20.parquet", "a%2Fb.parquet", "d ir/p=1 %/z[0-9].parquet", "++.parquet", "x=_y.parquet"]


@pytest.mark.spark
def test_files_with_any_name_are_read_hidden_and_addressed_under_that_name(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "ro ot[1]%20é"
    files = numbered(root, dict.fromkeys(NASTY, 2), {log_path(name): [0] for name in NASTY[::2]})
    found = scan(spark, files, address=True).collect()
    expected = set()
    for i, name in enumerate(NASTY):
        expected |= {(2 * i + row, log_path(name), row) for row in ((1,) if i % 2 == 0 else (0, 1))}
    assert {(row["id"], row[-2], row[-1]) for row in found} == expected
    assert len(found) == len(expected)


@pytest.mark.spark
def test_spark_itself_spells_every_path_as_we_expect(spark: SparkSession, tmp_path: Path) -> None:
    opened = open_files(spark, numbered(tmp_path, dict.fromkeys(NASTY, 1)))
    seen = {row[0] for row in opened.rows.select(opened.file).collect()}
    assert seen == {place.shown for place in opened.places}
