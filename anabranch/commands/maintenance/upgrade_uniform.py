"""REORG TABLE … APPLY (UPGRADE UNIFORM(ICEBERG_COMPAT_VERSION=3)) makes a table readable as an Iceberg table.

Knows what Iceberg compatibility requires of a table (PROTOCOL.md, "Iceberg Compatibility V2", and
protocol_rfcs/iceberg-compat-v3.md), and which files lack it. Before the third version all files get row ids, in commits
of their own. Guarantees: flag, mapping, protocol and rewritten files come in one commit, which changes no data and
directly follows the version that was read, or fails. It produces no Iceberg metadata, so it does not set
``delta.universalFormat.enabledFormats``, which promises that: an engine that produces such metadata sets it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata, compact_json
from anabranch._protocol.features.row_tracking import is_enabled, with_columns
from anabranch._protocol.features.table_features import check_writable, upgrade_for_metadata
from anabranch._protocol.iceberg import TRACKED, VECTORS, VERSIONS, flags
from anabranch._protocol.schema.column_mapping import BY_NAME, MODE, is_mapped
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.phases import reach
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.ddl.iceberg import incompatibility
from anabranch.commands.ddl.row_tracking import backfill_all
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, filter_files, open_log
from anabranch.commands.rewriting import Rewrite
from anabranch.commands.watching import watch
from anabranch.errors import InvalidOption

_VERSIONS = (2, 3)
_THIRD = 3


@dataclass(frozen=True)
class UpgradeUniform(SecretFree):
    """Make a table compatible with Iceberg: mapped by name, files with field ids and partitions; without deletion
    vectors in version 2, with row tracking in version 3.

    Danger: it rewrites the files that lack something, often all; every concurrent write makes it fail.

    Example:
        >>> UpgradeUniform("/data/flights").run(engine)
    """

    table: Location
    version: int = 2

    @watch("REORG")
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if the table is compatible already.

        Raises:
            InvalidOption: the version of the compatibility is neither 2 nor 3.
            InvalidProperty: the table has a type that Iceberg does not have.
            NotBuilt: the engine cannot write such files.
            DeltaConcurrentModificationException: the table was written meanwhile.
        """
        if self.version not in _VERSIONS:
            reason = "this command makes tables compatible with version 2 or 3."
            raise InvalidOption(option="ICEBERG_COMPAT_VERSION", value=self.version, reason=reason)
        engine, log = require_engine(engine, self), open_log(self.table)
        base = context.snapshot(log)
        check_writable(base.table, base.protocol, base.metadata)
        plan = self._checked_plan(base, context.runtime)
        if plan is None:
            return None
        if plan.metadata is not None and is_enabled(plan.metadata) and not is_enabled(base.metadata):
            plan = self._checked_plan(backfill_all(log, context), context.runtime)
            assert plan is not None, "it enables row tracking at least"
        reach("read")
        return plan.run(engine, log, context)

    def _checked_plan(self, base: Snapshot, runtime: Runtime) -> Rewrite | None:
        plan = _plan(base, self.version, runtime)
        if plan is not None:
            check_writable(base.table, plan.protocol or base.protocol, plan.metadata or base.metadata)
        return plan


def _plan(base: Snapshot, version: int, runtime: Runtime) -> Rewrite | None:
    metadata = compatible(base.metadata, version, runtime)
    files = filter_files(
        base.files, pa.array([incompatibility(base, metadata, file) is not None for file in base.files.to_pylist()])
    )
    if metadata == base.metadata and not len(files):
        return None
    current = base.metadata.configuration
    changed = {key: value for key, value in metadata.configuration.items() if current.get(key) != value}
    return Rewrite(
        base,
        files,
        metadata,
        upgrade_for_metadata(base.protocol, metadata),
        operation="REORG TABLE UPGRADE UNIFORM",
        parameters={"properties": compact_json(changed)},
    )


def compatible(metadata: Metadata, version: int, runtime: Runtime) -> Metadata:
    """The table's metadata, made compatible with a version; columns that have a mapping keep it."""
    current, flag = metadata.configuration, VERSIONS[version]
    requested = {flag: "true", **{other: "false" for other in flags(current) if other != flag}}
    if not is_mapped(current):
        requested[MODE] = BY_NAME
    if version == _THIRD and not is_enabled(metadata):
        requested[TRACKED] = "true"
    if version != _THIRD and current.get(VECTORS, "").strip().lower() == "true":
        requested[VECTORS] = "false"
    if flag in flags(current) and len(requested) == 1:
        return metadata
    changed = replace(metadata, configuration={**current, **requested})
    return with_columns(changed.with_schema(metadata.schema, runtime.new_id, named=True), runtime.new_id)
