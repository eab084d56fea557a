"""Sizes of many stored names, in the cheapest way of each kind of store.

Guarantee: every size is the store's present one; a missing name has None, and a folder `NO_FILE`.
"""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from anabranch._storage.contract import Store, check_name
from anabranch._storage.local import LocalStore

_Result = TypeVar("_Result")
_ODD = re.compile(r"\0|[/\n]\.{0,2}(?=[/\n])")
"""Matches names, with line ends around them, that `check_name` may refuse."""
NO_FILE = -1
"""The size of something that is not a file: Spark would read the files inside."""
_THREADS = 32
_MAX_SINGLE_REQUESTS = 256
"""Maximum number of names that are requested one by one; for more, folders with many of them are listed."""
_MIN_NAMES_TO_LIST = 64


def sizes(store: Store, names: Sequence[str]) -> Mapping[str, int | None]:
    """The size in bytes of each of these names. Raises StoreError: the store failed, or a name leaves its root."""
    if isinstance(store, LocalStore):
        return _on_disk(store, names)
    listed_sizes = _list_sizes(store, names) if len(names) > _MAX_SINGLE_REQUESTS else {}
    rest = [name for name in names if name not in listed_sizes]
    heads = _map_in_threads(store.head, rest)
    return {**listed_sizes, **{name: entry and entry.size for name, entry in zip(rest, heads, strict=True)}}


def _on_disk(store: LocalStore, names: Sequence[str]) -> dict[str, int | None]:
    """By plain system calls: a few microseconds for each file, where `LocalStore.head` takes ten."""
    result, root = dict[str, int | None](), f"{store.root}/"
    if _ODD.search("\n".join(["", *names, ""])):  # one search for all names; `check_name` then finds the odd one
        names = [check_name(name, store.url) for name in names]
    for name in names:
        try:
            status = os.stat(root + name)
        except OSError:
            entry = store.head(name)  # which interprets each refusal of a disk
            result[name] = entry and entry.size
        else:
            result[name] = status.st_size if stat.S_ISREG(status.st_mode) else NO_FILE
    return result


def _list_sizes(store: Store, names: Sequence[str]) -> dict[str, int | None]:
    """The sizes of the names in folders with many of them: one request per thousand names, not per name."""
    folders = defaultdict[str, list[str]](list)
    for name in names:
        folders[name[: name.rfind("/") + 1]].append(name)
    full = [folder for folder, members in folders.items() if len(members) >= _MIN_NAMES_TO_LIST]
    requested = {name for folder in full for name in folders[folder]}
    entries = _map_in_threads(store.list_from, [min(folders[folder]) for folder in full])
    return {entry.name: entry.size for listed in entries for entry in listed if entry.name in requested}


def _map_in_threads(ask: Callable[[str], _Result], names: Sequence[str]) -> list[_Result]:
    if len(names) < 2:
        return [ask(name) for name in names]
    with ThreadPoolExecutor(min(_THREADS, len(names)), thread_name_prefix="anabranch-sizes") as pool:
        return list(pool.map(ask, names))
