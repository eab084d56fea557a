"""Own commits: which commits a program has made itself.

A program is a thread of this process: it runs one command after the other, so each of its commits has ended before its
next command begins. Knows where a transaction stands, and nothing of what it did. Guarantee: a commit of another
thread, process or engine is never taken for a program's own, nor one that somebody else has put in the place of an own
one; one that was forgotten counts as somebody else's.
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
    """A commit: by whom, from which version it began, and where it stands, in how many bytes."""

    program: object
    began: int
    table: str
    version: int
    size: int


_commits = cache("programs by their commits", 10_000)
"""Transaction id -> its commit."""


class _Running(threading.local):
    """The program that runs on this thread, by an object that no other one has; a forked process has none of those."""

    def __init__(self) -> None:
        self.program, self.process = object(), os.getpid()


_running = _Running()


def note_own(ours: Transaction, version: int, size: int) -> None:
    """This program has committed a transaction; its commit file at a version has so many bytes."""
    began = -1 if ours.base is None else ours.base.version
    _commits[ours.txn_id] = _Own(_program(), began, ours.table, version, size)


def is_own(commit: Commit, table: str, *, since: int | None) -> bool:
    """Whether this program has made a commit of a table by a command that began at a version or later; None: at any."""
    known: _Own | None = _commits.get(commit.txn_id)
    if known is None or known.program is not _program() or known.began < (-1 if since is None else since):
        return False
    return (known.table, known.version, known.size) == (table, commit.version, commit.identity[0])


def _program() -> object:
    if _running.process != os.getpid():
        _running.program, _running.process = object(), os.getpid()
    return _running.program


@contextmanager
def another_program() -> Iterator[None]:
    """Run a block as a program of its own, as each batch of a stream is: what was committed before the block is not its
    own, nor is what it commits afterwards. The block yields to nobody.
    """
    before, _running.program = _program(), object()
    try:
        yield
    finally:
        _running.program = before
