"""REORG TABLE … APPLY (UPGRADE UNIFORM(ICEBERG_COMPAT_VERSION=2)) makes a table readable as an Iceberg table.

Knows what Iceberg compatibility requires of a table (PROTOCOL.md, "Iceberg Compatibility V2"), and which files lack it.
Guarantees: flag, mapping, protocol and rewritten files come in one commit, which changes no data and directly follows
the version that was read, or fails. It produces no Iceberg metadata, so it does not set
``delta.universalFormat.enabledFormats``, which promises that: an engine that produces such metadata sets it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata, compact_json
from anabranch._protocol.features.table_features import check_writable, upgrade_for_metadata
from anabranch._protocol.iceberg import ICEBERG_V1, VECTORS, flags
from anabranch._protocol.schema.column_mapping import BY_NAME, ICEBERG_V2, MODE, is_mapped
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.phases import reach
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.ddl.iceberg import incompatibility
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, filter_files, open_log
from anabranch.commands.rewriting import Rewrite
from anabranch.commands.watching import watch
from anabranch.errors import InvalidOption


@dataclass(frozen=True)
class UpgradeUniform(SecretFree):
    """Make a table compatible with Iceberg: mapped by name, no deletion vectors, files with field ids and partitions.

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
            InvalidOption: the version of the compatibility is not 2.
            InvalidProperty: the table has a type that Iceberg does not have.
            NotBuilt: the engine cannot write such files.
            DeltaConcurrentModificationException: the table was written meanwhile.
        """
        if self.version != 2:
            reason = "this command makes tables compatible with version 2."
            raise InvalidOption(option="ICEBERG_COMPAT_VERSION", value=self.version, reason=reason)
        engine, log = require_engine(engine, self), open_log(self.table)
        base = context.snapshot(log)
        check_writable(base.table, base.protocol, base.metadata)
        plan = _plan(base, context.runtime)
        if plan is None:
            return None
        check_writable(base.table, plan.protocol or base.protocol, plan.metadata or base.metadata)
        reach("read")
        return plan.run(engine, log, context)


def _plan(base: Snapshot, runtime: Runtime) -> Rewrite | None:
    metadata = compatible(base.metadata, runtime)
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


def compatible(metadata: Metadata, runtime: Runtime) -> Metadata:
    """The table's metadata, made compatible with Iceberg; columns that have a mapping keep it."""
    current = metadata.configuration
    requested = {ICEBERG_V2: "true"}
    if not is_mapped(current):
        requested[MODE] = BY_NAME
    if ICEBERG_V1 in flags(current):
        requested[ICEBERG_V1] = "false"
    if current.get(VECTORS, "").strip().lower() == "true":
        requested[VECTORS] = "false"
    if ICEBERG_V2 in flags(current) and len(requested) == 1:
        return metadata
    return replace(metadata, configuration={**current, **requested}).with_schema(
        metadata.schema, runtime.new_id, named=True
    )
