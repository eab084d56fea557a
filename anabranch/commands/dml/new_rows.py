"""The new rows of an insert: what they read, which rows they replace, and how they become files.

Knows no writer: Spark's bulk writer and the small Arrow writer each have a `NewRows`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata, Protocol, empty_files
from anabranch._protocol.steps import Step
from anabranch._transaction.transaction import IdentityUse
from anabranch.commands.dml.replaced_rows import NothingReplaced, ReplacedRows
from anabranch.commands.opening import live_rows
from anabranch.commands.sources import NO_VERSIONS, VersionsRead


@dataclass(frozen=True)
class StagedRows:
    """New rows as files, which no commit references yet.

    Attributes:
        adds: the files.
        identity: the writer that reserved identity values for the rows, and the columns for which they had their own.
        steps: the steps that wrote them.
    """

    adds: pa.Table
    identity: IdentityUse = field(default_factory=IdentityUse)
    steps: tuple[Step, ...] = ()

    @property
    def metrics(self) -> dict[str, int]:
        """Their numbers of files, rows and bytes, by delta-spark's names."""
        return {
            "numFiles": len(self.adds),
            "numOutputRows": live_rows(self.adds) or 0,
            "numOutputBytes": sum(self.adds["size"].to_pylist()),
        }


class NewRows:
    """The rows of one running insert. This class itself has none, as CREATE TABLE, and replaces none."""

    def versions_read(self, base: Snapshot | None) -> VersionsRead:
        """The versions of the table from which the rows were computed; if any, every change may conflict. ``base`` is
        None if there is no table.
        """
        return NO_VERSIONS

    def replaced_rows(self, base: Snapshot) -> ReplacedRows:
        """The rows of the table that they replace."""
        return NothingReplaced()

    def stage(self, metadata: Metadata, protocol: Protocol) -> StagedRows:
        """Write the rows with this metadata and protocol; a second call, after a lost creation race, writes them to
        new files.
        """
        return StagedRows(empty_files())

    def discard(self) -> None:
        """Remove what was staged."""

    def finish(self) -> None:
        """Close the staging after the commit."""
