"""The store over a folder of a web server, by HTTP and, for listings, WebDAV; it is read-only.

Knows names, addresses and what a server's answers mean. HTTP has no put-if-absent that servers keep, so nothing is ever
written. Guarantees: requests go to the server of the location alone, since its query may be a signature; no redirect is
followed, and no error repeats the query or what a server says.
"""

from __future__ import annotations

import contextlib
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from anabranch._storage.contract import Entry, check_folder, check_name
from anabranch._storage.name_node import Unanswered, reason, retry
from anabranch._storage.web_client import Answer, WebClient, proxy_by_environment
from anabranch._storage.webdav import Listed, parse_date_ms, parse_listing, plain_etag, whole_number
from anabranch.errors import NotFound, StoreError, StorePermissionDenied, UnknownStore
from anabranch.errors.process_state import memo

Options = tuple[tuple[str, Any], ...]

_IN_A_PATH = "/%:@!$&'()*+,;=~"
"""What stays as it is in a location's path, which may be percent-encoded already."""
_PAUSES_S = (0.1, 0.4, 1.6)
_MAY_PASS = {408, 429, 500, 502, 503, 504}
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.IGNORECASE)
_REDIRECTS = {301, 302, 303, 307, 308}
_GONE, _DENIED, _BEYOND = {404, 410}, {401, 403}, 416
_LARGEST_BYTES, _LISTED_BYTES, _TOLD_BYTES = 4 << 30, 256 << 20, 1 << 20
"""The most bytes of a file that is read as a whole, of a listing, and of any other answer."""
_DEEPEST = 1000
_TIMEOUT_S, _CONNECT_S = 60.0, 10.0
_FOLLOWED = {"timeout", "connect_timeout", "user_agent", "proxy_url", "root_certificate", "allow_invalid_certificates"}
_NOT_FOLLOWED = {"proxy_ca_certificate", "proxy_excludes"}
_TRUE = {"true", "1", "yes", "on", "y"}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?)?")
_SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1}
_SECONDS |= {"m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600}


@dataclass(frozen=True)
class WebStore:
    """A ``Store`` over a folder.

    Attributes:
        url: the root's URL, without its query.
        query: goes with each request.
        options: of its client, as `open_web` has them.
        allowed: other stores whose files a log in this one may name; the store itself does not use it.
    """

    url: str
    query: str = field(default="", repr=False, compare=False)
    options: Options = field(default=(), repr=False, compare=False)
    allowed: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """See ``Store.get``."""
        with self._translate_errors(name):
            answer = self._ask("GET", check_name(name, self.url), {200}, _LARGEST_BYTES)
            if not answer.says_its_end:
                raise ValueError("it does not say where the file ends")
        said = plain_etag(answer.headers.get("etag"))
        if etag not in (None, said) and self._existing(name).etag != etag:
            raise NotFound(name=name, root=self.url)
        return answer.data

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """See ``Store.read_range``."""
        if length < 0:
            raise ValueError(f"a range cannot have {length} bytes")
        if start < 0 or not length:
            size = self._existing(name).size
            start = start if start >= 0 else max(0, size + start)
            length = min(length, max(0, size - start))
        return self._range(name, start, length) if length else b""

    def head(self, name: str) -> Entry | None:
        """See ``Store.head``."""
        with contextlib.suppress(NotFound), self._translate_errors(name):
            answer = self._ask("HEAD", check_name(name, self.url), {200}, 0)
            size = whole_number(answer.headers.get("content-length"))
            etag = plain_etag(answer.headers.get("etag"))
            return Entry(name, size, parse_date_ms(answer.headers.get("last-modified")), etag)
        return None

    def put_if_absent(self, name: str, data: bytes) -> None:
        """Raises StoreError."""
        self._refuse(name)

    def put(self, name: str, data: bytes) -> None:
        """Raises StoreError."""
        self._refuse(name)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """Raises StoreError."""
        self._refuse(name)

    def put_hint(self, name: str, data: bytes) -> None:
        """Raises StoreError."""
        self._refuse(name)

    def delete(self, name: str) -> None:
        """Raises StoreError."""
        self._refuse(name)

    def sync(self, names: Iterable[str]) -> None:
        """Nothing to do: nothing is written."""

    def list_from(self, start: str) -> list[Entry]:
        """See ``Store.list_from``."""
        folder = check_folder(start[: start.rfind("/") + 1], self.url)
        found = (_entry(each) for each in self._inside(folder) if not each.is_folder)
        return sorted(each for each in found if each.name >= start and each.name.rpartition("/")[0] == folder)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """See ``Store.list_all``."""
        ahead, seen, found = [check_folder(prefix, self.url)], set[str](), dict[str, Entry]()
        while ahead:
            folder = ahead.pop()
            if folder.count("/") > _DEEPEST:
                raise StoreError(name=f"{folder[:100]}…", root=self.url, reason="its folders have no end.")
            for each in self._inside(folder):
                if not each.is_folder:
                    found[each.name] = _entry(each)
                elif each.name != folder and each.name not in seen:
                    seen.add(each.name)
                    ahead.append(each.name)
        return sorted(found.values())

    # -- requests ------------------------------------------------------------------------------------------------------

    def _range(self, name: str, start: int, length: int) -> bytes:
        """Bytes from ``start`` on; of a server that gives whole files only, the first ones are read and passed by."""
        with self._translate_errors(name):
            said = {"Range": f"bytes={start}-{start + length - 1}"}
            asked = {200, 206, _BEYOND}
            answer = self._ask("GET", check_name(name, self.url), asked, start + length, said, cut=True)
            if answer.status == _BEYOND:
                return b""
            if answer.status == 200:
                return answer.data[start:][:length]
            found = _RANGE.fullmatch(answer.headers.get("content-range", ""))
            if found is None or int(found[1]) != start or int(found[2]) + 1 != min(start + length, int(found[3])):
                raise ValueError("it gives another range than it was asked for")
            return answer.data

    def _inside(self, folder: str) -> list[Listed]:
        """What is in a folder, by its names in the store; nothing where there is no folder."""
        before = f"{folder}/" if folder else ""
        with contextlib.suppress(NotFound), self._translate_errors(folder):
            answer = self._ask("PROPFIND", before, {207}, _LISTED_BYTES, {"Depth": "1"})
            return [
                each._replace(name=before + each.name)
                for each in parse_listing(answer.data, self._address(before))
                if each.name
            ]
        return []

    def _ask(
        self,
        method: str,
        name: str,
        wanted: set[int],
        most: int,
        headers: dict[str, str] | None = None,
        cut: bool = False,
    ) -> Answer:
        address, client = self._address(name), client_of(self.options)

        def ask() -> Answer:
            found = client.ask(method, address, max(most, _TOLD_BYTES), headers=headers, cut=cut)
            if found.status in _MAY_PASS:
                raise Unanswered(f"the server answers with status {found.status}", passes=True)
            return found

        answer = retry(ask, _PAUSES_S)
        if answer.status not in wanted:
            raise self._to_store_error(method, name, answer, address)
        return answer

    def _address(self, name: str) -> str:
        root = urlsplit(self.url)
        path = f"{quote(root.path, safe=_IN_A_PATH)}/{quote(name, safe='/')}"
        return urlunsplit((root.scheme, root.netloc, path, self.query, ""))

    # -- what can go wrong ---------------------------------------------------------------------------------------------

    def _to_store_error(self, method: str, name: str, answer: Answer, address: str) -> StoreError:
        if answer.status in _GONE or (answer.status in _REDIRECTS and _is_of_folder(answer, address)):
            return NotFound(name=name, root=self.url)
        if answer.status in _DENIED:
            why = f"the server refuses ({answer.status}). Check the location's query, or whoever may read there."
            return StorePermissionDenied(name=name, root=self.url, reason=why)
        if answer.status in _REDIRECTS:
            why = (
                f"the server redirects ({answer.status}), which is not followed, since the location's query may be a "
                "secret. If you trust the place that it names, open the table there."
            )
            return StoreError(name=name, root=self.url, reason=why)
        why = " to PROPFIND, so it is no WebDAV server: nobody can say what is there" if method == "PROPFIND" else ""
        return StoreError(name=name, root=self.url, reason=f"the server answers with status {answer.status}{why}.")

    def _existing(self, name: str) -> Entry:
        entry = self.head(name)
        if entry is None:
            raise NotFound(name=name, root=self.url)
        return entry

    def _refuse(self, name: str) -> NoReturn:
        why = "a table on a web server is read-only: HTTP has no put-if-absent."
        raise StoreError(name=check_name(name, self.url), root=self.url, reason=why)

    @contextlib.contextmanager
    def _translate_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except Unanswered as error:
            raise StoreError(name=name, root=self.url, reason=reason(error)) from None
        except ValueError as error:
            raise StoreError(name=name, root=self.url, reason=f"the server's answer is of no use: {error}.") from None


def open_web(url: str, query: str, unknown: Mapping[str, Any], options: Mapping[str, Any]) -> WebStore:
    """The store of a location.

    Args:
        query: of the location, or nothing.
        unknown: options that no client has.
        options: those of obstore's clients, which other stores have as well; what only tunes one of these changes
            nothing here.

    Raises:
        UnknownStore: the location is none, or an option cannot be followed.
    """
    for key in [*sorted(unknown), *sorted(_NOT_FOLLOWED.intersection(options))]:
        raise UnknownStore(location=url, reason=f"the option {key!r} is not valid for a web server.")
    if url.startswith("http:") and str(options.get("allow_http", "true")).lower() not in _TRUE:
        raise UnknownStore(location=url, reason="the option allow_http forbids plain http.")
    try:
        said = {name: _parse_option(name, value) for name, value in options.items() if name in _FOLLOWED}
        chosen = tuple(sorted(said.items()))
        _ = (client_of(chosen), urlsplit(url).port)
        if not urlsplit(url).hostname:
            raise ValueError(url)
    except (ValueError, ssl.SSLError):
        raise UnknownStore(location=url, reason="it, or one of its options, is malformed.") from None
    return WebStore(url, query, chosen)


def _parse_option(name: str, value: Any) -> Any:
    if name == "allow_invalid_certificates":
        return str(value).lower() in _TRUE
    if name not in ("timeout", "connect_timeout"):
        return value.decode() if isinstance(value, bytes) else str(value)
    found = _DURATION.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(name)
    return float(found[1]) * _SECONDS[found[2] or "s"]


@memo("clients of web servers", 64)
def client_of(options: Options) -> WebClient:
    """The client of these options, as `open_web` has them. Raises ValueError, SSLError: the certificate is none."""
    said = dict(options)
    tls = ssl.create_default_context()
    if certificate := said.get("root_certificate"):
        tls.load_verify_locations(cadata=certificate)
    if said.get("allow_invalid_certificates"):
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    proxy, agent = said.get("proxy_url"), said.get("user_agent")
    proxy_of = (lambda address: proxy) if proxy else proxy_by_environment
    headers = {"User-Agent": agent} if agent else {}
    return WebClient(said.get("timeout", _TIMEOUT_S), said.get("connect_timeout", _CONNECT_S), tls, proxy_of, headers)


def _is_of_folder(answer: Answer, address: str) -> bool:
    """Whether a server says that there is a folder of the name, by the slash that it adds."""
    try:
        to, asked = urlsplit(urljoin(address, answer.headers.get("location", ""))), urlsplit(address)
    except ValueError:
        return False
    return (to.scheme, to.netloc, to.path) == (asked.scheme, asked.netloc, f"{asked.path}/")


def _entry(found: Listed) -> Entry:
    return Entry(found.name, found.size, found.modified_ms, found.etag)
