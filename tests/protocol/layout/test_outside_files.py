"""Paths that lead out of a table: followed on the table's own store, and on those that are allowed."""

from __future__ import annotations

import pytest

from anabranch._protocol.layout.outside_files import locate_file
from anabranch.errors import CorruptLog, FileOutsideTable


@pytest.mark.parametrize(
    ("root", "path", "folder", "name"),
    [
        ("file:///t", "a%20b.parquet", None, "a b.parquet"),
        ("file:///t", "file:///t/a.parquet", None, "a.parquet"),
        ("file:///t", "/other/a.parquet", "/other", "a.parquet"),
        ("file:///t", "FILE:/other/a.parquet", "/other", "a.parquet"),
        ("file:///t", "file://localhost/other/a.parquet", "/other", "a.parquet"),
        ("file:///t", "file:///a.parquet", "/", "a.parquet"),
        ("s3://lake/clone", "s3a://lake/origin/p=1/a.parquet", "s3://lake/origin/p=1", "a.parquet"),
        ("s3://lake/clone", "S3N://lake/a.parquet", "s3://lake", "a.parquet"),
        ("memory://m/clone", "memory://m/origin/a.parquet", "memory://m/origin", "a.parquet"),
        ("abfss://c@a.host/clone", "abfs://c@a.host/t/a.parquet", "abfss://c@a.host/t", "a.parquet"),
        ("https://host:8/clone", "https://host:8/t/a.parquet", "https://host:8/t", "a.parquet"),
        ("file:///t", "..\\x.parquet", None, "..\\x.parquet"),
        ("file:///t", "%252e%252e/x.parquet", None, "%2e%2e/x.parquet"),
    ],
)
def test_files_of_the_table_s_own_store_are_placed(root: str, path: str, folder: str | None, name: str) -> None:
    assert locate_file(root, path) == (folder, name)


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("file:///t", "http://host/a.parquet"),
        ("file:///t", "https://host/a.parquet"),
        ("file:///t", "file://host/t/a.parquet"),
        ("file:///t", "s3://bucket/a.parquet"),
        ("file:///t", "hdfs://host/a.parquet"),
        ("file:///t", "ftp://host/a.parquet"),
        ("s3://lake/t", "s3://lake2/t/a.parquet"),
        ("s3://lake/t", "s3://Lake/t/a.parquet"),
        ("s3://lake/t", "gs://lake/t/a.parquet"),
        ("s3://lake/t", "file:///etc/a.parquet"),
        ("s3://lake/t", "/etc/a.parquet"),
        ("s3://lake/t", "https://lake.s3.amazonaws.com/t/a.parquet"),
        ("abfss://c@a.host/t", "abfss://c2@a.host/t/a.parquet"),
        ("abfss://c@a.host/t", "abfss://c@evil.host/t/a.parquet"),
        ("https://host/t", "http://host/t/a.parquet"),
        ("https://host/t", "https://host:8/t/a.parquet"),
        ("memory://m/t", "memory://n/t/a.parquet"),
    ],
)
def test_a_file_on_another_store_is_refused_and_followed_where_that_is_allowed(root: str, path: str) -> None:
    with pytest.raises(FileOutsideTable) as told:
        locate_file(root, path)
    assert told.value.table == root
    assert told.value.store.split(":")[0] in str(told.value)
    store = told.value.store
    assert locate_file(root, path, [store])[1] == "a.parquet"
    with pytest.raises(FileOutsideTable):
        locate_file(root, path, [f"{store}/another/folder", "zzz://other"])


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "%2e%2e/x",
        "%2E%2E%2Fx",
        "a//b",
        "",
        "a%00b",
        "a\0b",
        "file:///t/../x",
        "file:///t/%2e%2e/x",
        "file:///other/../t/x",
        "http://host/%2e%2e/x",
        "file:/other/",
        "file:///",
        "/",
        "//host/x.parquet",
        "s3:///x.parquet",
        "s3:/bucket/x.parquet",
        "http:///x.parquet",
        "s3://bucket%00/x.parquet",
        "s3:%2F%2Fbucket/x.parquet",
        "%2Fetc/passwd",
    ],
)
def test_a_path_that_is_none_is_damage_whatever_is_allowed(path: str) -> None:
    with pytest.raises(CorruptLog) as told:
        locate_file("file:///t", path, ["s3://bucket", "http://host", "file:///", "s3://"])
    assert told.value.file == path


def test_a_folder_that_is_allowed_is_one_by_whole_names() -> None:
    assert locate_file("file:///t", "s3://b/shared/x", ["s3a://b/shared/"]) == ("s3://b/shared", "x")
    for path in ("s3://b/shared2/x", "s3://b/x", "s3://b2/shared/x"):
        with pytest.raises(FileOutsideTable):
            locate_file("file:///t", path, ["s3a://b/shared/"])
