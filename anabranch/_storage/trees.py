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
    """The ``files`` below a root, its ``folders`` where the store has folders, the skipped folders (``left_out``), and
    the symbolic ``links``.
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
    return _exclude_folders(store.list_all(), skip)


def folders_above(name: str) -> list[str]:
    """The folders of a name, the outermost first."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def links(store: Store, skip: Skip) -> list[str]:
    """The symbolic links below the root, without those below skipped folders; only a disk has links."""
    return _local(store, skip, threads=1).links if isinstance(store, LocalStore) else []


def find_aliased(store: Store, names: Iterable[str], files: Iterable[Entry]) -> set[str]:
    """The files that one of the ``names`` refers to under another name: through a link, or on a disk that does not
    distinguish some letters.
    """
    if not isinstance(store, LocalStore):
        return set()
    identities = {_identity(store, name) for name in names} - {None}
    return {entry.name for entry in files if identities and _identity(store, entry.name) in identities}


def _identity(store: LocalStore, name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(os.path.join(store.root, name))
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


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
    """Remove the empty ones of these folders, the innermost first; return their names. A bucket has no folders."""
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


def remove_empty_tree(store: Store, folder: str) -> None:
    """Remove a folder and its subfolders as far as they hold no file; a bucket has no folders."""
    if isinstance(store, HdfsStore):
        remove_empty(store, [*_hdfs(store, lambda name: False, folder).folders, folder])
    if isinstance(store, LocalStore) and not is_link(store, folder):
        for path, _, _ in os.walk(os.path.join(store.root, folder), topdown=False):
            with suppress(OSError):  # it is not empty, or may not be removed: it does no harm
                os.rmdir(path)


def _hdfs(store: HdfsStore, skip: Skip, folder: str = "") -> Tree:
    result = Tree()
    for files, entered, left_out in store.walk_folders(folder, skip):
        result.add(Tree(files, entered, left_out))
    return result


def _local(store: LocalStore, skip: Skip, threads: int) -> Tree:
    result = Tree()
    with ThreadPoolExecutor(threads, thread_name_prefix="anabranch-list") as pool:
        pending: set[Future[tuple[Tree, list[str]]]] = {pool.submit(_scan_folder, store, "", skip)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                part, folders = future.result()
                result.add(part)
                pending |= {pool.submit(_scan_folder, store, folder, skip) for folder in folders}
    return result


def _scan_folder(store: LocalStore, folder: str, skip: Skip) -> tuple[Tree, list[str]]:
    """One folder, and its subfolders that are still to be listed."""
    result, folders, before = Tree(), list[str](), f"{folder}/" if folder else ""
    try:
        with os.scandir(os.path.join(store.root, folder)) as entries:
            for entry in entries:
                name = before + entry.name
                if entry.is_dir(follow_symlinks=False):
                    (result.left_out if skip(name) else folders).append(name)
                elif entry.is_file(follow_symlinks=False) and not disk.is_aside(entry.name):
                    result.files.extend(_stat_entry(name, entry))
                elif entry.is_symlink():
                    result.links.append(name)
    except (FileNotFoundError, NotADirectoryError):
        return result, folders  # it was removed meanwhile
    except OSError as error:
        raise StoreError(name=folder, root=store.url, reason=f"{error.strerror or detail(error)}.") from cause(error)
    result.folders.extend(folders)
    return result, folders


def _stat_entry(name: str, entry: os.DirEntry[str]) -> list[Entry]:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return []
    return [Entry(name, status.st_size, status.st_mtime_ns // 1_000_000, None)]


def _bucket(store: ObjectStore, skip: Skip, threads: int) -> Tree:
    """One listing per folder at the root: keys come page after page, so several listings run at once."""
    top = store.top_folders()
    result = Tree(store.list_from(""), left_out=[folder for folder in top if skip(folder)])
    with ThreadPoolExecutor(threads, thread_name_prefix="anabranch-list") as pool:
        for entries in pool.map(store.list_all, [folder for folder in top if not skip(folder)]):
            result.add(_exclude_folders(entries, skip))
    return result


def _exclude_folders(entries: Iterable[Entry], skip: Skip) -> Tree:
    """The part of a listing, at any depth, that is not skipped."""
    result, left_out = Tree(), dict[str, None]()
    for entry in entries:
        excluded = next(filter(skip, folders_above(entry.name)), None)
        if excluded is None:
            result.files.append(entry)
        else:
            left_out[excluded] = None
    result.left_out.extend(left_out)
    return result
