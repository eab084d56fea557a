"""Appender: gathers appends of many callers in one process into few commits.

Knows the waiting callers, and runs one commit at a time; `anabranch.commands.dml.append` does the rest. Guarantees: a
caller who gets a version finds all of its rows there, once; the rows of a call are in one commit; if the table refuses
rows, only their own caller gets the error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import pyarrow as pa

from anabranch._transaction.own_commits import another_program
from anabranch.commands.dml.append import Append
from anabranch.errors import (
    AnabranchError,
    CommitOutcomeUnknown,
    DeltaConcurrentModificationException,
    InvalidArgument,
    StoreError,
)

MOST_BYTES = 128 << 20
"""Maximum size of a commit's rows in memory, in bytes, unless a single call is larger."""

_OF_ALL = (CommitOutcomeUnknown, DeltaConcurrentModificationException, StoreError)
"""Errors that do not depend on rows: all callers of a commit get them."""


@dataclass(frozen=True)
class _Call:
    rows: pa.Table
    told: Future[int] = field(default_factory=Future)


class Appender:
    """Gathers the rows of many callers and appends them in few commits; made by `anabranch.appender`.

    While one commit runs, new rows wait, and go together into the next one. A single caller does not wait. Close it, or
    use it in a ``with`` statement.
    """

    def __init__(self, append: Append) -> None:
        self._append = append
        self._lock, self._waiting, self._closed = Lock(), list[_Call](), False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="anabranch-appender")
        self._pid, self._context = os.getpid(), copy_context()  # the thread uses the session's storage options, too

    def append(self, rows: Any) -> int:
        """Append rows; returns the version of their commit.

        Arguments and errors are those of `anabranch.append`. Every caller in the same commit gets an error that does
        not depend on rows, such as ``CommitOutcomeUnknown``.
        """
        return self.submit(rows).result()

    def submit(self, rows: Any) -> Future[int]:
        """Append rows without waiting; returns the future of the version. It can be cancelled until its commit begins.

        Raises:
            InvalidOption, InvalidSchema: these are not rows.
            InvalidArgument: the appender is closed, or was made in a process of which this one is a fork.
        """
        call = _Call(self._append.as_table(rows))
        self._check_process()
        with self._lock:
            self._check_open()
            self._waiting.append(call)
            if len(self._waiting) == 1:
                self._thread.submit(self._context.run, self._commit_waiting)
        return call.told

    def close(self) -> None:
        """Commit the waiting rows, and accept no more."""
        with self._lock:
            self._closed = True
        self._thread.shutdown()

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check_process(self) -> None:
        if self._pid != os.getpid():  # before the lock, which the fork may have copied in its locked state
            reason = "it belongs to the process that this one was forked from; make another one."
            raise InvalidArgument(option="appender", value=self._pid, reason=reason)

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument(option="appender", value="closed", reason="make another one.")

    def _commit_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        running = [call for call in waiting if call.told.set_running_or_notify_cancel()]
        for calls in _together(running):
            self._commit(calls)

    def _commit(self, calls: Sequence[_Call]) -> None:
        """Append the rows of these calls in one commit, and set their futures."""
        try:
            rows = pa.concat_tables([call.rows for call in calls])
            with another_program():  # to the callers, commits of this thread are not their own
                version = replace(self._append, rows=rows).run().version
        except BaseException as error:
            if len(calls) > 1 and isinstance(error, AnabranchError) and not isinstance(error, _OF_ALL):
                half = len(calls) // 2  # nothing was committed, perhaps because of the rows of one call
                self._commit(calls[:half])
                self._commit(calls[half:])
                return
            for call in calls:
                call.told.set_exception(error)
            return
        for call in calls:
            call.told.set_result(version)


def _together(calls: Sequence[_Call]) -> Iterator[list[_Call]]:
    """Groups of calls that may share a commit: with the same columns, in order of arrival, and not too large."""
    by_schema: dict[pa.Schema, list[_Call]] = {}
    for call in calls:
        by_schema.setdefault(call.rows.schema.remove_metadata(), []).append(call)
    for same_schema in by_schema.values():
        group, size = list[_Call](), 0
        for call in same_schema:
            if group and size + call.rows.nbytes > MOST_BYTES:
                yield group
                group, size = [], 0
            group.append(call)
            size += call.rows.nbytes
        yield group
