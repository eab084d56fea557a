"""Opens the store of a location as a user of Spark writes it.

Knows the spellings of locations and the sources of credentials. Guarantee: two spellings of one root give one ``url``,
and ``open_store(store.url)`` is the same store again.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from obstore.exceptions import BaseError
from obstore.store import MemoryStore, from_url

from anabranch._storage.contract import Store
from anabranch._storage.hadoop_names import for_spark as spelled_for_spark
from anabranch._storage.hdfs import HdfsStore
from anabranch._storage.hdfs_rpc import open_hdfs
from anabranch._storage.local import LocalStore
from anabranch._storage.objects import ObjectStore
from anabranch._storage.obstore_options import SERVICES
from anabranch._storage.store_settings import bucket_options, working_folder
from anabranch._storage.web import WebStore, open_web
from anabranch._storage.webhdfs import open_webhdfs
from anabranch.errors import NotBuilt, UnknownStore
from anabranch.errors.inputs import check_location, check_text
from anabranch.errors.process_state import cache, hold, memo
from anabranch.errors.secrets import is_ambiguous, without_secrets, without_values

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Bucket

_Options = tuple[tuple[str, Any], ...]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")
_CANONICAL = {"s3": "s3", "s3a": "s3", "gs": "gs"}
_CANONICAL |= {"az": "az", "azure": "az", "adl": "az", "abfs": "abfss", "abfss": "abfss"}
_CONFUSING = {"azure": "\\"}  # Azure silently reads it as a slash
_HADOOP = ("hdfs", "viewfs")
_SERVER_SCHEMES = ("webhdfs", *_HADOOP, *_CANONICAL)
_KNOWN_FORMS = (
    "a path, file:///, memory://, s3://, s3a://, gs://, az://, abfs://, abfss://, hdfs://, viewfs://, webhdfs://, "
    "http:// or https://."
)

ALLOWED_OPTION = "anabranch.allowedStores"
"""The storage option that lists, separated by commas, the URLs of other stores whose files a table's log may name."""

# Keys that obstore takes as options of the HTTP client. Among a bucket's options it panics on them.
_CLIENT_KEYS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "http1_only",
    "http2_keep_alive_interval",
    "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle",
    "http2_max_frame_size",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "root_certificate",
    "timeout",
    "user_agent",
}

_INSTEAD = "give credentials in the environment, or as storage options."
_logger = logging.getLogger(__name__)

_queries = cache("queries of web locations", 1000)
"""The queries of web locations that were opened, so that a store's URL opens the location again."""
_memories: dict[str, MemoryStore] = hold("stores in memory", "they are the data")({})
_mounts: dict[str, Store] = hold("stores put in place of others", "each is there for one block")({})


