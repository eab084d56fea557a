"""Finds the store and the name of a file that a log names by its path, in the table's folder or outside it.

Knows both spellings of paths and how stores are opened; this is the only place that resolves a path. Guarantee: a file
in the table's folder is found through the table's own store, however the path is spelled; a file outside it, as in a
shallow clone, belongs to another table and is only read; it is opened on the table's own store, or on one that the
user allows, and nowhere else.

`ALLOWED_STORES` in the environment counts for the whole process, the storage option of that name for one store.
"""

from __future__ import annotations

import os

from anabranch._protocol.layout.outside_files import locate_file
from anabranch._storage.contract import Store
from anabranch._storage.open import open_beside, parse_store_list

ALLOWED_STORES = "ANABRANCH_ALLOWED_STORES"
"""The environment variable that lists, separated by commas, the URLs of other stores whose files a log may name."""


def allowed_stores(store: Store) -> tuple[str, ...]:
    """The URLs of the other stores whose files the log in this one may name."""
    own: tuple[str, ...] = getattr(store, "allowed", ())
    return (*own, *parse_store_list(os.environ.get(ALLOWED_STORES, "")))


def locate_in_store(store: Store, path: str) -> tuple[Store, str]:
    """The store of the file at a path in the log of a store's table, and its name there.

    Raises:
        CorruptLog: the path names no file, leaves the table's folder, or goes up and down.
        FileOutsideTable: it names a file on a store that is neither the table's own nor allowed.
        UnknownStore: it names no store.

    Example:
        >>> locate_in_store(store, "file:/data/origin/part%201.parquet")
        (LocalStore(root='/data/origin'), 'part 1.parquet')
    """
    folder, name = locate_file(store.url, path, allowed_stores(store))
    return (store if folder is None else open_beside(store, folder)), name
