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
"""Where a command starts that was not understood for a certain version before."""

Progress = Callable[[str, int, int], None]
"""Is told of a step's name, how much of it is done and how much there is."""


def ignore_progress(step: str, done: int, of: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class RunContext:
    """Where and how a command runs.

    Attributes:
        at: the version for which the command was understood; None: there was no table then.
        retry: bounds on its commits; None: those that suit each commit.
        runtime: clock, chance and ids.
        progress: hears of the steps of commands that take long.

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
        """The same for commands that may create the table; None where there is none."""
        return log.newest() if self.at == "newest" else self.at

    def policy(self, *, blind: bool = False) -> RetryPolicy:
        """The bounds on one commit; ``blind``: it reads nothing of the table."""
        return self.retry or default_retry(blind=blind)


NEWEST = RunContext()


class Command(Protocol):
    """What the user meant: a frozen value that runs."""

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Any:
        """Run it and return what was done; some commands need no engine, others raise `InvalidOption` without one."""
        ...


def require_engine(engine: Engine | None, command: Command) -> Engine:
    """Raises InvalidOption unless there is an engine, for commands that look at rows."""
    if engine is None:
        reason = f"{type(command).__name__} looks at rows: run it with an engine."
        raise InvalidOption(option="engine", value=None, reason=reason)
    return engine
