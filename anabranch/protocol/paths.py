"""Paths of data files as the log writes them: URL-encoded, relative to the table's root, or absolute URIs.

PROTOCOL.md, section "Add File and Remove File". Guarantee: a name that comes out of here never leaves the table's
folder.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/|^/")
_LEGAL = "/_-.~!$&'()*+,;=:@"


def is_absolute(path: str) -> bool:
    """Whether a path of the log is a URI or an absolute path, as a shallow clone's are."""
    return bool(_SCHEME.match(path))


def decode(path: str) -> str:
    """The store name of a relative path of the log.

    Raises:
        ValueError: the path would leave the table's folder, or names nothing in it.
    """
    return _inside(unquote(path))


def _inside(name: str) -> str:
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"the path {name!r} leaves the table's folder, or names nothing in it")
    return name


def encode(name: str) -> str:
    """A store name as the log writes it."""
    return quote(name, safe=_LEGAL)


def store_name(root: str, path: str) -> str | None:
    """The store name of a path of the log, or None where the file lies outside the table's folder.

    Args:
        root: the store's URL, which is not percent-encoded.

    Raises:
        ValueError: a path that leaves the table's folder.
    """
    if not is_absolute(path):
        return decode(path)
    inside, plain = _plain(root) + "/", _plain(unquote(path))
    return _inside(plain[len(inside) :]) if plain.startswith(inside) else None


_SPELLINGS = ((r"^file:/+", "/"), (r"^s3[an]://", "s3://"), (r"^abfs://", "abfss://"))


def _plain(url: str) -> str:
    """One spelling for ``/x``, ``file:/x`` and ``file:///x``, and for each kind of bucket."""
    for pattern, spelling in _SPELLINGS:
        url = re.sub(pattern, spelling, url)
    return url.rstrip("/")
