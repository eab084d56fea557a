"""Decides which files outside the table's folder a log may refer to.

Knows spellings of locations; opens nothing. A log may come from a stranger, so a path in it is followed only on the
table's own store: the same kind of store, and the same bucket, container or host; for a table on disk, local files. A
shallow clone needs no more. Every other store must be allowed by the user, by its URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from anabranch._protocol.layout.paths import lies_in, plain, store_name
from anabranch.errors import CorruptLog, FileOutsideTable
from anabranch.errors.secrets import is_ambiguous

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>/.*|$)", re.DOTALL)


def locate_file(root: str, path: str, allowed: Iterable[str] = ()) -> tuple[str | None, str]:
    """The folder and name of the file at a path of the log; the folder is None for the table's own.

    Args:
        root: the URL of the table's store, not percent-encoded.
        allowed: URLs of other stores, or of folders there, whose files may be opened.

    Raises:
        CorruptLog: the path names no file, leaves the table's folder by ``..``, or goes up and down on its way.
        FileOutsideTable: the file is on another store, which is not allowed.

    Example:
        >>> locate_file("s3://lake/clone", "s3a://lake/origin/part%201.parquet")
        ('s3://lake/origin', 'part 1.parquet')
    """
    try:
        name = store_name(root, path)
        if name is not None:
            return None, name
        where, _, base = plain(unquote(path)).rpartition("/")
        _check_names_a_file(path, where, base)
    except ValueError as error:
        raise CorruptLog(table=root, file=path, reason=f"{error}.") from None
    if _store_of(where) != _store_of(plain(root)) and not any(lies_in(where, url) for url in allowed):
        scheme, authority = _store_of(where)
        raise FileOutsideTable(table=root, file=path, store=f"{scheme}://{authority or '/'}")
    return where or "/", base


def _check_names_a_file(path: str, where: str, base: str) -> None:
    if is_ambiguous(unquote(path)):
        raise ValueError("the path has a password whose end is ambiguous")
    if not base or path.startswith("//") or unquote(path).endswith("/"):
        raise ValueError(f"the path {path!r} names no file")
    scheme, authority = _store_of(where)
    if scheme != "file" and not authority:
        raise ValueError(f"the path {path!r} names no bucket or host")


def _store_of(where: str) -> tuple[str, str]:
    """Kind of store and bucket, container or host, of a plain location."""
    match = _URL.fullmatch(where)
    if match is None:
        return "file", ""
    return match["scheme"].lower(), match["authority"] or ""
