"""The clustering of a table: the columns by which its files are laid out.

Knows the clustering that a command requests and the table's. Guarantee: the domain, the features and the statistics
that a clustered table needs are in the same commit as the clustering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import Metadata
from anabranch._protocol.dials import strengthen
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
from anabranch._protocol.session_settings import current_dials
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.transaction import CommitInfo, Transaction
from anabranch.commands.context import NEWEST, RunContext
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.rerunning import rerunnable, with_redone_runs
from anabranch.errors import AppendOnlyTable, InvalidOption


def check_changeable(base: Snapshot, operation: str, *, changes_rows: bool) -> None:
    """Raises an error unless rows of the table may be written, in its present layout.

    Args:
        changes_rows: whether the operation deletes or changes rows.

    Raises:
        UnsupportedFeature: the table needs an unknown feature. AppendOnlyTable: its rows may not be changed.
        InvalidOption: a clustering column has no statistics, which the protocol requires; or the session or the command
            asks for a weaker isolation level than the table's.
    """
    check_writable(base.table, base.protocol, base.metadata)
    strengthen(base.properties, current_dials(), base.table)
    if changes_rows and base.properties.append_only:
        raise AppendOnlyTable(table=base.table, operation=operation)
    check_clustering(base.clustering_columns, base.metadata)


def clustering_of_write(
    asked: Sequence[Path] | None, metadata: Metadata, base: Snapshot | None = None, *, lays_out: bool = True
) -> tuple[Path, ...]:
    """The clustering columns of a table with this metadata, if a write requests some, or does not request any (None).

    ``lays_out``: the request replaces the table's clustering; otherwise it must equal it.

    Raises:
        InvalidOption: the table cannot be clustered that way, or has another clustering.
    """
    present = base.clustering_columns if base is not None else ()
    if asked is None and not lays_out:
        columns = present
    else:
        columns = resolve_columns(asked or (), metadata.schema)
        if not lays_out and columns != present:
            reason = f"the table is clustered by {', '.join(sql_names(present)) or 'nothing'}."
            raise InvalidOption(option="clusterBy", value=sql_names(columns), reason=reason)
    check_clustering(columns, metadata)
    return columns


def with_clustering(ours: Transaction, columns: Sequence[Path]) -> Transaction:
    """The transaction with the clustering columns added, and the features that they need, unless the table has them
    already.
    """
    base, metadata, protocol = ours.base, ours.metadata, ours.protocol
    assert metadata is not None, "a transaction that creates a table brings its metadata"
    assert protocol is not None, "and its protocol"
    domain = domain_of(columns, metadata.schema)
    present = base.state.domains.get(DOMAIN) if base is not None else None
    if same_clustering(domain, present):
        return ours
    upgraded = with_features(protocol, FEATURES)
    changed = ours.declarations.protocol if upgraded == protocol else upgraded
    return replace(
        ours, declarations=replace(ours.declarations, protocol=changed, domains=(*ours.declarations.domains, domain))
    )


@dataclass(frozen=True)
class ClusterBy(SecretFree):
    """ALTER TABLE … CLUSTER BY: set the clustering columns of future writes, or none; existing files stay as they are.

    Source: PROTOCOL.md "Clustered Table".

    Example:
        >>> ClusterBy("/data/flights", paths_of(["day"])).run()
    """

    table: Location
    columns: tuple[Path, ...]

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if the table has this clustering already.

        Raises:
            InvalidOption: the table cannot be clustered that way; with the reason.
            DeltaConcurrentModificationException: its metadata, its protocol or its clustering was changed meanwhile.
        """
        log = open_log(self.table)
        base = context.snapshot(log)
        check_writable(base.table, base.protocol, base.metadata)
        columns = clustering_of_write(self.columns, base.metadata, base)
        reach("read")
        old, new = ",".join(sql_names(base.clustering_columns)), ",".join(sql_names(columns))
        info = CommitInfo("CLUSTER BY", {"oldClusteringColumns": old, "newClusteringColumns": new})
        ours = with_clustering(Transaction.on(base, str(context.runtime.new_id()), info), columns)
        if not ours.declarations.domains:
            return None
        reach("staged")
        return commit(with_redone_runs(ours), log, NoRows(), context.policy(), context.runtime)