def open_store(location: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Store:
    """The store of everything below a location. Nothing is read or created, so the location need not exist.

    A location is read as Spark and Hadoop read it: no percent-decoding, so ``s3a://bucket/a%20b`` is the folder
    ``a%20b``. ``s3://`` and ``s3a://`` are one store, and so are ``abfs://`` and ``abfss://``, and the forms of a local
    path. User, password and signature are not part of a location, so no store's ``url`` has them. Only the query of
    ``http[s]://`` is used, and goes with each request; for the others a log record says that they are not used.

    Args:
        location: a path (of the local disk and its working folder, or of the session's within
            `anabranch._storage.store_settings.use_settings`), ``file:///path``, ``memory://name/path`` (lives as long
            as the process, which shares it), ``s3[a]://bucket/path``, ``gs://bucket/path``,
            ``abfs[s]://container@account.dfs.core.windows.net/path``, ``az://container/path``,
            ``hdfs://host:port/path``, ``hdfs://nameservice/path`` (with the extra ``hdfs``), ``webhdfs://host:port/path``
            (the NameNode's HTTP port), or ``http[s]://host/path`` (a WebDAV server;
            read-only, since HTTP has no put-if-absent).
        storage_options: as in obstore, for instance ``{"region": "eu-west-1", "endpoint": "http://localhost:9000",
            "allow_http": "true", "timeout": "60s"}``; they override the environment (``AWS_*``, ``AZURE_*``,
            ``GOOGLE_*``). Keys may have those prefixes, in either case. `ALLOWED_OPTION` is ours. Within
            `anabranch._storage.store_settings.use_settings`, a session's settings apply where neither these nor the
            environment do.

    Raises:
        InvalidArgument: the location is no text and no path. LoneSurrogate: it is not valid text.
        UnknownStore: an unknown kind of location, a malformed one, or an option that the service does not have.

    Example:
        >>> open_store("s3a://lake/events/").url
        's3://lake/events'
    """
    remaining = dict(storage_options or {})
    allowed = parse_store_list(str(remaining.pop(ALLOWED_OPTION, "")))
    store = _open(location, remaining)
    return (
        replace(store, allowed=allowed)
        if allowed and isinstance(store, LocalStore | ObjectStore | HdfsStore | WebStore)
        else store
    )


def for_spark(location: str | os.PathLike[str], storage_options: Mapping[str, str]) -> dict[str, str]:
    """Options of a bucket as settings for Spark's connector, of that bucket alone; none where Spark needs none.

    Raises:
        NotBuilt: the connector has no setting for one of them. UnknownStore: as `open_store`.

    Example:
        >>> for_spark("s3a://lake/events", {"region": "eu-west-1", "timeout": "60s"})
        {'fs.s3a.bucket.lake.endpoint.region': 'eu-west-1'}
    """
    text = location_text(location)
    match = _SCHEME.match(text) if isinstance(location, str) else None
    if match is None or match[1].lower() not in _CANONICAL:
        return {}
    authority, _ = _authority_and_path(text, text[match.end() :])
    own = {key: value for key, value in storage_options.items() if key != ALLOWED_OPTION}
    settings, unsupported = spelled_for_spark(_CANONICAL[match[1].lower()], authority, own)
    for name in unsupported:
        instead = "Set it for Spark in the session's settings, and for our client in the environment."
        raise NotBuilt(what=f"the storage option {name}, for Spark,", instead=instead)
    return settings


def location_text(location: str | os.PathLike[str]) -> str:
    """A location as text. Raises InvalidArgument: it is neither a text nor a path of ``pathlib``."""
    check_location(location)
    return os.fspath(location)


def parse_store_list(text: str) -> tuple[str, ...]:
    """The URLs of a comma-separated list."""
    return tuple(url.strip() for url in text.split(",") if url.strip())


def _open(location: str | os.PathLike[str], options: Mapping[str, str]) -> Store:
    original = location_text(location)
    check_text("The place of a table", original)
    if (mounted_store := _mounts.get(original)) is not None:
        return mounted_store
    match = _SCHEME.match(original) if isinstance(location, str) else None
    if match is None:
        return _open_relative(working_folder(), original, options)
    scheme = match[1].lower()
    if scheme == "file":
        return _local(original, _path_of_file_url(original, original[match.end() :]))
    text = _clean(original)
    rest = text[match.end() :]
    if scheme in ("http", "https"):
        return _web(text.rstrip("/"), original, options)
    if scheme not in ("memory", *_SERVER_SCHEMES):
        _refuse(text, f"it must be {_KNOWN_FORMS}")
    if scheme in _SERVER_SCHEMES and (not rest.startswith("//") or rest.startswith("///")):
        folder = working_folder()
        if folder is not None and folder.partition(":")[0].lower() == scheme:  # Hadoop takes the default's server
            return _open_relative(folder, f"/{rest.lstrip('/')}", options)
    return _open_store(scheme, *_authority_and_path(text, rest), options)


def _open_relative(folder: str | None, path: str, options: Mapping[str, str]) -> Store:
    """The store of a path without a scheme, in a working folder; as in Hadoop, ``..`` is resolved in the text."""
    match = None if folder is None else _SCHEME.match(folder)
    if folder is None or match is None or not path or "\0" in path:
        return _local(path, path)
    scheme, rest = match[1].lower(), folder[match.end() :]
    if scheme == "file":
        return _local(path, os.path.join(_path_of_file_url(folder, rest), path))
    if scheme not in _SERVER_SCHEMES:
        _refuse(path, f"for Spark it is on {scheme}:, and a table must be at {_KNOWN_FORMS}")
    authority, _, start = rest.removeprefix("//").partition("/")
    whole = posixpath.normpath(posixpath.join(f"/{start}", path)).strip("/")
    return _open_store(scheme, authority, whole, options)


def _open_store(scheme: str, authority: str, path: str, options: Mapping[str, str]) -> Store:
    if scheme in _HADOOP:
        return open_hdfs(scheme, authority, path, {**bucket_options(scheme, authority, options), **options})
    if scheme == "webhdfs":
        return open_webhdfs(authority, path, options)
    return _memory(authority, path) if scheme == "memory" else _cloud(scheme, authority, path, options)


def open_beside(store: Store, location: str) -> Store:
    """The store of another location, with the same credentials if it is in the same bucket. Raises UnknownStore: as
    `open_store`.
    """
    match = _SCHEME.match(location)
    canonical = _CANONICAL.get(match[1].lower()) if match is not None else None
    if match is None or canonical is None or location in _mounts or not isinstance(store, ObjectStore):
        return open_store(location)
    bucket = store.url.removesuffix(f"/{store.prefix}") if store.prefix else store.url
    authority, path = _authority_and_path(location, location[match.end() :])
    if f"{canonical}://{authority}" != bucket:
        return open_store(location)
    return replace(store, url=_join(bucket, path), prefix=path)


@contextmanager
def mounted(store: Store, at: str | None = None) -> Iterator[str]:
    """Let ``store`` serve the location ``at`` (its own URL by default) within the block, in this process only.

    With this, tests put a store that fails, counts or waits beneath everything that opens the location by name.

    Example:
        >>> with mounted(faulty) as location:
        ...     Append(location, [{"id": 1}]).run()
    """
    location = store.url if at is None else at
    before = _mounts.get(location)
    _mounts[location] = store
    try:
        yield location
    finally:
        if before is None:
            del _mounts[location]
        else:
            _mounts[location] = before


# -- kinds of stores ---------------------------------------------------------------------------------------------------


def _local(location: str, path: str) -> LocalStore:
    if not path:
        _refuse(location or "An empty text", "a table is named by its path or URL.")
    if "\0" in path:
        _refuse(location, "it is no path.")
    # POSIX distinguishes two leading slashes from one; nobody means that.
    return LocalStore(re.sub(r"^//+", "/", os.path.abspath(path)))


def _memory(name: str, path: str) -> ObjectStore:
    memory = _memories.setdefault(name, MemoryStore())
    return ObjectStore(_join(f"memory://{name}", path), path, memory, memory)


def _cloud(scheme: str, authority: str, path: str, options: Mapping[str, str]) -> ObjectStore:
    canonical = _CANONICAL[scheme]
    service = SERVICES[canonical]
    root, confusing = f"{canonical}://{authority}", _CONFUSING.get(service, "")
    if any(letter in path for letter in confusing):
        _refuse(_join(root, path), "the service would take this path for another one.")
    bucket, once = _buckets(root, *_split(service, {**bucket_options(canonical, authority, options), **options}))
    return ObjectStore(_join(root, path), path, bucket, once, confusing)


def _web(url: str, original: str, options: Mapping[str, str]) -> WebStore:
    """``url`` is shown to users; a query, perhaps a signature, goes with each request and is only in memory."""
    query = original.partition("#")[0].partition("?")[2]
    if query:
        _queries[url] = query
    config, client, _ = _split("http", options)
    return open_web(url, _queries.get(url, ""), dict(config), dict(client))


def _clean(location: str) -> str:
    """A location without secrets."""
    cleaned = without_secrets(location)
    if is_ambiguous(location):
        _refuse(cleaned, f"its password holds what no password in a location may hold, / or @; {_INSTEAD}")
    if cleaned != location and not (cleaned.startswith("http") and location.startswith(cleaned)):
        _warn_once(cleaned)
    return cleaned


@memo("locations warned of", 1000)
def _warn_once(location: str) -> None:
    """Log a warning once per location."""
    _logger.warning("user, password or signature in the location of %s are not used: %s", location, _INSTEAD)


def _buckets(root: str, config: _Options, client: _Options, environment: _Options) -> tuple[Bucket, Bucket]:
    """obstore's store of a bucket, once with its retries and once without."""
    try:
        return _bucket(root, config, client, environment, None), _bucket(root, config, client, environment, 0)
    except (BaseError, ValueError, TypeError) as error:
        reason = without_values(str(error).partition("\n\nDebug source")[0], (*config, *client, *environment))
        raise UnknownStore(location=root, reason=reason) from None  # the cause would quote the options


@memo("buckets", 64)
def _bucket(root: str, config: _Options, client: _Options, environment: _Options, retries: int | None) -> Bucket:
    """Cached, since each new store would start without open connections. obstore itself reads the environment."""
    arguments: dict[str, Any] = {"config": dict(config), "client_options": dict(client)}
    if retries is not None:
        arguments["retry_config"] = {"max_retries": retries}
    return from_url(root, **{name: value for name, value in arguments.items() if value})


# -- locations and options ---------------------------------------------------------------------------------------------


def _path_of_file_url(location: str, rest: str) -> str:
    if not rest.startswith("//"):
        return rest
    host, _, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        _refuse(location, "a file URL names no other host; write file:/// and the path.")
    return f"/{path}"


def _authority_and_path(location: str, rest: str) -> tuple[str, str]:
    authority, _, path = rest.removeprefix("//").partition("/")
    parts = [part for part in path.split("/") if part]
    if not rest.startswith("//") or not authority:
        _refuse(location, "a bucket, container or name must stand after the two slashes.")
    if "." in parts or ".." in parts:
        _refuse(location, "a bucket has no folders that . or .. could mean.")
    return authority, "/".join(parts)


def _split(service: str, options: Mapping[str, str]) -> tuple[_Options, _Options, _Options]:
    """Options of the bucket, options of the HTTP client, and the part of the environment that the service reads.

    obstore ignores the client options of the environment as soon as one is given, so all of them are given.
    """
    prefix = f"{service}_"
    environment = {key.lower(): value for key, value in os.environ.items() if key.startswith(prefix.upper())}
    client = {key: environment[prefix + key] for key in _CLIENT_KEYS if prefix + key in environment}
    config = {}
    for key, value in options.items():
        plain = key.lower().removeprefix(prefix)
        if plain in _CLIENT_KEYS:
            client[plain] = value
        else:
            config[key.lower()] = value
    return _sort_options(config), _sort_options(client), _sort_options(environment)


def _sort_options(options: Mapping[str, Any]) -> _Options:
    return tuple(sorted(options.items()))


def _join(root: str, path: str) -> str:
    return f"{root}/{path}" if path else root


def _refuse(location: str, reason: str) -> NoReturn:
    raise UnknownStore(location=location, reason=reason)
