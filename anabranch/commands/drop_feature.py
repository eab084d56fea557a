"""DROP FEATURE: take a feature out of a table's protocol, so that engines which do not know it can use the table.

Knows the order of the steps: what uses the feature goes first, each in a commit of its own; then, where older versions
would need it, history is guarded (a checkpoint, and the feature that keeps it) or cut off; then the protocol loses it.
Guarantees: the protocol never lacks a feature that the version before it uses; the last commit stands directly behind
the version that was looked at, or fails; a command that failed half-way left a table that is whole, and can be run
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from anabranch.commands.alter import NOW, Alteration, Moment, run_alteration
from anabranch.commands.change import RowHands, rows_of, staged_and_committed, with_counts
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, file_set, open_log
from anabranch.commands.staging import Staging
from anabranch.errors import ExecutionFailed, FeatureNotDropped
from anabranch.log.cleanup import YOUNGEST_MS, is_whole
from anabranch.log.log import Log, forget
from anabranch.log.names import commit_version, first_name
from anabranch.log.parts import checkpoints_in
from anabranch.log.snapshot import Snapshot
from anabranch.protocol.actions import DomainMetadata
from anabranch.protocol.features import check_writable
from anabranch.protocol.filesets import Marks, count_of
from anabranch.protocol.predicates import Always, Condition
from anabranch.protocol.properties import PROTECTED_BEFORE
from anabranch.protocol.removable import (
    CHECKPOINT_PROTECTION,
    DOMAINS,
    Removable,
    guarded_before,
    to_drop,
    without,
    without_properties,
)
from anabranch.transaction.commit import Committed, commit
from anabranch.transaction.conflicts import NoRows
from anabranch.transaction.footprint import Reads, Source, Transaction
from anabranch.transaction.patience import Chance, patience_for

NO_ROW = Condition(text="false", predicate=Always(False), row_local=True, expression="false", columns=frozenset())


@dataclass(frozen=True)
class DropFeature:
    """ALTER TABLE … DROP FEATURE … [TRUNCATE HISTORY].

    Without ``truncate_history`` older versions stay readable, for those who know the feature; the protocol then lists
    ``checkpointProtection``, which binds writers. With it, history that is old enough is cut off instead.

    Example:
        >>> DropFeature("/data/flights", "deletionVectors").run(engine)
    """

    table: Location
    feature: str
    truncate_history: bool = False

    def run(self, engine: Engine, moment: Moment = NOW) -> Committed | None:
        """Run it.

        Raises:
            FeatureNotDropped: a rule forbids it, or history still needs the feature; its condition says which.
            NotBuilt: this feature cannot be dropped yet.
            DeltaConcurrentModificationException: the table was written meanwhile; what was done so far stays done.
        """
        log, chance = open_log(self.table), moment.chance or Chance()
        base = log.snapshot()
        feature = self._allowed(base)
        check_writable(base.table, base.protocol, base.metadata, changes_rows=feature.is_in_files)
        cleaned = _stop_using(base, feature, replace(moment, chance=chance))
        cleaned = _take_out_of_files(log, feature, engine, moment, chance) or cleaned
        base = log.snapshot()
        if feature.name == CHECKPOINT_PROTECTION or (feature.is_in_history and self.truncate_history):
            self._cut_off(log, base, feature, chance, cleaned=cleaned)
        elif feature.is_in_history:
            log.write_checkpoint(base, now_ms=chance.now_ms())
        return run_alteration(self.table, self._without, replace(moment, at=base, chance=chance))

    def _allowed(self, base: Snapshot) -> Removable:
        return to_drop(base.table, self.feature, base.protocol, base.metadata, truncates=self.truncate_history)

    def _without(self, base: Snapshot) -> Alteration:
        feature = self._allowed(base)
        has_domains = feature.name == DOMAINS and bool(base.state.domains)
        if has_domains or feature.is_used_by(base.metadata) or feature.is_used_in(base.files):
            raise self._refused(base, feature, "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL", "it is in use again.")
        guarded = feature.is_in_history and not self.truncate_history
        gone = PROTECTED_BEFORE if feature.name == CHECKPOINT_PROTECTION else ""
        configuration = without_properties(base.metadata.configuration, (gone,))
        if guarded:
            configuration[PROTECTED_BEFORE] = str(base.version + 1)
        parameters = {"featureName": feature.name, "truncateHistory": str(self.truncate_history).lower()}
        metadata = replace(base.metadata, configuration=configuration)
        return Alteration("DROP FEATURE", parameters, metadata, without(base.protocol, feature.name, guarded=guarded))

    def _cut_off(self, log: Log, base: Snapshot, feature: Removable, chance: Chance, *, cleaned: bool) -> None:
        """Remove history that is old enough, and hold that what is left does not need the feature."""
        days = base.metadata.configuration.get("delta.logRetentionDuration", "interval 30 days")
        wait = f"Older versions need it. They are kept for {days}; once they are gone, run this again"
        if cleaned:
            rule = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
            raise self._refused(base, feature, rule, f"the newest version does not use it any more. {wait}.")
        log.write_checkpoint(base, now_ms=chance.now_ms())
        earliest = truncate(log, base, now_ms=chance.now_ms())
        if feature.name == CHECKPOINT_PROTECTION and earliest < guarded_before(base.metadata):
            rule = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
            raise self._refused(base, feature, rule, f"the versions that it guards are still there. {wait}.")
        if _history_uses(log, feature, earliest, base.version):
            raise self._refused(base, feature, "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", f"{wait}.")

    def _refused(self, base: Snapshot, feature: Removable, rule: str, reason: str) -> FeatureNotDropped:
        return FeatureNotDropped(table=base.table, feature=feature.name, delta_condition=rule, reason=reason)


# -- what uses it goes -------------------------------------------------------------------------------------------------


def _stop_using(base: Snapshot, feature: Removable, moment: Moment) -> bool:
    """Unset the properties that use the feature, remove domains; whether there was anything to do."""
    if feature.name == DOMAINS and base.state.domains:
        gone = tuple(replace(each, removed=True) for each in base.state.domains.values())
        chance = moment.chance or Chance()
        mine = _removing(base, gone, chance)
        commit(mine, Log(base.store), NoRows(), moment.patience or patience_for(blind=False), chance)
        return True
    if not feature.is_used_by(base.metadata):
        return False
    left = without_properties(base.metadata.configuration, feature.properties)
    change = Alteration(
        "UNSET TBLPROPERTIES",
        {"properties": str(list(feature.properties)).replace("'", '"'), "ifExists": "true"},
        replace(base.metadata, configuration=left),
    )
    run_alteration(base.table, lambda _: change, replace(moment, at=base))
    return True


def _removing(base: Snapshot, domains: tuple[DomainMetadata, ...], chance: Chance) -> Transaction:
    return Transaction(
        base=base,
        table=base.table,
        txn_id=str(chance.new_id()),
        operation="REMOVE DOMAIN METADATA",
        parameters={"domains": str(sorted(each.domain for each in domains)).replace("'", '"')},
        isolation=base.properties.isolation_level,
        resolution=base.properties.conflict_resolution,
        domains=domains,
    )


def _take_out_of_files(log: Log, feature: Removable, engine: Engine, moment: Moment, chance: Chance) -> bool:
    """Rewrite the files that show the feature; whether there were any."""
    base = log.snapshot()
    if not feature.is_used_in(base.files):
        return False
    hands = PurgeHands(base, engine, Staging(log.store, str(chance.new_id())))
    staged_and_committed(hands, log, moment.patience, chance)
    return True


class PurgeHands(RowHands):
    """The hands of a REORG … APPLY (PURGE): files with deletion vectors are written anew with their live rows only."""

    def __init__(self, snapshot: Snapshot, engine: Engine, staging: Staging) -> None:
        super().__init__(NO_ROW, snapshot, engine, staging)

    def stage(self, chance: Chance) -> Transaction:
        """Rewrite the files, and hold that not a row came or went."""
        snapshot, staging = self._snapshot, self._staging
        files = snapshot.files.filter(pc.is_valid(snapshot.files["deletionVector"]))
        chosen = with_counts(snapshot, file_set(snapshot, files))
        staging.start()
        self._engine.rewrite(chosen, {}, None, staging.folder)
        adds = self._collected()
        live = rows_of(chosen.files) - count_of(chosen.vectors)
        if rows_of(adds) != live:
            reason = f"{live} rows were to be kept, but {rows_of(adds)} were written."
            raise ExecutionFailed(what="REORG", reason=reason)
        return Transaction(
            base=snapshot,
            table=snapshot.table,
            txn_id=staging.txn_id,
            operation="REORG",
            parameters={"predicate": "[]", "applyPurge": "true"},
            isolation=snapshot.properties.isolation_level,
            resolution=snapshot.properties.conflict_resolution,
            reads=Reads(NO_ROW, frozenset(files["path"].to_pylist())),
            removes=frozenset(files["path"].to_pylist()),
            sources={row["path"]: Source(row, self.vector(row)) for row in chosen.files.to_pylist()},
            adds=adds,
            data_change=False,
            metrics={"numCopiedRows": live},
        )

    def matches(self, files: pa.Table) -> Marks:
        """New rows do not concern it."""
        return {}

    def redo(self, files: pa.Table, rows: Marks) -> Transaction:
        """Never asked for."""
        raise AssertionError("a purge selects no new row")

    def sample(self, file: Mapping[str, object], rows: Sequence[int]) -> Sequence[Mapping[str, object]]:
        """Rows are moved whole; none says more than its file."""
        return ()

    def discard(self) -> None:
        """Remove what was staged."""
        self._staging.discard()

    def finish(self) -> None:
        """Close the job folder's markers."""
        self._staging.finish()


