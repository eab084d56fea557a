"""POSIX file operations: files written under a hidden name, names claimed atomically, folders made durable.

Knows paths and ``OSError``, but neither names of a store nor our errors. Guarantee: ``claim`` gives a name to one
caller only, and no call ever shows a file with a part of its bytes.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

_ASIDE = re.compile(r"\..*\.[0-9a-f]{32}\.tmp", re.DOTALL)
_NAME_CHARS_ASIDE = (
    40  # a file name holds 255 bytes, and even a long one must leave room for the rest of the hidden one
)
_NO_HARD_LINKS = {errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_REFUSALS = _NO_HARD_LINKS | {errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG, errno.ELOOP}
_REFUSALS |= {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EXDEV}
_AT_FDCWD, _RENAME_NOREPLACE = -100, 1
_FSYNCS_AT_ONCE = 8
_FSYNCS_IN_TURN = 4


def is_aside(name: str) -> bool:
    """Whether a file name is the hidden one of an unfinished write, perhaps by a writer that was killed."""
    return name.startswith(".") and _ASIDE.fullmatch(name) is not None  # most names fail the cheap first test


def open_regular_file(path: str) -> tuple[BinaryIO, os.stat_result]:
    """Open a regular file to read it, with its state; nothing waits for a writer at the other end of a pipe, and no
    device is touched.

    Raises:
        FileNotFoundError: the path is a pipe, a device or a socket.
        OSError: there is no such file, or it may not be read.
    """
    _check_regular(path, os.stat(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        _check_regular(path, status)
        return os.fdopen(descriptor, "rb"), status
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "it is no regular file", path)


def write_aside(path: str, chunks: Iterable[bytes], *, durably: bool = True) -> str:
    """Write the chunks, durably by default, to a hidden file beside ``path``; on failure nothing is left.

    Returns:
        the hidden path.

    Raises:
        OSError: they could not be written.
    """
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name[:_NAME_CHARS_ASIDE]}.{uuid.uuid4().hex}.tmp")
    try:
        with open(aside, "xb") as file:
            file.writelines(chunks)
            file.flush()
            if durably:
                os.fsync(file.fileno())
    except BaseException:
        forget(aside)
        raise
    return aside


def claim(aside: str, path: str) -> bool:
    """Give the file ``aside`` the name ``path`` unless it is taken; returns whether it is ours.

    Of any number of callers, threads or processes, one gets True. The aside name may remain.

    Raises:
        OSError: it is neither ours nor known to be taken; see ``is_refusal``.
    """
    try:
        os.link(aside, path)
    except OSError as error:
        # A kernel repeats a request whose answer from a file server got lost, and then finds its own link: only the
        # file under the name shows whose it is.
        if _is_one_file(aside, path):
            return True
        if error.errno == errno.EEXIST:
            return False
        if error.errno in _NO_HARD_LINKS:
            return _rename_unless_taken(aside, path)
        raise
    return True


def is_refusal(error: OSError) -> bool:
    """Whether this failure of ``claim`` or ``os.replace`` means that nothing happened; else the outcome is unknown."""
    return error.errno in _REFUSALS


def forget(aside: str) -> None:
    """Remove a file written aside. If that fails, it stays hidden and does no harm."""
    with contextlib.suppress(OSError):
        os.unlink(aside)


def make_folder(path: str) -> None:
    """Create a folder and its parents, each durable before anything is put into it.

    An existing folder counts as durable: the journal of any current file system writes its creation before a file that
    is synced in it later.
    """
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_folder(parent)
    with contextlib.suppress(FileExistsError):  # another writer was faster; if it made a file, the next call fails
        os.mkdir(path)
    sync(parent)


def sync(path: str) -> None:
    """Flush a file's bytes, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder (EINVAL): durability of names is up to their server.
        if error.errno != errno.EINVAL or not os.path.isdir(path):
            raise
    finally:
        os.close(descriptor)


def sync_all(paths: Iterable[str]) -> None:
    """``sync`` of many paths in parallel, since the disk merges flushes; a few are faster without threads."""
    paths = list(paths)
    if len(paths) <= _FSYNCS_IN_TURN:
        for path in paths:
            sync(path)
        return
    with ThreadPoolExecutor(_FSYNCS_AT_ONCE, thread_name_prefix="anabranch-sync") as pool:
        for _ in pool.map(sync, paths):
            pass


def _is_one_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _rename_unless_taken(aside: str, path: str) -> bool:
    """``claim`` on a file system without hard links: Linux renames without replacing, atomically as well."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise _unsupported_error(path)
    if rename(_AT_FDCWD, os.fsencode(aside), _AT_FDCWD, os.fsencode(path), _RENAME_NOREPLACE) == 0:
        return True
    number = ctypes.get_errno()
    if number == errno.EEXIST:
        return False
    raise _unsupported_error(path) if number in _NO_HARD_LINKS else OSError(number, os.strerror(number), path)


def _unsupported_error(path: str) -> OSError:
    """The error for a file system without both: any other way (check, then rename) would let two writers win."""
    return OSError(errno.ENOTSUP, "this file system can neither link a file nor rename one without replacing", path)
