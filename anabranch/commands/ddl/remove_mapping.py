"""Removes column mapping from a table: rewrites every file with the logical names of its columns.

Knows a mapped table at one version. Guarantee: one commit removes the mapping and adds the new files, directly after
that version, or nothing is committed; the protocol still lists the feature, which older versions need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features.known import COLUMN_MAPPING
from anabranch._protocol.features.removable import REMOVABLE, to_drop, without_columns_of
from anabranch._protocol.schema.column_mapping import MODE, UNMAPPED, is_mapped, mode_of
from anabranch._transaction.commit import CommitResult
from anabranch.commands.context import RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.rewriting import Rewrite


def ends_mapping(before: Mapping[str, str], mode: str | None) -> bool:
    """Whether a table with these properties is mapped, and would not be with this mode; None: the mode is unset."""
    return is_mapped(before) and mode_of({} if mode is None else {MODE: mode}) == UNMAPPED


def check_removable(base: Snapshot) -> None:
    """Raises FeatureNotDropped unless files can have the logical names, and nothing in the table needs the mapping."""
    to_drop(base.table, COLUMN_MAPPING, base.protocol, base.metadata, truncates=False)


def remove_mapping(
    base: Snapshot, log: Log, engine: Engine, context: RunContext, says: Mapping[str, str] | None = None
) -> CommitResult | None:
    """Rewrite all files with the logical names of columns, and remove the physical ones; None if the table has no
    mapping. ``says`` are properties that the commit sets.

    Raises:
        DeltaConcurrentModificationException: the table was written meanwhile.
    """
    feature = REMOVABLE[COLUMN_MAPPING]
    if not feature.is_used_by(base.metadata):
        return None
    configuration = {**feature.properties_when_off(base.metadata), **(says or {})}
    metadata = replace(without_columns_of(base.metadata, feature), configuration=configuration)
    files = base.files if is_mapped(base.metadata.configuration) else base.files.slice(0, 0)
    plan = Rewrite(base, files, metadata, operation="REMOVE COLUMN MAPPING", parameters={})
    return plan.run(engine, log, context)
