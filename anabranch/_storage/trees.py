"""Lists all files and folders below a root, in parallel.

Knows what each kind of store can list at once. Guarantees: no symbolic link is followed, or listed as a file or folder;
unfinished writes are not listed; a file that was put before the call began, and is not removed meanwhile, is listed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field

from anabranch._storage import disk
from anabranch._storage.contract import Entry, Store
from anabranch._storage.hdfs import HdfsStore
from anabranch._storage.local import LocalStore
from anabranch._storage.objects import ObjectStore
from anabranch.errors import StoreError
from anabranch.errors.rows import cause, detail

Skip = Callable[[str], bool]
"""Whether to leave out everything below a folder, by its name."""


@dataclass(frozen=True)
class Tree:
    """``files`` below a root, its ``folders`` where the store has such, ``left_out``, folders that were skipped, and
    symbolic ``links``.
    """

    files: list[Entry] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def add(self, other: Tree) -> None:
        """Append another tree."""
        self.files.extend(other.files)
        self.folders.extend(other.folders)
        self.left_out.extend(other.left_out)
        self.links.extend(other.links)


def tree(store: Store, skip: Skip, threads: int = 16) -> Tree:
    """All files and folders, without those below skipped folders. Raises StoreError: something could not be listed."""
    if isinstance(store, LocalStore):
        return _local(store, skip, threads)
    if isinstance(store, ObjectStore):
        return _bucket(store, skip, threads)
    if isinstance(store, HdfsStore):
        return _hdfs(store, skip)
    return _without(store.list_all(), skip)


def folders_above(name: str) -> list[str]:
    """The folders of a name, the outermost first."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def links(store: Store, skip: Skip) -> list[str]:
    """The symbolic links below the root, without those below skipped folders; only a disk has such."""
    return _local(store, skip, threads=1).links if isinstance(store, LocalStore) else []


def find_aliased(store: Store, names: Iterable[str], files: Iterable[Entry]) -> set[str]:
    """The names of those files that one of these other names means too, which may be a path: through a link, or on a
    disk that does not tell its letters from others.
    """
    if not isinstance(store, LocalStore):
        return set()
    meant = {_identity(store, name) for name in names} - {None}
    return {entry.name for entry in files if meant and _identity(store, entry.name) in meant}


def _identity(store: LocalStore, name: str) -> tuple[int, int] | None:
    try:
        seen = os.stat(os.path.join(store.root, name))
    except (OSError, ValueError):
        return None
    return seen.st_dev, seen.st_ino


def is_link(store: Store, name: str) -> bool:
    """Whether a name, or a folder of it, is a symbolic link."""
    if not isinstance(store, LocalStore):
        return False
    return any(os.path.islink(os.path.join(store.root, part)) for part in (*folders_above(name), name))


def check_inside(store: Store, name: str) -> None:
    """Raises StoreError: a folder of the name is a link that leads out of the root."""
    if isinstance(store, LocalStore):
        store.check_inside(name)


def remove_empty(store: Store, folders: Iterable[str]) -> list[str]:
    """Remove those of these folders that are empty, the innermost first, and return their names; a bucket has none."""
    inner_first = sorted(folders, key=lambda name: (bool(name), name.count("/")), reverse=True)
    if isinstance(store, HdfsStore):
        return [folder for folder in inner_first if store.remove_folder(folder)]
    if not isinstance(store, LocalStore):
        return []
    removed = []
    for folder in inner_first:
        try:
            os.rmdir(os.path.join(store.root, folder))
        except OSError:
            continue  # it is not empty, is a link, or may not be removed: it does no harm
        removed.append(folder)
    return removed


def remove_hollow(store: Store, folder: str) -> None:
    """Remove a folder and those in it, as far as no file is there; a bucket has none."""
    if isinstance(store, HdfsStore):
        remove_empty(store, [*_hdfs(store, lambda name: False, folder).folders, folder])
    if isinstance(store, LocalStore) and not is_link(store, folder):
        for found, _, _ in os.walk(os.path.join(store.root, folder), topdown=False):
            with suppress(OSError):  # it is not empty, or may not be removed: it does no harm
                os.rmdir(found)


def _hdfs(store: HdfsStore, skip: Skip, folder: str = "") -> Tree:
    found = Tree()
    for files, entered, left_out in store.walk_folders(folder, skip):
        found.add(Tree(files, entered, left_out))
    return found


def _local(store: LocalStore, skip: Skip, threads: int) -> Tree:
    found = Tree()
    with ThreadPoolExecutor(threads, thread_name_prefix="anabranch-list") as pool:
        pending: set[Future[tuple[Tree, list[str]]]] = {pool.submit(_scan_folder, store, "", skip)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for each in done:
                part, below = each.result()
                found.add(part)
                pending |= {pool.submit(_scan_folder, store, folder, skip) for folder in below}
    return found


def _scan_folder(store: LocalStore, folder: str, skip: Skip) -> tuple[Tree, list[str]]:
    """One folder, and the folders in it that are still to be listed."""
    found, below, before = Tree(), list[str](), f"{folder}/" if folder else ""
    try:
        with os.scandir(os.path.join(store.root, folder)) as entries:
            for entry in entries:
                name = before + entry.name
                if entry.is_dir(follow_symlinks=False):
                    (found.left_out if skip(name) else below).append(name)
                elif entry.is_file(follow_symlinks=False) and not disk.is_aside(entry.name):
                    found.files.extend(_stat_entry(name, entry))
                elif entry.is_symlink():
                    found.links.append(name)
    except (FileNotFoundError, NotADirectoryError):
        return found, below  # it was removed meanwhile
    except OSError as error:
        raise StoreError(name=folder, root=store.url, reason=f"{error.strerror or detail(error)}.") from cause(error)
    found.folders.extend(below)
    return found, below


def _stat_entry(name: str, entry: os.DirEntry[str]) -> list[Entry]:
    try:
        seen = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return []
    return [Entry(name, seen.st_size, seen.st_mtime_ns // 1_000_000, None)]


def _bucket(store: ObjectStore, skip: Skip, threads: int) -> Tree:
    """One listing per folder at the root: keys come page after page, so several listings run at once."""
    top = store.top_folders()
    found = Tree(store.list_from(""), left_out=[folder for folder in top if skip(folder)])
    with ThreadPoolExecutor(threads, thread_name_prefix="anabranch-list") as pool:
        for entries in pool.map(store.list_all, [folder for folder in top if not skip(folder)]):
            found.add(_without(entries, skip))
    return found


def _without(entries: Iterable[Entry], skip: Skip) -> Tree:
    """The wanted part of a listing at any depth."""
    found, left_out = Tree(), dict[str, None]()
    for entry in entries:
        skipped = next(filter(skip, folders_above(entry.name)), None)
        if skipped is None:
            found.files.append(entry)
        else:
            left_out[skipped] = None
    found.left_out.extend(left_out)
    return found
