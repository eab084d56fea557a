"""What a WebDAV server says that a folder holds: RFC 4918, the body of a 207 answer to PROPFIND.

Pure. Guarantees: no entity is expanded and nothing is fetched; an address that is not below the folder that was asked
for is an error, never left out, since a folder that seems empty would pass for one without a table.
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
_MEANS_NO_NAME = ("", ".", "..")
_DEEPEST = 50


class Listed(NamedTuple):
    """One file or folder; ``name`` is relative to the folder that was asked for, and empty for that itself."""

    name: str
    is_folder: bool
    size: int
    modified_ms: int
    etag: str | None


def parse_listing(body: bytes, asked: str) -> list[Listed]:
    """The files and folders in an answer.

    Args:
        asked: the URL of the folder.

    Raises:
        ValueError: it is no such answer, or leaves open what is there.
    """
    reading = _Reading()
    parser = XMLParser(target=reading)
    try:
        parser.feed(body)
        parser.close()
    except (ParseError, LookupError, UnicodeError):
        raise ValueError("it is no XML") from None
    if not reading.is_answer:
        raise ValueError("it lists nothing")
    base = _parts(urlsplit(asked).path)
    return [_parse_entry(fields, asked, base) for fields in reading.found]


def parse_date_ms(date: str | None) -> int:
    """A date of HTTP in milliseconds since 1970; 0 where it is none."""
    try:
        return int(parsedate_to_datetime(date or "").timestamp()) * 1000
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0


def whole_number(text: str | None) -> int:
    """A size. Raises ValueError: it is none."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) < _DIGITS):
        raise ValueError("it does not say a size")
    return int(text)


def plain_etag(text: str | None) -> str | None:
    """An etag as each call spells it."""
    return text.strip().strip('"') or None if text else None


def _parse_entry(fields: dict[str, str], asked: str, base: list[str]) -> Listed:
    if "status" in fields and not _is_good(fields["status"]):
        raise ValueError("it does not say all that is there")
    try:
        parts = _parts(urlsplit(urljoin(asked, fields.get("href", ""))).path)
    except ValueError:
        raise ValueError("it lists what is no address") from None
    inside = parts[len(base) :]
    if (
        "href" not in fields
        or parts[: len(base)] != base
        or any(each in _MEANS_NO_NAME or "/" in each for each in inside)
    ):
        raise ValueError("it lists addresses that are not in the folder")
    is_folder = "collection" in fields
    if not inside and not is_folder:
        raise ValueError("it is that of no folder")
    size = 0 if is_folder else whole_number(fields.get("getcontentlength"))
    changed, etag = parse_date_ms(fields.get("getlastmodified")), plain_etag(fields.get("getetag"))
    return Listed("/".join(inside), is_folder, size, changed, etag)


def _parts(path: str) -> list[str]:
    """The decoded parts of a path; none is left out but those at its ends."""
    return [unquote(part, errors="strict") for part in path.strip("/").split("/")] if path.strip("/") else []


def _is_good(status: str) -> bool:
    return status.split()[1:2] == ["200"]


class _Reading:
    """A target of `XMLParser`: the fields of each response, of those properties that the server could tell."""

    def __init__(self) -> None:
        self.found: list[dict[str, str]] = []
        self.is_answer = False
        self._depth = 0
        self._text: list[str] = []
        self._said: dict[str, str] | None = None

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        """An answer has none: it could declare entities."""
        raise ValueError("it declares a type")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """A tag opens."""
        self._text, self._depth = [], self._depth + 1
        if self._depth > _DEEPEST:
            raise ValueError("it nests too deep")
        if tag == f"{_DAV}multistatus":
            self.is_answer = True
        elif tag == f"{_DAV}response":
            self.found.append({})
        elif tag == f"{_DAV}propstat":
            self._said = {}
        elif tag == f"{_DAV}collection" and self._said is not None:
            self._said["collection"] = ""

    def data(self, text: str) -> None:
        """A part of a text."""
        self._text.append(text)

    def end(self, tag: str) -> None:
        """A tag closes."""
        self._depth -= 1
        name = tag.removeprefix(_DAV)
        if not self.found or tag == name:
            return
        if name in _TEXTS:
            fields = self.found[-1] if self._said is None else self._said
            fields[name] = "".join(self._text).strip()
        elif name == "propstat" and self._said is not None:
            if _is_good(self._said.pop("status", "")):
                self.found[-1].update(self._said)
            self._said = None

    def close(self) -> Iterator[None]:
        """The end."""
        return iter(())
