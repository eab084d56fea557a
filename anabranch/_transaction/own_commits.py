"""Own commits: which commits a program has made itself.

A program is a thread of this process: it runs one command after the other, so each of its commits has ended before its
next command begins. Knows a transaction's position, and nothing of its changes. Guarantee: a commit of another thread,
process or engine never counts as a program's own, nor does one that has replaced an own commit; a forgotten commit
counts as another's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from anabranch._log.commits import Commit
from anabranch._transaction.transaction import Transaction
from anabranch.errors.process_state import cache


@dataclass(frozen=True)
class _Own:
    """A commit of a program: the version at which it began, its own version, and the size of its file in bytes."""

    program: object
    began: int
    table: str
    version: int
    size: int


_commits = cache("programs by their commits", 10_000)
"""The commits by transaction id."""


class _Running(threading.local):
    """The program of this thread, identified by an object; a forked process begins with new programs."""

    def __init__(self) -> None:
        self.program, self.process = object(), os.getpid()


_running = _Running()


def note_own(ours: Transaction, version: int, size: int) -> None:
    """Remember a commit of this program; ``size`` is that of the commit file, in bytes."""
    began = -1 if ours.base is None else ours.base.version
    _commits[ours.txn_id] = _Own(_program(), began, ours.table, version, size)


def is_own(commit: Commit, table: str, *, since: int | None) -> bool:
    """Whether this program made a commit of a table by a command that began at ``since`` or later (None: at any)."""
    own: _Own | None = _commits.get(commit.txn_id)
    if own is None or own.program is not _program() or own.began < (-1 if since is None else since):
        return False
    return (own.table, own.version, own.size) == (table, commit.version, commit.identity[0])


def _program() -> object:
    if _running.process != os.getpid():
        _running.program, _running.process = object(), os.getpid()
    return _running.program


@contextmanager
def another_program() -> Iterator[None]:
    """Run a block as a program of its own, as each batch of a stream is: commits before the block are not its own, nor
    are its commits those of the program outside. The block must not yield to other code.
    """
    before, _running.program = _program(), object()
    try:
        yield
    finally:
        _running.program = before
