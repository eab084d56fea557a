"""DROP FEATURE removes a feature from a table's protocol, so that engines without it can use the table.

Knows the order of the steps: first it removes the uses of the feature, each in its own commit; then, if older versions
need it, it protects history (by a checkpoint, and the feature that keeps it) or truncates it; then it changes the
protocol. Guarantees: the protocol never lacks a feature that the version before uses; the last commit directly follows
the version that was read, or fails; a command that fails half-way leaves a valid table, and can run again.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from anabranch._log.checkpoint_parts import checkpoints_in
from anabranch._log.cleanup import YOUNGEST_MS, is_confirmed, newest_expired_version
from anabranch._log.file_names import FOLDER, commit_version, first_name
from anabranch._log.log import Log, forget
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.features import row_tracking
from anabranch._protocol.features.known import CHECKPOINT_PROTECTION, ROW_TRACKING
from anabranch._protocol.features.removable import (
    DOMAINS,
    Removable,
    checkpoint_protection_version,
    protocol_without,
    to_drop,
    without_properties,
)
from anabranch._protocol.features.table_features import check_writable
from anabranch._protocol.inactive_properties import PROTECTED_BEFORE
from anabranch._storage.contract import Store
from anabranch._transaction.commit import CommitResult
from anabranch._transaction.retry import Runtime
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.ddl.alter import Alteration, run_alteration
from anabranch.commands.ddl.feature_removal import remove_domains, remove_traces
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.errors import FeatureNotDropped, StoreError

_CLOCK = f"{FOLDER}/_clock"
"""A file that is put to read the store's clock; one name, so that commands that died leave one file at most."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DropFeature(SecretFree):
    """ALTER TABLE … DROP FEATURE … [TRUNCATE HISTORY].

    Without ``truncate_history`` older versions stay readable by engines with the feature; the protocol then lists
    ``checkpointProtection``, which binds writers. With it, history that is old enough is removed instead.

    Example:
        >>> DropFeature("/data/flights", "deletionVectors").run(engine)
    """

    table: Location
    feature: str
    truncate_history: bool = False

    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it.

        Raises:
            FeatureNotDropped: a rule forbids it, or history still needs the feature; its condition names the reason.
            DeltaConcurrentModificationException: the table was written meanwhile; completed steps stay.
        """
        engine, log, runtime = require_engine(engine, self), open_log(self.table), context.runtime
        base = log.snapshot()
        feature = self._find_removable(base)
        check_writable(base.table, base.protocol, base.metadata)
        cleaned = remove_traces(log, feature, engine, context)
        base = log.snapshot()
        if feature.name == CHECKPOINT_PROTECTION or (feature.is_in_history and self.truncate_history):
            self._cut_off(log, base, feature, runtime, cleaned=cleaned)
        elif feature.is_in_history:
            log.write_checkpoint(base, now_ms=runtime.now_ms())
        committed = run_alteration(self.table, self._without, replace(context, at=base))
        if feature.is_in_history:
            _checkpoint(log, runtime)
        return committed

    def _find_removable(self, base: Snapshot) -> Removable:
        return to_drop(base.table, self.feature, base.protocol, base.metadata, truncates=self.truncate_history)

    def _without(self, base: Snapshot) -> Alteration:
        feature = self._find_removable(base)
        has_domains = feature.name == DOMAINS and bool(base.state.domains)
        if has_domains or feature.is_used_by(base.metadata) or feature.is_used_in(base.files):
            raise self._not_dropped_error(
                base, feature, "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL", "it is in use again."
            )
        guarded = feature.is_in_history and not self.truncate_history
        configuration = without_properties(base.metadata.configuration, feature.owned)
        if guarded:
            configuration[PROTECTED_BEFORE] = str(base.version + 1)
        parameters = {"featureName": feature.name, "truncateHistory": str(self.truncate_history).lower()}
        metadata = replace(base.metadata, configuration=configuration)
        protocol = protocol_without(base.protocol, feature.name, guarded=guarded)
        domains = remove_domains(base, row_tracking.DOMAIN) if feature.name == ROW_TRACKING else ()
        return Alteration("DROP FEATURE", parameters, metadata, protocol, domains)

    def _cut_off(self, log: Log, base: Snapshot, feature: Removable, runtime: Runtime, *, cleaned: bool) -> None:
        """Remove history that is old enough. Raises FeatureNotDropped if the rest still needs the feature."""
        retention = base.metadata.configuration.get("delta.logRetentionDuration", "interval 30 days")
        wait = f"Older versions need it. They are kept for {retention}; once they are gone, run this again"
        if cleaned:
            rule = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
            raise self._not_dropped_error(base, feature, rule, f"the newest version does not use it any more. {wait}.")
        log.write_checkpoint(base, now_ms=runtime.now_ms())
        earliest = truncate(log, base, now_ms=min(runtime.now_ms(), _store_now(log.store)))
        if feature.name == CHECKPOINT_PROTECTION and earliest < checkpoint_protection_version(base.metadata):
            rule = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
            raise self._not_dropped_error(base, feature, rule, f"the versions that it guards are still there. {wait}.")
        if _history_uses(log, feature, earliest, base.version):
            raise self._not_dropped_error(base, feature, "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST", f"{wait}.")

    def _not_dropped_error(self, base: Snapshot, feature: Removable, rule: str, reason: str) -> FeatureNotDropped:
        return FeatureNotDropped(table=base.table, feature=feature.name, delta_condition=rule, reason=reason)


# -- history -----------------------------------------------------------------------------------------------------------


def _checkpoint(log: Log, runtime: Runtime) -> None:
    """Write a checkpoint after the drop, since the newest one may need the feature; a committed drop never fails
    because of it.
    """
    try:
        log.write_checkpoint(log.snapshot(), now_ms=runtime.now_ms())
    except Exception as error:
        _logger.warning("the feature is dropped; a checkpoint of %s is left to a later commit: %s", log.table, error)


def _store_now(store: Store) -> int:
    """The time by the store's clock: with a clock that is ahead, young history would count as old."""
    store.put(_CLOCK, b"")
    try:
        entry = store.head(_CLOCK)
    finally:
        _remove_clock(store)
    return 0 if entry is None else entry.modified_ms


