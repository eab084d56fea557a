"""How a command is called: ``command.run(engine, context)``, the same for all of them.

Knows nothing of any single command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._transaction.retry import RetryPolicy, Runtime, default_retry
from anabranch.commands.engine import Engine
from anabranch.errors import InvalidOption

Newest = Literal["newest"]
"""The start of a command that was not parsed for a certain version."""

Progress = Callable[[str, int, int], None]
"""Receives the name of a step, how much of it is done, and how much there is in all."""


def ignore_progress(step: str, done: int, of: int) -> None:
    """Ignore reports of progress."""


@dataclass(frozen=True)
class RunContext:
    """Where and how a command runs.

    Attributes:
        at: the version for which the command was parsed; None: there was no table then.
        retry: bounds on its commits; None: the defaults for each commit.
        runtime: clock, random numbers and ids.
        progress: receives the progress of long commands.

    Example:
        >>> Delete("/data/flights", where).run(engine, RunContext(at=snapshot))
    """

    at: Snapshot | Newest | None = "newest"
    retry: RetryPolicy | None = None
    runtime: Runtime = field(default_factory=Runtime)
    progress: Progress = ignore_progress

    def snapshot(self, log: Log) -> Snapshot:
        """The version that the command reads.

        Raises:
            NotATable: there is no table.
        """
        return self.at if isinstance(self.at, Snapshot) else log.snapshot()

    def snapshot_if_any(self, log: Log) -> Snapshot | None:
        """The version that the command reads, for commands that may create the table; None if there is no table."""
        return log.newest() if self.at == "newest" else self.at

    def policy(self, *, blind: bool = False) -> RetryPolicy:
        """The bounds on one commit; ``blind``: it reads nothing of the table."""
        return self.retry or default_retry(blind=blind)


NEWEST = RunContext()


class Command(Protocol):
    """A command: a frozen value that describes what to do, and runs."""

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Any:
        """Run it and return the result; some commands need no engine, others raise `InvalidOption` without one."""
        ...


def require_engine(engine: Engine | None, command: Command) -> Engine:
    """The engine. Raises InvalidOption if there is none, for commands that read rows."""
    if engine is None:
        reason = f"{type(command).__name__} looks at rows: run it with an engine."
        raise InvalidOption(option="engine", value=None, reason=reason)
    return engine
