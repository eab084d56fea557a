"""Own commits: which commits a program has made itself.

A program is a thread of this process: it runs one command after the other, so each of its commits has ended before its
next command begins. Knows ids and bases of transactions, and nothing of what they did. Guarantee: a commit of another
thread, process or engine is never taken for a program's own; one that was forgotten counts as somebody else's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from anabranch.errors.process_state import cache
from anabranch.log.commits import Commit
from anabranch.transaction.transaction import Transaction

_programs = cache("programs by their commits", 10_000)
"""Transaction id -> the program that committed it, and the version from which that began."""


class _Program(threading.local):
    """The program that runs on this thread, by an object that no other one has."""

    def __init__(self) -> None:
        self.mark = object()


_running = _Program()


def note_own(ours: Transaction) -> None:
    """This program has committed a transaction."""
    _programs[ours.txn_id] = _running.mark, -1 if ours.base is None else ours.base.version


def is_own(commit: Commit, *, since: int | None) -> bool:
    """Whether this program has made a commit by a command that began at a version or later; None: at any."""
    program, began = _programs.get(commit.txn_id, (None, -1))
    return program is _running.mark and began >= (-1 if since is None else since)


@contextmanager
def another_program() -> Iterator[None]:
    """Run a block as a program of its own, as each batch of a stream is: what was committed before the block is not its
    own, nor is what it commits afterwards.
    """
    before, _running.mark = _running.mark, object()
    try:
        yield
    finally:
        _running.mark = before
