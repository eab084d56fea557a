"""The store over a bucket: S3, Azure, Google Cloud and process memory, all through obstore.

Knows names, keys and what each of obstore's exceptions means for a put; buckets are opened in ``open.py``.

Put-if-absent is one conditional request (``If-None-Match: *`` or its like), decided by the service. Two problems of
obstore are solved here:

- It repeats a failed request by itself, and the repetition of a put that had landed is refused as taken. Puts-if-absent
  therefore go through ``once``, which never repeats: the caller knows best whose bytes to expect there.
- It reports each *409 Conflict* as taken, but S3 also answers 409 when it could not decide. So a loss counts only when
  the name exists.

A service that ignores the condition, as very old S3 look-alikes do, makes every put a winner; no client can see that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from anabranch._storage.contract import Entry, check_folder, check_name
from anabranch._storage.service_errors import is_refusal, reason, safe_cause, to_store_error
from anabranch.errors import (
    AlreadyExists,
    NoSuchBucket,
    NotFound,
    PutOutcomeUnknown,
    StoreError,
    StorePermissionDenied,
    WrongRegion,
)
from anabranch.errors.process_state import hold

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore as Bucket

# Builtin exceptions that obstore raises beside its own: no such name, a path it cannot spell, an operation that a
# service lacks (a subclass of RuntimeError).
_FAILURES = (BaseError, FileNotFoundError, ValueError, RuntimeError)
_PAGE_SIZE = 1000
_PART_BYTES = 8 << 20  # at least 5 MiB on S3, and at most 10,000 parts

_first_user: dict[str, int] = hold("the process that used a bucket first", "it is one number")({})


@dataclass(frozen=True)
class ObjectStore:
    """A ``Store`` over the keys of a bucket that begin with ``prefix`` and a slash, or over all of them.

    Attributes:
        url: the root's canonical URL.
        prefix: the part of each key before the name, without slashes at its ends.
        bucket: obstore's store for everything but commits.
        once: the same bucket, with no request repeated.
        confused: letters that the service confuses with others. A name with one is refused.
        allowed: other stores whose files a log in this one may name; the store itself does not use it.
    """

    url: str
    prefix: str
    bucket: Bucket = field(repr=False, compare=False)
    once: Bucket = field(repr=False, compare=False)
    confused: str = ""
    allowed: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def get(self, name: str, *, etag: str | None = None) -> bytes:
        """See ``Store.get``. The answer has the etag, since a service may ignore a condition; where it differs, the
        entry is requested, too, since some services spell the etag differently there.
        """
        with self._translate_errors(name):
            response = obstore.get(self.bucket, self._key(name))
            data = response.bytes().to_bytes()
            if etag not in (None, self._entry(response.meta).etag) and self._require(name).etag != etag:
                raise NotFound(name=name, root=self.url)
            return data

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """See ``Store.read_range``."""
        if length < 0:
            raise ValueError(f"a range cannot have {length} bytes")
        try:
            with self._translate_errors(name):
                return self._range(self._key(name), start, length)
        except (NotFound, StorePermissionDenied, NoSuchBucket, WrongRegion):
            raise
        except StoreError:
            # An empty range is an error to some services, and a range from the end to Azure: request the size.
            return self._range_within(self._require(name), start, length)

    def head(self, name: str) -> Entry | None:
        """See ``Store.head``."""
        with contextlib.suppress(NotFound), self._translate_errors(name):
            return self._entry(obstore.head(self.bucket, self._key(name)))
        return None

    def put_if_absent(self, name: str, data: bytes) -> None:
        """See ``Store.put_if_absent``."""
        try:
            obstore.put(self.once, self._key(name), data, mode="create")
        except (AlreadyExistsError, PreconditionError) as error:
            raise self._conflict_error(name) from safe_cause(error)
        except _FAILURES as error:
            raise self._to_put_error(name, error) from safe_cause(error)

    def put(self, name: str, data: bytes) -> None:
        """See ``Store.put``."""
        try:
            obstore.put(self.bucket, self._key(name), data)
        except _FAILURES as error:
            raise self._to_put_error(name, error) from safe_cause(error)

    def put_stream(self, name: str, chunks: Iterable[bytes]) -> None:
        """See ``Store.put_stream``: a multipart upload with few parts at a time."""
        rest = iter(chunks)
        start = list(islice(rest, 2))
        if len(start) < 2:  # a service may refuse an upload without a part
            self.put(name, b"".join(start))
            return
        body = _Chunks(chain(start, rest))
        try:
            obstore.put(self.bucket, self._key(name), body, chunk_size=_PART_BYTES, max_concurrency=2)
        except _FAILURES as error:
            if body.failed is not None:
                raise body.failed from None
            raise self._to_put_error(name, error) from safe_cause(error)

    def copy_from(self, other: ObjectStore, source: str, name: str) -> bool:
        """Let the service copy a name from a store in the same bucket; False if it cannot, and nothing happened. Raises
        NotFound: there is no such source.
        """
        if other.bucket is not self.bucket:
            return False
        try:
            with self._translate_errors(source):
                obstore.copy(self.bucket, other._key(source), self._key(name))
        except NotFound:
            raise
        except StoreError:  # too large for one request, perhaps
            return False
        return True

    def put_hint(self, name: str, data: bytes) -> None:
        """See ``Store.put_hint``."""
        self.put_if_absent(name, data)

    def list_from(self, start: str) -> list[Entry]:
        """See ``Store.list_from``."""
        folder = check_folder(start[: start.rfind("/") + 1], self.url)
        with self._translate_errors(start):
            if folder:
                entries = self._list_entries(folder, _just_before(self._at(start)))
            else:  # without recursion: a table's root is full of folders that are not worth listing
                entries = self._entries("", obstore.list_with_delimiter(self.bucket, self._at("") or None)["objects"])
            return sorted(entry for entry in entries if entry.name >= start and entry.name.rpartition("/")[0] == folder)

    def list_all(self, prefix: str = "") -> list[Entry]:
        """See ``Store.list_all``."""
        folder = check_folder(prefix, self.url)
        with self._translate_errors(prefix):
            return sorted(self._list_entries(folder, None))

    def top_folders(self) -> list[str]:
        """The folders at the root that hold a key, sorted, to split a listing by."""
        inside = len(self.prefix) + 1 if self.prefix else 0
        with self._translate_errors(""):
            prefixes = obstore.list_with_delimiter(self.bucket, self._at("") or None)["common_prefixes"]
            return sorted(self._check_below("", prefix)[inside:].strip("/") for prefix in prefixes)

    def delete(self, name: str) -> None:
        """See ``Store.delete``."""
        with contextlib.suppress(NotFound), self._translate_errors(name):
            obstore.delete(self.bucket, self._key(name))

    def sync(self, names: Iterable[str]) -> None:
        """Nothing to do: what a bucket has acknowledged is durable."""

    # -- names and keys ------------------------------------------------------------------------------------------------

    def _at(self, name: str) -> str:
        """The key of a name or folder. Every request calls this, so it also refuses requests in a forked child."""
        refuse_after_fork(name, self.url)
        return f"{self.prefix}/{name}" if self.prefix and name else self.prefix or name

    def _key(self, name: str) -> str:
        if any(letter in name for letter in self.confused):
            raise StoreError(name=repr(name), root=self.url, reason="the service would take it for another name.")
        return self._at(check_name(name, self.url))

    def _entry(self, meta: ObjectMeta) -> Entry:
        name = meta["path"][len(self.prefix) + 1 :] if self.prefix else meta["path"]
        etag = meta["e_tag"]
        # Azure quotes the etag in the answer of a request, and not in a listing.
        etag = etag and etag.strip('"')
        modified_ms = round(meta["last_modified"].timestamp() * 1000)
        if not self.url.startswith("memory:"):
            # Google Cloud and MinIO give milliseconds in a listing only: a name must have one entry.
            modified_ms -= modified_ms % 1000
        return Entry(name, meta["size"], modified_ms, etag)

    # -- reading -------------------------------------------------------------------------------------------------------

    def _range(self, key: str, start: int, length: int) -> bytes:
        if start >= 0:
            return obstore.get_range(self.bucket, key, start=start, length=length).to_bytes()
        return obstore.get(self.bucket, key, options={"range": {"suffix": -start}}).bytes().to_bytes()[:length]

    def _range_within(self, entry: Entry, start: int, length: int) -> bytes:
        first = start if start >= 0 else max(0, entry.size + start)
        length = min(length, entry.size - first)
        with self._translate_errors(entry.name):
            return self._range(self._key(entry.name), first, length) if length > 0 else b""

    def _require(self, name: str) -> Entry:
        entry = self.head(name)
        if entry is None:
            raise NotFound(name=name, root=self.url)
        return entry

    def _list_entries(self, folder: str, after: str | None) -> Iterator[Entry]:
        """All entries below a folder, at any depth, whose keys come after ``after``."""
        key, seen = self._at(folder), set[Entry]()
        for page in obstore.list(self.bucket, key or None, offset=after, chunk_size=_PAGE_SIZE):
            for entry in self._entries(folder, page):
                if entry in seen:  # compared as a whole: a folder's mark may have the name of a file
                    raise StoreError(name=entry.name, root=self.url, reason="the service lists it twice.")
                seen.add(entry)
                yield entry

    def _entries(self, folder: str, page: Sequence[ObjectMeta]) -> Iterator[Entry]:
        # Some tools mark a folder by an empty key that ends in a slash; the root's own mark is not a name below it.
        for meta in page:
            if meta["path"] != self.prefix:
                self._check_below(folder, meta["path"])
                yield self._entry(meta)

    def _check_below(self, folder: str, key: str) -> str:
        """A listed key. Raises StoreError: it does not lie below the requested folder."""
        root = self._at(folder)
        if root and key != root and not key.startswith(f"{root}/"):
            raise StoreError(
                name=repr(key[:100]), root=self.url, reason="the service lists it, but it was not requested."
            )
        return key

    # -- what can go wrong ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _translate_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise NotFound(name=name, root=self.url) from safe_cause(error)
        except _FAILURES as error:
            raise to_store_error(name, self.url, error) from safe_cause(error)

    def _to_put_error(self, name: str, error: Exception) -> StoreError:
        if is_refusal(error):
            return to_store_error(name, self.url, error)
        return PutOutcomeUnknown(name=name, root=self.url, reason=reason(self.url, error))

    def _conflict_error(self, name: str) -> StoreError:
        """The error of a conflict: it is a loss only if the name exists."""
        with contextlib.suppress(StoreError):
            if self.head(name) is not None:
                return AlreadyExists(name=name, root=self.url)
        return PutOutcomeUnknown(name=name, root=self.url, reason="the store reports a conflict, but shows no winner.")


class _Chunks:
    """Chunks for obstore, which hides an exception that they raise; ``failed`` keeps it."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.failed: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._chunks
        except BaseException as error:
            self.failed = error
            raise


def refuse_after_fork(name: str, root: str) -> None:
    """The threads of a store's client do not survive a fork: a request of the child would wait for them for ever."""
    if _first_user.setdefault("pid", os.getpid()) != os.getpid():
        reason = "this process was forked from one that used such a store before; start it by spawn or forkserver."
        raise StoreError(name=name, root=root, reason=reason)


def _just_before(key: str) -> str | None:
    """A key shortly before ``key``, or None where obstore cannot spell it.

    A listing returns the keys *after* an offset; with this one the caller drops few.
    """
    offset = key[:-1].removesuffix("/")
    return None if offset.rpartition("/")[2] in ("", ".", "..") else offset
