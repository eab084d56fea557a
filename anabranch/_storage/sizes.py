"""Sizes of many stored names, in the cheapest way of each kind of store.

Guarantee: every size is what the store says now; a missing name has None, and one that is a folder `NO_FILE`.
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

_Answer = TypeVar("_Answer")
_ODD = re.compile(r"\0|[/\n]\.{0,2}(?=[/\n])")
"""In names with line ends around them: what `check_name` may refuse."""
NO_FILE = -1
"""The size of what is there and is no file: Spark would read the files inside."""
_THREADS = 32
_FEW = 256
"""Up to this many names are requested one by one; for more, folders with many of them are listed."""
_MANY_TO_A_FOLDER = 64


def sizes(store: Store, names: Sequence[str]) -> Mapping[str, int | None]:
    """The size in bytes of each of these names. Raises StoreError: the store did not say, or a name leaves its root."""
    if isinstance(store, LocalStore):
        return _on_disk(store, names)
    found = _list_sizes(store, names) if len(names) > _FEW else {}
    rest = [name for name in names if name not in found]
    heads = _map_in_threads(store.head, rest)
    return {**found, **{name: entry and entry.size for name, entry in zip(rest, heads, strict=True)}}


def _on_disk(store: LocalStore, names: Sequence[str]) -> dict[str, int | None]:
    """By plain system calls: a few microseconds for each file, where `LocalStore.head` takes ten."""
    found, root = dict[str, int | None](), f"{store.root}/"
    if _ODD.search("\n".join(["", *names, ""])):  # seen in all at once; which one it is, each tells by itself
        names = [check_name(name, store.url) for name in names]
    for name in names:
        try:
            seen = os.stat(root + name)
        except OSError:
            entry = store.head(name)  # which knows what each refusal of a disk means
            found[name] = entry and entry.size
        else:
            found[name] = seen.st_size if stat.S_ISREG(seen.st_mode) else NO_FILE
    return found


def _list_sizes(store: Store, names: Sequence[str]) -> dict[str, int | None]:
    """The sizes of those names that are in folders with many of them: one request per thousand names, not per name."""
    folders = defaultdict[str, list[str]](list)
    for name in names:
        folders[name[: name.rfind("/") + 1]].append(name)
    full = [folder for folder, inside in folders.items() if len(inside) >= _MANY_TO_A_FOLDER]
    wanted = {name for folder in full for name in folders[folder]}
    entries = _map_in_threads(store.list_from, [min(folders[folder]) for folder in full])
    return {entry.name: entry.size for listed in entries for entry in listed if entry.name in wanted}


def _map_in_threads(ask: Callable[[str], _Answer], names: Sequence[str]) -> list[_Answer]:
    if len(names) < 2:
        return [ask(name) for name in names]
    with ThreadPoolExecutor(min(_THREADS, len(names)), thread_name_prefix="anabranch-sizes") as pool:
        return list(pool.map(ask, names))
