"""A WebDAV server over a folder, read-only, as a handler of `front`: its addresses stand below a path, as they do with
Apache, nginx or Nextcloud.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.storage import front

Hrefs = Callable[[str], str]


@dataclass
class FakeWebDav:
    """Serves the files of ``folder`` below the path ``base``.

    Attributes:
        href: how it spells an address in a listing, of its percent-encoded path.
        ranges: whether it knows them.
        prefix: of the names in its XML.
    """

    folder: Path
    base: str = "/dav/files"
    href: Hrefs = str
    ranges: bool = True
    prefix: str = "D:"

    def __call__(self, request: front.Request) -> front.Answer:
        path = unquote(urlsplit(request.target).path)
        if not path.startswith(self.base):
            return front.Answer(404)
        place = self.folder / path.removeprefix(self.base).strip("/")
        if not place.exists():
            return front.Answer(404)
        if request.method == "PROPFIND":
            return front.Answer(207, (("Content-Type", "application/xml"),), self.listed(place).encode())
        if place.is_dir() and not path.endswith("/"):
            return front.Answer(301, (("Location", quote(f"{path}/")),))
        return self.given(request, place) if request.method in ("GET", "HEAD") else front.Answer(405)

    def given(self, request: front.Request, place: Path) -> front.Answer:
        data = place.read_bytes()
        said = (("Last-Modified", formatdate(place.stat().st_mtime, usegmt=True)), ("ETag", f'"{place.stat().st_ino}"'))
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.header("range"))
        if asked is None or not self.ranges:
            return front.Answer(200, said, data, length=str(len(data)))
        first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
        if first >= len(data):
            return front.Answer(416)
        return front.Answer(
            206, (*said, ("Content-Range", f"bytes {first}-{last}/{len(data)}")), data[first : last + 1]
        )

    def listed(self, place: Path) -> str:
        inside = sorted(place.iterdir()) if place.is_dir() else []
        found = "".join(self.response(each) for each in [place, *inside])
        space = f' xmlns:{self.prefix[:-1]}="DAV:"' if self.prefix else ' xmlns="DAV:"'
        return '<?xml version="1.0" encoding="utf-8"?>\n' + self.tag("multistatus", found, space)

    def response(self, place: Path) -> str:
        relative = place.relative_to(self.folder).as_posix()
        path = f"{self.base}/{'' if relative == '.' else relative}".rstrip("/") + ("/" if place.is_dir() else "")
        seen = place.stat()
        known = self.tag("getlastmodified", formatdate(seen.st_mtime, usegmt=True))
        known += self.tag("resourcetype", self.tag("collection", "") if place.is_dir() else "")
        if not place.is_dir():
            known += self.tag("getcontentlength", str(seen.st_size)) + self.tag("getetag", f'"{seen.st_ino}"')
        good = self.tag("propstat", self.tag("prop", known) + self.tag("status", "HTTP/1.1 200 OK"))
        lacking = self.tag("prop", self.tag("getcontentlength" if place.is_dir() else "displayname", ""))
        bad = self.tag("propstat", lacking + self.tag("status", "HTTP/1.1 404 Not Found"))
        return self.tag("response", self.tag("href", escape(self.href(quote(path)))) + good + bad)

    def tag(self, name: str, inside: str, more: str = "") -> str:
        return f"<{self.prefix}{name}{more}>{inside}</{self.prefix}{name}>"
