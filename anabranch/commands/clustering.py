"""How a table's files are laid out: by which columns it is clustered.

Knows what a command asks of the layout and what the table has. Guarantee: the domain, the features and the statistics
that a clustered table needs come in the same commit as the clustering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata
from anabranch._protocol.features.table_features import check_writable, with_features
from anabranch._protocol.layout.clustering import (
    DOMAIN,
    FEATURES,
    Path,
    check_clustering,
    domain_of,
    resolve_columns,
    same_clustering,
    sql_names,
)
from anabranch._transaction.commit import Committed, commit
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.transaction import CommitInfo, Transaction
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, Masked, open_log
from anabranch.errors import AppendOnlyTable, InvalidOption


def check_changeable(base: Snapshot, operation: str, *, changes_rows: bool) -> None:
    """Raises an error unless this version may write a table's rows, in the layout that the table has.

    Args:
        changes_rows: whether it takes rows away.

    Raises:
        UnsupportedFeature: it needs what is not built here. AppendOnlyTable: its rows may not be changed.
        InvalidOption: a clustering column gets no statistics, as the protocol demands.
    """
    check_writable(base.table, base.protocol, base.metadata)
    if changes_rows and base.properties.append_only:
        raise AppendOnlyTable(table=base.table, operation=operation)
    check_clustering(base.clustering_columns, base.metadata)


def clusters_of(
    asked: Sequence[Path] | None, metadata: Metadata, base: Snapshot | None = None, *, lays_out: bool = True
) -> tuple[Path, ...]:
    """By which columns a table with this metadata is clustered, where a write asks for some, or for nothing (None).

    ``lays_out``: what is asked for takes the place of what the table has; else it must be the same.

    Raises:
        InvalidOption: the table cannot be clustered so, or is clustered otherwise.
    """
    present = base.clustering_columns if base is not None else ()
    if asked is None and not lays_out:
        wanted = present
    else:
        wanted = resolve_columns(asked or (), metadata.schema)
        if not lays_out and wanted != present:
            reason = f"the table is clustered by {', '.join(sql_names(present)) or 'nothing'}."
            raise InvalidOption(option="clusterBy", value=sql_names(wanted), reason=reason)
    check_clustering(wanted, metadata)
    return wanted


def with_clustering(ours: Transaction, columns: Sequence[Path]) -> Transaction:
    """Ours as it also says by which columns the table is clustered, with the features that this needs, where that is
    not what the table says already.
    """
    base, metadata, protocol = ours.base, ours.metadata, ours.protocol
    assert metadata is not None, "a transaction that creates a table brings its metadata"
    assert protocol is not None, "and its protocol"
    domain = domain_of(columns, metadata.schema)
    said = base.state.domains.get(DOMAIN) if base is not None else None
    if same_clustering(domain, said):
        return ours
    upgraded = with_features(protocol, FEATURES)
    changed = ours.says.protocol if upgraded == protocol else upgraded
    return replace(ours, says=replace(ours.says, protocol=changed, domains=(*ours.says.domains, domain)))


@dataclass(frozen=True)
class ClusterBy(Masked):
    """ALTER TABLE … CLUSTER BY: other clustering columns from now on, or none; files that are there stay as they are.

    Source: PROTOCOL.md "Clustered Table".

    Example:
        >>> ClusterBy("/data/flights", paths_of(["day"])).run()
    """

    table: Location
    columns: tuple[Path, ...]

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> Committed | None:
        """Run it; None where the table is clustered so already.

        Raises:
            InvalidOption: the table cannot be clustered so; with the reason.
            DeltaConcurrentModificationException: its metadata, its protocol or its clustering were changed meanwhile.
        """
        log = open_log(self.table)
        base = context.snapshot(log)
        check_writable(base.table, base.protocol, base.metadata)
        columns = clusters_of(self.columns, base.metadata, base)
        reach("read")
        old, new = ",".join(sql_names(base.clustering_columns)), ",".join(sql_names(columns))
        info = CommitInfo("CLUSTER BY", {"oldClusteringColumns": old, "newClusteringColumns": new})
        ours = with_clustering(Transaction.on(base, str(context.runtime.new_id()), info), columns)
        if not ours.says.domains:
            return None
        reach("staged")
        return commit(ours, log, NoRows(), context.policy(), context.runtime)
