"""Removes the traces of a feature's use from a table, before the feature is removed from its protocol.

Knows for each feature what delta-spark 4 removes, and in which order: properties first, so that writers stop using the
feature, then files and columns. Guarantees: each step is its own commit, after which the table is valid; when this
returns, the newest version does not use the feature; otherwise it raises an error.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import DomainMetadata, compact_json
from anabranch._protocol.features.known import COLUMN_MAPPING, DELETION_VECTORS, ROW_TRACKING
from anabranch._protocol.features.removable import DOMAINS, Removable, without_columns_of
from anabranch._protocol.features.row_tracking import without_ids
from anabranch._protocol.features.widening import LISTED_BY, TYPE_CHANGES
from anabranch._transaction.commit import commit
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.transaction import Changes, CommitInfo, Declarations, Transaction
from anabranch.commands.context import RunContext
from anabranch.commands.ddl.alter import Alteration, run_alteration
from anabranch.commands.ddl.remove_mapping import remove_mapping
from anabranch.commands.ddl.types_in_files import files_with_older_types
from anabranch.commands.engine import Engine
from anabranch.commands.rewriting import Rewrite
from anabranch.errors import ExecutionFailed


def remove_traces(log: Log, feature: Removable, engine: Engine, context: RunContext) -> bool:
    """Remove the traces of the feature; return whether there were any. Raises DeltaConcurrentModificationException: the
    table was written meanwhile; completed steps stay.
    """
    if feature.name == COLUMN_MAPPING:
        return remove_mapping(log.snapshot(), log, engine, context) is not None
    has_removed = _switch_off(log.snapshot(), feature, context)
    if feature.name == DOMAINS:
        has_removed = _remove_domains(log, context) or has_removed
    if feature.name == DELETION_VECTORS:
        has_removed = _purge(log, engine, context) or has_removed
    if feature.name == ROW_TRACKING:
        has_removed = _remove_row_ids(log, feature, context) or has_removed
    if feature.name in LISTED_BY:
        has_removed = _remove_type_changes(log, feature, engine, context) or has_removed
    return has_removed


def _switch_off(base: Snapshot, feature: Removable, context: RunContext) -> bool:
    """Change the properties that use the feature."""
    if not feature.is_switched_on(base.metadata):
        return False
    after = feature.properties_when_off(base.metadata)
    change = Alteration(*_operation_and_parameters(base, after), replace(base.metadata, configuration=after))
    run_alteration(base.table, lambda _: change, replace(context, at=base))
    return True


def _operation_and_parameters(base: Snapshot, after: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Operation and parameters of a changed configuration in the history."""
    present = base.metadata.configuration
    changed = {key: value for key, value in after.items() if present.get(key) != value}
    if changed:
        return "SET TBLPROPERTIES", {"properties": compact_json(changed)}
    removed = [key for key in present if key not in after]
    return "UNSET TBLPROPERTIES", {"properties": compact_json(removed), "ifExists": "true"}


# -- domains -----------------------------------------------------------------------------------------------------------


def _remove_domains(log: Log, context: RunContext) -> bool:
    base = log.snapshot()
    if not base.state.domains:
        return False
    info = CommitInfo("REMOVE DOMAIN METADATA", {"domains": compact_json(sorted(base.state.domains))})
    says = Declarations(domains=remove_domains(base, *base.state.domains))
    ours = Transaction.on(base, str(context.runtime.new_id()), info, declarations=says)
    commit(ours, log, NoRows(), context.policy(), context.runtime)
    return True


def remove_domains(base: Snapshot, *names: str) -> tuple[DomainMetadata, ...]:
    """The actions that remove these domains, as far as the table has them."""
    domains = base.state.domains
    return tuple(replace(domains[name], removed=True) for name in names if name in domains)


# -- deletion vectors --------------------------------------------------------------------------------------------------


def _purge(log: Log, engine: Engine, context: RunContext) -> bool:
    """Rewrite the files with deletion vectors, with their live rows only."""
    base = log.snapshot()
    files = base.files.filter(pc.is_valid(base.files["deletionVector"]))
    if not len(files):
        return False
    Rewrite(base, files).run(engine, log, context)
    return True


# -- types and names of columns ----------------------------------------------------------------------------------------


def _remove_type_changes(log: Log, feature: Removable, engine: Engine, context: RunContext) -> bool:
    """Rewrite the files that are older than a change of type, then remove the record of the changes.

    The second commit directly follows the version in which all files have the table's types.
    """
    base = log.snapshot()
    if not feature.is_in_columns(base.metadata):
        return False
    old = files_with_older_types(base)
    if len(old):
        Rewrite(base, old).run(engine, log, context)
        base = log.snapshot()
        if len(files_with_older_types(base)):
            reason = "a file of an older type was committed meanwhile; run this again."
            raise ExecutionFailed(what="DROP FEATURE", reason=reason)
    parameters = {"columns": compact_json([field.name for field in base.schema if TYPE_CHANGES in field.metadata])}
    change = Alteration("DROP FEATURE", parameters, without_columns_of(base.metadata, feature))
    run_alteration(base.table, lambda _: change, replace(context, at=base))
    return True


# -- row ids -----------------------------------------------------------------------------------------------------------


def _remove_row_ids(log: Log, feature: Removable, context: RunContext) -> bool:
    """Commit the files that have row ids again without them: if the feature is added again, ids begin at 0.

    This must not bring back a file that was removed meanwhile; the commit repeats the metadata, so every concurrent
    write is a conflict.
    """
    base = log.snapshot()
    if not feature.is_used_in(base.files):
        return False
    numbered = pc.or_(*(pc.is_valid(base.files[name]) for name in feature.file_fields))
    files = without_ids(base.files.filter(numbered))
    ours = Transaction.on(
        base,
        str(context.runtime.new_id()),
        CommitInfo("ROW TRACKING UNBACKFILL", {"batchId": "0"}),
        changes=Changes(adds=files, data_change=False),
        declarations=Declarations(metadata=base.metadata),
    )
    reach("staged")
    commit(ours, log, NoRows(), context.policy(), context.runtime)
    return True
