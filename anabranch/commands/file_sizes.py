"""Sizes: whether the data files that are about to be read are as long as the log says.

Knows the log's sizes and asks the store for the true ones. Guarantee: a file that is empty, was cut, or was replaced by
one of another size is told before a row of it is read. Spark does not tell: it leaves empty files out when it plans. A
file that is not there is left to whoever reads it, who says of which version it is; so is one of the same size that
holds something else.
"""

from __future__ import annotations

import re
from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._log.file_locations import locate_in_store
from anabranch._storage.contract import Store
from anabranch._storage.sizes import NO_FILE, sizes
from anabranch.errors import MissingDataFile

_ODD = re.compile(r"[%:]|\.\.|//|\n/|\n(?=\n)")
"""In paths with line ends around them: what may mean something else than itself, which almost none does."""


def hold_sizes(store: Store, files: pa.Table, version: int | None = None) -> None:
    """Raises an error unless these files, with columns ``path`` and ``size``, have the sizes that the log says.

    Raises:
        MissingDataFile: one has not. CorruptLog: the log names what is no file of any table. StoreError: the store did
        not say. UnknownStore, FileOutsideTable: a path names no store, or one that is not allowed.
    """
    stated = files.select(["path", "size"]).filter(pc.is_valid(files["size"]))
    paths, logged = stated["path"].to_pylist(), stated["size"].to_pylist()
    for path, size, found in zip(paths, logged, _find_sizes(store, paths), strict=True):
        if found is not None and (found != size or found == 0):
            facts = {"size": size, "found": found, "version": version}
            raise MissingDataFile(table=store.url, file=path, reason=_why(size, found), **facts)


def _why(size: int, found: int) -> str:
    if found == NO_FILE:
        return "is no file, where the log says so. Restore it from a copy"
    if found == size:
        return "has no bytes, as the log says, so it is no Parquet file. Restore it from a copy"
    return f"has {found} bytes, where the log says {size}: it was cut or replaced. Restore it from a copy"


def _find_sizes(store: Store, paths: list[str]) -> list[int | None]:
    if not _ODD.search("\n".join(["", *paths, ""])):
        own = sizes(store, paths)
        return [own[path] for path in paths]
    places = [locate_in_store(store, path) for path in paths]
    by_store, stores = defaultdict[str, list[str]](list), dict[str, Store]()
    for where, name in places:
        by_store[where.url].append(name)
        stores[where.url] = where
    found = {url: sizes(stores[url], names) for url, names in by_store.items()}
    return [found[where.url][name] for where, name in places]
