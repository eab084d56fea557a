"""Traces: what shows the use of a feature is taken out of a table, before the feature is taken out of its protocol.

Knows for each feature what delta-spark 4 takes out, and in which order: properties first, so that no writer that sees
them uses the feature any more, then files and columns. Guarantees: each step is a commit of its own that leaves the
table whole; the newest version shows no use of the feature when this returns, or an error was raised.
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
from anabranch.commands.ddl.types_in_files import older_than_types
from anabranch.commands.engine import Engine
from anabranch.commands.rewriting import Rewriting
from anabranch.errors import ExecutionFailed


def remove_traces(log: Log, feature: Removable, engine: Engine, context: RunContext) -> bool:
    """Take out what shows the feature; whether there was anything. Raises DeltaConcurrentModificationException: the
    table was written meanwhile; what was done so far stays done.
    """
    if feature.name == COLUMN_MAPPING:
        return remove_mapping(log.snapshot(), log, engine, context) is not None
    done = _switch_off(log.snapshot(), feature, context)
    if feature.name == DOMAINS:
        done = _remove_domains(log, context) or done
    if feature.name == DELETION_VECTORS:
        done = _purge(log, engine, context) or done
    if feature.name == ROW_TRACKING:
        done = _forget_row_ids(log, feature, context) or done
    if feature.name in LISTED_BY:
        done = _unwiden(log, feature, engine, context) or done
    return done


def _switch_off(base: Snapshot, feature: Removable, context: RunContext) -> bool:
    """Give the properties that use the feature other values."""
    if not feature.is_switched_on(base.metadata):
        return False
    after = feature.properties_when_off(base.metadata)
    change = Alteration(*_operation_and_parameters(base, after), replace(base.metadata, configuration=after))
    run_alteration(base.table, lambda _: change, replace(context, at=base))
    return True


def _operation_and_parameters(base: Snapshot, after: dict[str, str]) -> tuple[str, dict[str, str]]:
    """How the history names another configuration."""
    known = base.metadata.configuration
    changed = {key: value for key, value in after.items() if known.get(key) != value}
    if changed:
        return "SET TBLPROPERTIES", {"properties": compact_json(changed)}
    gone = [key for key in known if key not in after]
    return "UNSET TBLPROPERTIES", {"properties": compact_json(gone), "ifExists": "true"}


# -- domains -----------------------------------------------------------------------------------------------------------


def _remove_domains(log: Log, context: RunContext) -> bool:
    base = log.snapshot()
    if not base.state.domains:
        return False
    info = CommitInfo("REMOVE DOMAIN METADATA", {"domains": compact_json(sorted(base.state.domains))})
    says = Declarations(domains=remove_domains(base, *base.state.domains))
    ours = Transaction.on(base, str(context.runtime.new_id()), info, says=says)
    commit(ours, log, NoRows(), context.policy(), context.runtime)
    return True


def remove_domains(base: Snapshot, *names: str) -> tuple[DomainMetadata, ...]:
    """Those of these domains that a table has, as they are removed."""
    known = base.state.domains
    return tuple(replace(known[name], removed=True) for name in names if name in known)


# -- deletion vectors --------------------------------------------------------------------------------------------------


def _purge(log: Log, engine: Engine, context: RunContext) -> bool:
    """Write the files with deletion vectors anew, with their live rows only."""
    base = log.snapshot()
    files = base.files.filter(pc.is_valid(base.files["deletionVector"]))
    if not len(files):
        return False
    Rewriting(base, files).run(engine, log, context)
    return True


# -- types and names of columns ----------------------------------------------------------------------------------------


def _unwiden(log: Log, feature: Removable, engine: Engine, context: RunContext) -> bool:
    """Write the files anew that are older than a change of type, then forget the changes.

    What is forgotten stands directly behind the version whose files all have the types that the table says.
    """
    base = log.snapshot()
    if not feature.is_in_columns(base.metadata):
        return False
    old = older_than_types(base)
    if len(old):
        Rewriting(base, old).run(engine, log, context)
        base = log.snapshot()
        if len(older_than_types(base)):
            reason = "a file of an older type was committed meanwhile; run this again."
            raise ExecutionFailed(what="DROP FEATURE", reason=reason)
    parameters = {"columns": compact_json([each.name for each in base.schema if TYPE_CHANGES in each.metadata])}
    change = Alteration("DROP FEATURE", parameters, without_columns_of(base.metadata, feature))
    run_alteration(base.table, lambda _: change, replace(context, at=base))
    return True


# -- row ids -----------------------------------------------------------------------------------------------------------


def _forget_row_ids(log: Log, feature: Removable, context: RunContext) -> bool:
    """Name the files that have row ids again without them: were the feature ever listed anew, its ids would begin at 0.

    What is named again must not bring back what somebody took away meanwhile; the metadata, said again as it is, makes
    every other write a conflict.
    """
    base = log.snapshot()
    if not feature.is_used_in(base.files):
        return False
    numbered = pc.or_(*(pc.is_valid(base.files[each]) for each in feature.file_fields))
    files = without_ids(base.files.filter(numbered))
    ours = Transaction.on(
        base,
        str(context.runtime.new_id()),
        CommitInfo("ROW TRACKING UNBACKFILL", {"batchId": "0"}),
        does=Changes(adds=files, data_change=False),
        says=Declarations(metadata=base.metadata),
    )
    reach("staged")
    commit(ours, log, NoRows(), context.policy(), context.runtime)
    return True
