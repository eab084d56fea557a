"""Paths of data files as the log writes them: URL-encoded, relative to the table's root, or absolute URIs.

PROTOCOL.md, section "Add File and Remove File". Guarantee: a relative path never leaves the table's folder.
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
        ValueError: the path would leave the table's folder.
    """
    name = unquote(path)
    if ".." in name.split("/") or name.startswith("/"):
        raise ValueError(f"the path {path!r} leaves the table's folder")
    return name


def encode(name: str) -> str:
    """A store name as the log writes it."""
    return quote(name, safe=_LEGAL)


def store_name(root: str, path: str) -> str | None:
    """The store name of a path of the log, or None where the file lies outside the table's folder.

    Raises:
        ValueError: a relative path that leaves the table's folder.
    """
    if not is_absolute(path):
        return decode(path)
    inside = _plain(root) + "/"
    plain = _plain(path)
    return decode(plain[len(inside) :]) if plain.startswith(inside) else None


def _plain(url: str) -> str:
    """One spelling for ``/x``, ``file:/x`` and ``file:///x``."""
    return re.sub(r"^file:/+", "/", url).rstrip("/")
