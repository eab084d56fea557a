"""Paths of data files in the log: URL-encoded, relative to the table's root, or absolute URIs.

PROTOCOL.md, section "Add File and Remove File". Pure; `anabranch._log.file_locations` finds the store. Guarantee: no
name from here leaves the table's folder, and a path inside it is never taken for one outside, however it is spelled.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote, unquote

from anabranch.errors.secrets import without_user

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/|^/")
_LEGAL = "/_-.~!$&'()*+,;=:@"
_JAVA_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*,;:$&+=@/")
_JAVA_QUOTED_CATEGORIES = frozenset({"Zs", "Zl", "Zp", "Cc"})


def is_absolute(path: str) -> bool:
    """Whether a path of the log is a URI or an absolute path, as in a shallow clone."""
    return bool(_SCHEME.match(path))


def decode(path: str) -> str:
    """The store name of a relative path of the log. Raises ValueError: the path would leave the table's folder, or
    names no file in it.
    """
    return _inside(unquote(path))


def _inside(name: str) -> str:
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"the path {name!r} leaves the table's folder, or names nothing in it")
    return name


def is_text(name: str) -> bool:
    """Whether the log can contain this file name: on a disk it may have bytes that are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def encode(name: str) -> str:
    """A store name as the log writes it; it is never taken for a URI, as a folder ``s3:`` would be."""
    first, slash, rest = quote(name, safe=_LEGAL).partition("/")
    return first.replace(":", "%3A") + slash + rest


def quote_as_java(path: str) -> str:
    """A path quoted like ``java.net.URI``; non-ASCII characters stay, except spaces and control characters."""
    return path if _JAVA_LEGAL.issuperset(path) else "".join(map(_java_quoted_char, path))


def _java_quoted_char(char: str) -> str:
    if char in _JAVA_LEGAL or (ord(char) > 0x7F and unicodedata.category(char) not in _JAVA_QUOTED_CATEGORIES):
        return char
    return "".join(f"%{byte:02X}" for byte in char.encode())


def store_name(root: str, path: str) -> str | None:
    """The store name of a path of the log; None if the file is outside the table's folder. ``root`` is the store's URL,
    not percent-encoded. Raises ValueError: the path leaves the table's folder, or goes up and down on its way.
    """
    if not is_absolute(path):
        return decode(path)
    inside, whole = plain(root) + "/", plain(unquote(path))
    if "\0" in whole or any(part in (".", "..") for part in whole.split("/")):
        raise ValueError(f"the path {path!r} leaves the table's folder, or goes up and down on its way")
    return _inside(whole[len(inside) :]) if whole.startswith(inside) else None


def absolute(root: str, path: str) -> str:
    """A path of the log as an absolute URI, by which another table may refer to the file; an absolute one stays.

    It is spelled exactly as Spark shows the file, because delta-spark compares the two when it marks rows.

    Args:
        root: the store's URL, not percent-encoded.

    Raises:
        ValueError: a path that leaves the table's folder.

    Example:
        >>> absolute("file:///data/my é", "part%201.parquet")
        'file:/data/my%20é/part%201.parquet'
    """
    if is_absolute(path):
        return path
    scheme, separator, rest = root.partition("://")
    return f"{scheme}{':' if scheme == 'file' else separator}{quote_as_java(f'{rest}/{decode(path)}')}"


def split_absolute(path: str) -> tuple[str, str]:
    """Folder and name of an absolute path of the log, both decoded.

    Example:
        >>> outside("file:/data/my%20table/part.parquet")
        ('file:/data/my table', 'part.parquet')
    """
    folder, _, name = unquote(path).rpartition("/")
    return folder or "/", name


def lies_in(url: str, folder: str) -> bool:
    """Whether a location is a folder or below it, by their plain spellings."""
    return f"{plain(url)}/".startswith(f"{plain(folder)}/")


_SPELLINGS = (
    (r"^file:(//localhost(?=/)|//(?=/)|(?=/(?!/)))/+", "/"),
    (r"^s3[an]?://", "s3://"),
    (r"^abfss?://", "abfss://"),
)


def plain(url: str) -> str:
    """Normalise a location to one spelling, for ``/x``, ``file:/x`` and ``file:///x``, and for each kind of bucket."""
    url = without_user(url) if "@" in url else url
    for pattern, spelling in _SPELLINGS:
        url = re.sub(pattern, spelling, url, flags=re.IGNORECASE)
    return (re.sub("/+", "/", url) if url.startswith("/") else url).rstrip("/")