# -- history -----------------------------------------------------------------------------------------------------------


def truncate(log: Log, base: Snapshot, *, now_ms: int) -> int:
    """Remove the log files before the newest good checkpoint that is old enough, oldest first; the earliest version
    left.

    Files of guarded versions go all at once or not at all (PROTOCOL.md, "Checkpoint Protection"). None that is younger
    than `YOUNGEST_MS` goes, whatever the property says: a put that began before could follow it.
    """
    retention_ms = int(base.properties["delta.dropFeatureTruncateHistory.retentionDuration"])
    cutoff = now_ms - max(retention_ms, YOUNGEST_MS)
    listing = log.store.list_from(first_name(0))
    commits = {v: entry for entry in listing if (v := commit_version(entry.name)) is not None}
    young = [version for version, entry in commits.items() if entry.modified_ms > cutoff]
    oldest_kept = min(young, default=base.version)
    checkpoints = [found for found in checkpoints_in(listing) if found.version <= oldest_kept]
    keep = next((found.version for found in reversed(checkpoints) if is_whole(base, found)), 0)
    earliest = min(commits, default=0)
    if keep <= earliest or keep < guarded_before(base.metadata):
        return earliest
    for entry in listing:
        if _version_of(entry.name, keep) < keep:
            log.store.delete(entry.name)
    forget(log.table)
    return keep


def _version_of(name: str, otherwise: int) -> int:
    """The version that a file of the log belongs to."""
    folder, _, own = name.rpartition("/")
    digits = own[:20]
    return int(digits) if folder == "_delta_log" and len(digits) == 20 and digits.isdigit() else otherwise


def _history_uses(log: Log, feature: Removable, earliest: int, newest: int) -> bool:
    """Whether any version that can still be read shows the feature."""
    if not feature.is_in_files and not feature.properties:
        return False
    first = log.snapshot(earliest)
    if feature.is_used_by(first.metadata) or feature.is_used_in(first.files):
        return True
    for version in range(earliest, newest + 1):
        said = log.read(version)
        if said is None:
            continue
        in_files = feature.is_used_in(said.adds) or feature.is_used_in(said.removes)
        if in_files or (said.head.metadata is not None and feature.is_used_by(said.head.metadata)):
            return True
    return False
