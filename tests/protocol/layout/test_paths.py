"""Paths of the log: encoded once, decoded once, and never outside the table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch._protocol.layout.paths import absolute, decode, encode, is_absolute, lies_in, split_absolute, store_name

parts = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=6).filter(
    lambda part: part not in (".", "..")
)
names = st.lists(parts, min_size=1, max_size=4).map("/".join)
folders = st.lists(parts, min_size=1, max_size=3).map(lambda found: "/" + "/".join(found))
roots = folders.map("file://".__add__) | names.map("s3://bucket/".__add__)


@given(names)
def test_a_name_comes_back_from_its_path(name: str) -> None:
    assert decode(encode(name)) == name


@given(names)
def test_a_path_holds_nothing_that_a_uri_may_not_hold(name: str) -> None:
    path = encode(name)
    assert path.isascii()
    assert not set(path) & set(' "<>\\^`{|}#?\n\r\t')


@given(roots, names | names.map("s3:/".__add__))
def test_a_relative_path_is_its_name_under_any_root(root: str, name: str) -> None:
    assert store_name(root, encode(name)) == name


@given(roots, names)
def test_an_absolute_uri_below_the_root_is_its_name(root: str, name: str) -> None:
    """A root is written plainly, a URI of the log is encoded: spaces, percent signs and letters of the root too."""
    scheme, rest = root.split("://", 1)
    assert store_name(root, f"{scheme}://{encode(rest)}/{encode(name)}") == name


@pytest.mark.parametrize(
    "path",
    [
        "/t/a b.parquet",
        "//t//a b.parquet",
        "file:/t/a%20b.parquet",
        "file:///t/a%20b.parquet",
        "FILE://localhost/t/a%20b.parquet",
    ],
)
def test_the_spellings_of_a_local_file_are_one(path: str) -> None:
    assert store_name("file:///t", path) == "a b.parquet"


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("s3://b/t", "s3a://b/t/x"),
        ("s3://b/t", "s3n://b/t/x"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfs://c@a.dfs.core.windows.net/t/x"),
    ],
)
def test_the_spellings_of_one_bucket_are_one(root: str, path: str) -> None:
    assert store_name(root, path) == "x"


@pytest.mark.parametrize("path", ["/other/x", "file:///t2/x", "file:///tx", "s3://t/x", "/t", "file:///t/"])
def test_a_file_elsewhere_has_no_name_in_the_table(path: str) -> None:
    assert store_name("file:///t", path) is None


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../../x",
        "a/..",
        "..",
        "%2e%2e/x",
        "a/%2E%2E/%2e%2e/x",
        "%2Fetc/passwd",
        "a//b",
        "./a",
        "a/.",
        "",
        "a%00b",
        "/t/../x",
        "file:///t/a/../../x",
        "file:///t/%2e%2e/x",
    ],
)
def test_a_path_that_is_no_name_below_the_table_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="leaves the table"):
        store_name("file:///t", path)


@pytest.mark.parametrize(
    ("path", "absolute"),
    [
        ("a.parquet", False),
        ("day=2020-01-01/a.parquet", False),
        ("day=10%3A00/a:b.parquet", False),
        ("a:b.parquet", False),
        ("/a.parquet", True),
        ("s3://b/a.parquet", True),
        ("file:/a.parquet", True),
        ("abfss://c@a/b", True),
    ],
)
def test_uris_are_told_from_relative_paths(path: str, absolute: bool) -> None:
    assert is_absolute(path) is absolute


@given(roots, names)
def test_a_name_as_an_absolute_uri_is_found_again_below_its_root_and_outside_others(root: str, name: str) -> None:
    uri = absolute(root, encode(name))
    assert is_absolute(uri)
    if not is_absolute(encode(name)):
        assert store_name(root, uri) == name
        assert "/".join(split_absolute(uri)) == f"{root}/{name}".replace("file://", "file:", 1)
    assert absolute("s3://elsewhere/t", uri) == uri


def test_a_path_that_would_lead_back_into_the_table_is_no_file_outside() -> None:
    """Taken for one outside, it would be a live file that the table's own VACUUM removes."""
    with pytest.raises(ValueError, match="goes up and down"):
        store_name("file:///t", "file:///other/../t/x")


@pytest.mark.parametrize(
    ("url", "folder", "inside"),
    [
        ("file:///t", "/t/", True),
        ("file:///t/a", "file:/t", True),
        ("file:///tt", "file:///t", False),
        ("s3a://b/t/x", "s3://b/t", True),
        ("s3://b2/t", "s3://b", False),
    ],
)
def test_a_location_lies_in_a_folder_by_whole_names(url: str, folder: str, inside: bool) -> None:
    assert lies_in(url, folder) is inside
