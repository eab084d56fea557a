"""Translates a data file's path between the log, Spark's reader and Spark's ``_metadata.file_path``.

Knows PROTOCOL.md, section "Add File and Remove File" (paths are URL-encoded), Hadoop's schemes and the quoting of
Java's URIs. Knows nothing of rows. Guarantee: two files of one file set never have the same path; a file that Spark
would silently leave out, or could not open, is refused.

::

    log      part%20a.parquet            relative to the root, or an absolute URI; URL-encoded
    reader   file:///data/t/part a.parquet     plain
    shown    file:/data/t/part%20a.parquet     quoted as java.net.URI does
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from anabranch._protocol.layout.outside_files import locate_file
from anabranch._protocol.layout.paths import quote_as_java
from anabranch.errors import CorruptLog, MissingDataFile, UnknownStore

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(/.*|$)", re.DOTALL)
_WILD = re.compile(r"([\\{}\[\]*?])")
_OF_A_SINK = "/_spark_metadata/"
_UNREACHABLE = {
    "memory": "it lives in this Python process, where Spark cannot see it.",
    "az": "Spark needs the account too: abfss://container@account.dfs.core.windows.net/path.",
    "http": "Spark cannot read or write there.",
    "https": "Spark cannot read or write there.",
}


@dataclass(frozen=True)
class Place:
    """The path of one data file in its three forms."""

    log: str
    reader: str
    shown: str


def spark_root(spark: SparkSession, root: str) -> str:
    """The URL of a table's root for Spark; ``s3://`` becomes ``s3a://`` unless the session maps ``s3`` itself. Raises
    UnknownStore if Spark cannot reach the store.
    """
    scheme, _, rest = root.partition(":")
    if root.startswith("/"):
        return f"file://{root}"
    if scheme in _UNREACHABLE:
        raise UnknownStore(location=root, reason=_UNREACHABLE[scheme])
    without_s3 = scheme == "s3" and spark.conf.get("spark.hadoop.fs.s3.impl", None) is None
    return f"s3a:{rest}" if without_s3 else root


def places(spark: SparkSession, root: str, paths: Iterable[str], allowed: Sequence[str] = ()) -> list[Place]:
    """The places of files, in the order of their log paths; ``allowed`` names other stores on which files may lie.

    Raises:
        CorruptLog: two paths refer to the same file, or one leaves the table's folder.
        FileOutsideTable: a file lies on a store that is neither the table's own nor allowed.
        MissingDataFile: Spark would leave a file out silently, or could not open it.
    """
    base = spark_root(spark, root)
    file_places = [_place(spark, root, base, path, allowed) for path in paths]
    seen: dict[str, str] = {}
    for place in file_places:
        if place.shown in seen:
            raise CorruptLog(table=root, file=place.log, reason=f"it is the same file as {seen[place.shown]}.")
        seen[place.shown] = place.log
    return file_places


def log_prefix(file_places: Iterable[Place]) -> str | None:
    """The prefix that turns a path in the log into the shown one, if it is the same for all files; otherwise None.

    It usually is: relative paths without characters that Java and the log quote differently.
    """
    prefixes = {place.shown[: -len(place.log)] if place.shown.endswith(place.log) else None for place in file_places}
    return prefixes.pop() if len(prefixes) == 1 else None


def literal(reader: str) -> str:
    r"""A path with its wildcards escaped, for the reader to take literally.

    The reader's option ``__globPaths__`` does not help: if one of several paths has a wildcard, it applies to all of
    them.

    Example:
        >>> literal("file:///data/a[1].parquet")
        'file:///data/a\\[1\\].parquet'
    """
    return _WILD.sub(r"\\\1", reader)


def on_disk(reader: str) -> str | None:
    """The path in a ``file:`` URL; None for other URLs."""
    return reader.removeprefix("file://") if reader.startswith("file:///") else None


def metadata_file_path(reader: str) -> str:
    """The ``_metadata.file_path`` of a file that was passed to the reader with this path.

    Example:
        >>> metadata_file_path("file:///data/50% of é.parquet")
        'file:/data/50%25%20of%20é.parquet'
    """
    scheme, authority, path = _parts(reader)
    host = f"//{authority}" if authority else ""
    return f"{scheme}:{host}{quote_as_java(re.sub('/+', '/', path))}"


def _place(spark: SparkSession, root: str, base: str, path: str, allowed: Sequence[str]) -> Place:
    folder, inside = locate_file(root, path, allowed)
    reader = f"{base if folder is None else spark_root(spark, folder)}/{inside}"
    if (reason := _unread(reader)) is not None:
        raise MissingDataFile(table=root, file=path, reason=reason)
    return Place(path, reader, metadata_file_path(reader))


def _unread(reader: str) -> str | None:
    """Why Spark would not read such a file, even when requested individually; None if it would."""
    name = posixpath.basename(reader)
    if (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_"):
        return "Spark leaves out, because it takes such names for hidden files"
    if _OF_A_SINK in reader:
        return f"Spark leaves out, because it takes files below {_OF_A_SINK} for the log of a stream"
    if ":" in name and on_disk(reader):
        return "Spark cannot open, because its name has a colon"
    return None


def _parts(url: str) -> tuple[str, str, str]:
    match = _URL.fullmatch(url)
    assert match is not None, f"{url} is not a URL"
    return match[1], match[2] or "", match[3]
