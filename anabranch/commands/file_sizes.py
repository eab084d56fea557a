"""Checks that the data files to be read have the sizes in the log.

Compares the log's sizes with the store's. Guarantee: a file that is empty, was truncated, or was replaced by one of
another size raises an error before a row of it is read. Spark does not notice: it leaves out empty files when it plans.
A missing file is left to its reader, whose error names the version; so is a file of the same size with other content.
"""

from __future__ import annotations

import re
from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.file_locations import locate_in_store
from anabranch._storage.contract import Store
from anabranch._storage.sizes import NO_FILE, sizes
from anabranch._transaction.open_transaction import open_transaction
from anabranch.errors import MissingDataFile

_ODD = re.compile(r"[%:]|\.\.|//|\n/|\n(?=\n)")
"""Matches a path, in text with one path on each line, that needs decoding or normalizing; few paths do."""


def check_sizes(store: Store, files: pa.Table, version: int | None = None) -> None:
    """Raises an error unless these files, with columns ``path`` and ``size``, have these sizes in the store. The
    statements of one transaction check each file once.

    Raises:
        MissingDataFile: a file has another size. CorruptLog: the log contains an invalid path. StoreError: the store
        failed. UnknownStore, FileOutsideTable: a path names no store, or one that is not allowed.
    """
    with_size = _files_to_check(files.select(["path", "size"]).filter(pc.is_valid(files["size"])), store)
    paths, logged = with_size["path"].to_pylist(), with_size["size"].to_pylist()
    for path, size, actual in zip(paths, logged, _find_sizes(store, paths), strict=True):
        if actual is not None and (actual != size or actual == 0):
            facts = {"size": size, "found": actual, "version": version}
            raise MissingDataFile(table=store.url, file=path, reason=_why(size, actual), **facts)


def _files_to_check(files: pa.Table, store: Store) -> pa.Table:
    """The files that no earlier statement of this thread's open transaction has checked or written."""
    transaction = open_transaction()
    if transaction is None:
        return files
    checked: set[tuple[str, str]] = transaction.shared.setdefault(check_sizes, set())
    checked.update((store.url, path) for path in transaction.new_paths(store.url))
    fresh = [(store.url, path) not in checked for path in files["path"].to_pylist()]
    checked.update((store.url, path) for path in files["path"].to_pylist())
    return files.filter(pa.array(fresh, pa.bool_()))


def _why(size: int, actual: int) -> str:
    if actual == NO_FILE:
        return "is no file, though the log lists it. Restore it from a copy"
    if actual == size:
        return "has no bytes, as the log says, so it is no Parquet file. Restore it from a copy"
    return f"has {actual} bytes, where the log says {size}: it was cut or replaced. Restore it from a copy"


def _find_sizes(store: Store, paths: list[str]) -> list[int | None]:
    if not _ODD.search("\n".join(["", *paths, ""])):
        size_of = sizes(store, paths)
        return [size_of[path] for path in paths]
    locations = [locate_in_store(store, path) for path in paths]
    by_store, stores = defaultdict[str, list[str]](list), dict[str, Store]()
    for file_store, name in locations:
        by_store[file_store.url].append(name)
        stores[file_store.url] = file_store
    sizes_by_store = {url: sizes(stores[url], names) for url, names in by_store.items()}
    return [sizes_by_store[file_store.url][name] for file_store, name in locations]