def _remove_clock(store: Store) -> None:
    try:
        store.delete(_CLOCK)
    except StoreError as error:
        _logger.warning("%s of %s is left behind, and means nothing: %s", _CLOCK, store.url, error)


def truncate(log: Log, base: Snapshot, *, now_ms: int) -> int:
    """Remove the log files before the newest valid checkpoint that is old enough, oldest first; return the earliest
    version left.

    Files of protected versions are removed all at once or not at all (PROTOCOL.md, "Checkpoint Protection"). Files
    younger than `YOUNGEST_MS` stay, whatever the property: a put that began before could still arrive.
    """
    retention_ms = int(base.properties["delta.dropFeatureTruncateHistory.retentionDuration"])
    listing = log.store.list_from(first_name(0))
    commits = [entry for entry in listing if commit_version(entry.name) is not None]
    expired = newest_expired_version(base, commits, now_ms - max(retention_ms, YOUNGEST_MS))
    oldest_retained = min(-1 if expired is None else expired, base.version - 1) + 1
    checkpoints = [checkpoint for checkpoint in checkpoints_in(listing) if checkpoint.version <= oldest_retained]
    first_kept = next((checkpoint.version for checkpoint in reversed(checkpoints) if is_confirmed(base, checkpoint)), 0)
    earliest = commit_version(commits[0].name) or 0 if commits else 0
    if first_kept <= earliest or first_kept < checkpoint_protection_version(base.metadata):
        return earliest
    for entry in listing:
        if _version_of(entry.name, first_kept) < first_kept:
            log.store.delete(entry.name)
    forget(log.table)
    return first_kept


def _version_of(name: str, otherwise: int) -> int:
    """The version of a file of the log."""
    folder, _, file_name = name.rpartition("/")
    digits = file_name[:20]
    return int(digits) if folder == "_delta_log" and len(digits) == 20 and digits.isdigit() else otherwise


def _history_uses(log: Log, feature: Removable, earliest: int, newest: int) -> bool:
    """Whether any version that can still be read uses the feature."""
    if not feature.leaves_traces:
        return False
    first = log.snapshot(earliest)
    if feature.is_used_by(first.metadata) or feature.is_used_in(first.files):
        return True
    for version in range(earliest, newest + 1):
        commit = log.read(version)
        if commit is None:
            continue
        in_files = feature.is_used_in(commit.adds) or feature.is_used_in(commit.removes)
        if in_files or (commit.head.metadata is not None and feature.is_used_by(commit.head.metadata)):
            return True
    return False
