"""The store over a folder of a web server, by HTTP and, for listings, WebDAV; it is read-only.

Knows names, addresses and what a server's answers mean. HTTP has no put-if-absent that servers keep, so nothing is ever
written. Guarantees: requests go only to the location's server, since its query may be a signature; no redirect is
followed, and no error repeats the query or a server's text.
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
from anabranch._storage.webdav import ListingEntry, parse_date_ms, parse_listing, plain_etag, whole_number
from anabranch.errors import NotFound, StoreError, StorePermissionDenied, UnknownStore
from anabranch.errors.process_state import memo

Options = tuple[tuple[str, Any], ...]

_SAFE_IN_PATH = "/%:@!$&'()*+,;=~"
"""Characters of a location's path that are not escaped; it may be percent-encoded already."""
_PAUSES_S = (0.1, 0.4, 1.6)
_TRANSIENT = {408, 429, 500, 502, 503, 504}
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.IGNORECASE)
_REDIRECTS = {301, 302, 303, 307, 308}
_GONE, _DENIED, _BEYOND = {404, 410}, {401, 403}, 416
_LARGEST_BYTES, _LISTED_BYTES, _ANSWER_BYTES = 4 << 30, 256 << 20, 1 << 20
"""Maximum bytes of a file that is read as a whole, of a listing, and of any other answer."""
_MAX_DEPTH = 1000
_TIMEOUT_S, _CONNECT_S = 60.0, 10.0
_SUPPORTED = {"timeout", "connect_timeout", "user_agent", "proxy_url", "root_certificate", "allow_invalid_certificates"}
_UNSUPPORTED = {"proxy_ca_certificate", "proxy_excludes"}
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
            answer = self._request("GET", check_name(name, self.url), {200}, _LARGEST_BYTES)
            if not answer.says_its_end:
                raise ValueError("it does not state where the file ends")
        current = plain_etag(answer.headers.get("etag"))
        if etag not in (None, current) and self._require(name).etag != etag:
            raise NotFound(name=name, root=self.url)
        return answer.data

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """See ``Store.read_range``."""
        if length < 0:
            raise ValueError(f"a range cannot have {length} bytes")
        if start < 0 or not length:
            size = self._require(name).size
            start = start if start >= 0 else max(0, size + start)
            length = min(length, max(0, size - start))
        return self._range(name, start, length) if length else b""

    def head(self, name: str) -> Entry | None:
        """See ``Store.head``."""
        with contextlib.suppress(NotFound), self._translate_errors(name):
            answer = self._request("HEAD", check_name(name, self.url), {200}, 0)
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
        entries = (_entry(listed) for listed in self._list_folder(folder) if not listed.is_folder)
        return sorted(entry for entry in entries if entry.name >= start and entry.name.rpartition("/")[0] == folder)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """See ``Store.list_all``."""
        folders, seen, entries = [check_folder(prefix, self.url)], set[str](), dict[str, Entry]()
        while folders:
            folder = folders.pop()
            if folder.count("/") > _MAX_DEPTH:
                raise StoreError(name=f"{folder[:100]}…", root=self.url, reason="its folders have no end.")
            for listed in self._list_folder(folder):
                if not listed.is_folder:
                    entries[listed.name] = _entry(listed)
                elif listed.name != folder and listed.name not in seen:
                    seen.add(listed.name)
                    folders.append(listed.name)
        return sorted(entries.values())

    # -- requests ------------------------------------------------------------------------------------------------------

    def _range(self, name: str, start: int, length: int) -> bytes:
        """Bytes from ``start`` on; of a server that gives whole files only, the first bytes are read and discarded."""
        with self._translate_errors(name):
            headers = {"Range": f"bytes={start}-{start + length - 1}"}
            statuses = {200, 206, _BEYOND}
            answer = self._request("GET", check_name(name, self.url), statuses, start + length, headers, cut=True)
            if answer.status == _BEYOND:
                return b""
            if answer.status == 200:
                return answer.data[start:][:length]
            match = _RANGE.fullmatch(answer.headers.get("content-range", ""))
            if match is None or int(match[1]) != start or int(match[2]) + 1 != min(start + length, int(match[3])):
                raise ValueError("it returns another range than requested")
            return answer.data

    def _list_folder(self, folder: str) -> list[ListingEntry]:
        """The entries of a folder, by their names in the store; none where there is no folder."""
        before = f"{folder}/" if folder else ""
        with contextlib.suppress(NotFound), self._translate_errors(folder):
            answer = self._request("PROPFIND", before, {207}, _LISTED_BYTES, {"Depth": "1"})
            return [
                listed._replace(name=before + listed.name)
                for listed in parse_listing(answer.data, self._address(before))
                if listed.name
            ]
        return []

    def _request(
        self,
        method: str,
        name: str,
        statuses: set[int],
        max_bytes: int,
        headers: dict[str, str] | None = None,
        cut: bool = False,
    ) -> Answer:
        address, client = self._address(name), client_of(self.options)

        def ask() -> Answer:
            response = client.ask(method, address, max(max_bytes, _ANSWER_BYTES), headers=headers, cut=cut)
            if response.status in _TRANSIENT:
                raise Unanswered(f"the server answers with status {response.status}", passes=True)
            return response

        answer = retry(ask, _PAUSES_S)
        if answer.status not in statuses:
            raise self._to_store_error(method, name, answer, address)
        return answer

    def _address(self, name: str) -> str:
        root = urlsplit(self.url)
        path = f"{quote(root.path, safe=_SAFE_IN_PATH)}/{quote(name, safe='/')}"
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
        why = " to PROPFIND, so it is not a WebDAV server and cannot list a folder" if method == "PROPFIND" else ""
        return StoreError(name=name, root=self.url, reason=f"the server answers with status {answer.status}{why}.")

    def _require(self, name: str) -> Entry:
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
        options: those of obstore's clients, which other stores have as well; options that only tune such a client have
            no effect here.

    Raises:
        UnknownStore: the location is malformed, or an option is not supported.
    """
    for key in [*sorted(unknown), *sorted(_UNSUPPORTED.intersection(options))]:
        raise UnknownStore(location=url, reason=f"the option {key!r} is not valid for a web server.")
    if url.startswith("http:") and str(options.get("allow_http", "true")).lower() not in _TRUE:
        raise UnknownStore(location=url, reason="the option allow_http forbids plain http.")
    try:
        supported = {name: _parse_option(name, value) for name, value in options.items() if name in _SUPPORTED}
        client_options = tuple(sorted(supported.items()))
        _ = (client_of(client_options), urlsplit(url).port)
        if not urlsplit(url).hostname:
            raise ValueError(url)
    except (ValueError, ssl.SSLError):
        raise UnknownStore(location=url, reason="it, or one of its options, is malformed.") from None
    return WebStore(url, query, client_options)


def _parse_option(name: str, value: Any) -> Any:
    if name == "allow_invalid_certificates":
        return str(value).lower() in _TRUE
    if name not in ("timeout", "connect_timeout"):
        return value.decode() if isinstance(value, bytes) else str(value)
    match = _DURATION.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(name)
    return float(match[1]) * _SECONDS[match[2] or "s"]


@memo("clients of web servers", 64)
def client_of(options: Options) -> WebClient:
    """The client of these options, as `open_web` has them. Raises ValueError, SSLError: the certificate is invalid."""
    settings = dict(options)
    tls = ssl.create_default_context()
    if certificate := settings.get("root_certificate"):
        tls.load_verify_locations(cadata=certificate)
    if settings.get("allow_invalid_certificates"):
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    proxy, agent = settings.get("proxy_url"), settings.get("user_agent")
    proxy_of = (lambda address: proxy) if proxy else proxy_by_environment
    headers = {"User-Agent": agent} if agent else {}
    return WebClient(
        settings.get("timeout", _TIMEOUT_S), settings.get("connect_timeout", _CONNECT_S), tls, proxy_of, headers
    )


def _is_of_folder(answer: Answer, address: str) -> bool:
    """Whether a redirect only adds a slash to the address, which means that a folder has the name."""
    try:
        target, requested = urlsplit(urljoin(address, answer.headers.get("location", ""))), urlsplit(address)
    except ValueError:
        return False
    return (target.scheme, target.netloc, target.path) == (requested.scheme, requested.netloc, f"{requested.path}/")


def _entry(listed: ListingEntry) -> Entry:
    return Entry(listed.name, listed.size, listed.modified_ms, listed.etag)
