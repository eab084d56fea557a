"""Parses a WebDAV server's listing of a folder: RFC 4918, the body of a 207 answer to PROPFIND.

Pure. Guarantees: no entity is expanded and nothing is fetched; an address outside the requested folder is an error,
never left out, since a folder that seems empty would pass for one without a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit
from xml.etree.ElementTree import ParseError, XMLParser

_DAV = "{DAV:}"
_TEXTS = {"href", "status", "getcontentlength", "getlastmodified", "getetag"}
_DIGITS = 19
_NOT_NAMES = ("", ".", "..")
_MAX_DEPTH = 50


class ListingEntry(NamedTuple):
    """One file or folder; ``name`` is relative to the requested folder, and empty for that folder itself."""

    name: str
    is_folder: bool
    size: int
    modified_ms: int
    etag: str | None


def parse_listing(body: bytes, url: str) -> list[ListingEntry]:
    """The files and folders in an answer.

    Args:
        url: the URL of the folder.

    Raises:
        ValueError: it is no such answer, or is incomplete.
    """
    target = _ResponseParser()
    parser = XMLParser(target=target)
    try:
        parser.feed(body)
        parser.close()
    except (ParseError, LookupError, UnicodeError):
        raise ValueError("it is not XML") from None
    if not target.is_answer:
        raise ValueError("it lists nothing")
    base = _parts(urlsplit(url).path)
    return [_parse_entry(fields, url, base) for fields in target.responses]


def parse_date_ms(date: str | None) -> int:
    """A date of HTTP in milliseconds since 1970; 0 where it is malformed."""
    try:
        return int(parsedate_to_datetime(date or "").timestamp()) * 1000
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0


def whole_number(text: str | None) -> int:
    """Parse a size. Raises ValueError: it is malformed."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) < _DIGITS):
        raise ValueError("it states no size")
    return int(text)


def plain_etag(text: str | None) -> str | None:
    """An etag in the form that all calls return."""
    return text.strip().strip('"') or None if text else None


def _parse_entry(fields: dict[str, str], url: str, base: list[str]) -> ListingEntry:
    if "status" in fields and not _is_good(fields["status"]):
        raise ValueError("it does not list everything")
    try:
        parts = _parts(urlsplit(urljoin(url, fields.get("href", ""))).path)
    except ValueError:
        raise ValueError("it lists something that is not an address") from None
    inside = parts[len(base) :]
    if "href" not in fields or parts[: len(base)] != base or any(part in _NOT_NAMES or "/" in part for part in inside):
        raise ValueError("it lists addresses that are not in the folder")
    is_folder = "collection" in fields
    if not inside and not is_folder:
        raise ValueError("it is not the listing of a folder")
    size = 0 if is_folder else whole_number(fields.get("getcontentlength"))
    modified, etag = parse_date_ms(fields.get("getlastmodified")), plain_etag(fields.get("getetag"))
    return ListingEntry("/".join(inside), is_folder, size, modified, etag)


def _parts(path: str) -> list[str]:
    """The decoded parts of a path; only slashes at its ends are dropped."""
    return [unquote(part, errors="strict") for part in path.strip("/").split("/")] if path.strip("/") else []


def _is_good(status: str) -> bool:
    return status.split()[1:2] == ["200"]


class _ResponseParser:
    """A target of `XMLParser`: the fields of each response, of the properties that the server found."""

    def __init__(self) -> None:
        self.responses: list[dict[str, str]] = []
        self.is_answer = False
        self._depth = 0
        self._text: list[str] = []
        self._properties: dict[str, str] | None = None

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        """Refuse a document type: it could declare entities."""
        raise ValueError("it declares a type")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle an opening tag."""
        self._text, self._depth = [], self._depth + 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("it nests too deep")
        if tag == f"{_DAV}multistatus":
            self.is_answer = True
        elif tag == f"{_DAV}response":
            self.responses.append({})
        elif tag == f"{_DAV}propstat":
            self._properties = {}
        elif tag == f"{_DAV}collection" and self._properties is not None:
            self._properties["collection"] = ""

    def data(self, text: str) -> None:
        """Collect a part of a text."""
        self._text.append(text)

    def end(self, tag: str) -> None:
        """Handle a closing tag."""
        self._depth -= 1
        name = tag.removeprefix(_DAV)
        if not self.responses or tag == name:
            return
        if name in _TEXTS:
            fields = self.responses[-1] if self._properties is None else self._properties
            fields[name] = "".join(self._text).strip()
        elif name == "propstat" and self._properties is not None:
            if _is_good(self._properties.pop("status", "")):
                self.responses[-1].update(self._properties)
            self._properties = None

    def close(self) -> Iterator[None]:
        """End the document."""
        return iter(())
