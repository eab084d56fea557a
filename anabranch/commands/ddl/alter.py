"""Changes a table's metadata: properties, columns, constraints, protocol. It writes no row.

Knows Delta's names for these changes and their parameters in the history. Guarantees: a change without effect commits
nothing; a concurrent write that has not seen the change fails, and the change fails after a write that it has not seen,
or runs again where the table's dial is ``redo``; the features that a property or a type requires come in the same
commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import DomainMetadata, Metadata, Protocol, compact_json
from anabranch._protocol.change_feed import check_recordable
from anabranch._protocol.features.known import CHECKPOINT_PROTECTION
from anabranch._protocol.features.refused import why_refused
from anabranch._protocol.features.requested_by_properties import read_protocol_request, without_requests
from anabranch._protocol.features.row_tracking import PREFIX, check_columns, is_enabled, with_columns
from anabranch._protocol.features.table_features import (
    SUPPORTED,
    check_writable,
    features_of_types,
    upgrade_for_metadata,
    writer_features,
)
from anabranch._protocol.iceberg import flags
from anabranch._protocol.inactive_properties import PROTECTED_BEFORE
from anabranch._protocol.layout.clustering import check_clustering, clustering_of
from anabranch._protocol.properties import (
    COMMENT,
    canonical_key,
    canonical_properties,
    check_properties,
    check_retention,
)
from anabranch._protocol.rules.column_names import check_spelling
from anabranch._protocol.rules.identity import GIVEN, STEP
from anabranch._protocol.rules.table_rules import DEFAULT, GENERATION
from anabranch._protocol.schema.column_mapping import MODE, UNMAPPED, check_change, is_mapped
from anabranch._protocol.schema.editing import insert_field
from anabranch._protocol.schema.evolution import sql_name
from anabranch._protocol.schema.keys import KEY_PREFIX, check_keys_unchanged
from anabranch._protocol.schema.leaves import check_stats_columns
from anabranch._protocol.schema.types import Field, Struct, check_storable
from anabranch._protocol.session_settings import current
from anabranch._transaction.commit import CommitResult, commit
from anabranch._transaction.phases import reach
from anabranch._transaction.rebase_handler import NoRows, RebaseHandler
from anabranch._transaction.retry import Runtime
from anabranch._transaction.transaction import CommitInfo, Declarations, ReadSet, Transaction
from anabranch.commands.context import NEWEST, RunContext, require_engine
from anabranch.commands.ddl.iceberg import check_files
from anabranch.commands.ddl.remove_mapping import check_removable, ends_mapping, remove_mapping
from anabranch.commands.ddl.row_tracking import backfill_all
from anabranch.commands.engine import Engine
from anabranch.commands.opening import Location, SecretFree, open_log
from anabranch.commands.rerunning import rerunnable, with_redone_runs
from anabranch.errors import (
    InvalidOption,
    InvalidProperty,
    MetadataChangedException,
    NotBuilt,
    ProtocolChangedException,
    UnknownColumn,
    UnsupportedFeature,
)

_ATTEMPTS = 20
"""Maximum number of attempts of a change that follows commits of its own."""
_CONSTRAINT = "delta.constraints."


@dataclass(frozen=True)
class Alteration:
    """A change of a table's metadata, with its operation and parameters in the history. Parts that stay are None;
    ``domains`` are committed only along with another part.
    """

    operation: str
    parameters: Mapping[str, str]
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    domains: tuple[DomainMetadata, ...] = ()


@dataclass(frozen=True)
class SetProperties(SecretFree):
    """ALTER TABLE … SET TBLPROPERTIES.

    A property that needs a feature adds it to the protocol, in the same commit; ``delta.feature.<name>`` =
    ``supported`` adds any feature, ``delta.minReaderVersion`` and ``delta.minWriterVersion`` those that an old version
    implies. Before it switches row tracking on, separate commits assign row ids to every file; if rows are written
    meanwhile, it starts again. A separate commit, before the others, switches column mapping off; it rewrites all files
    and needs an engine.

    Example:
        >>> SetProperties("/data/flights", {"delta.isolationLevel": "Serializable"}).run()
    """

    table: Location
    properties: Mapping[str, str]

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if the table has these properties already.

        Raises:
            InvalidProperty: a key or value is invalid. UnsupportedFeature: a feature is unknown.
            FeatureNotDropped: column mapping cannot be switched off.
            MetadataChangedException, ProtocolChangedException: the table was written meanwhile.
        """
        other_properties = dict(self.properties)
        modes = [other_properties.pop(key) for key in self.properties if canonical_key(key) == MODE]
        base = context.snapshot(open_log(self.table)) if modes else None
        if base is not None and ends_mapping(base.metadata.configuration, modes[-1]):
            return _remove_mapping_and_run(
                replace(self, properties=other_properties), {MODE: UNMAPPED}, engine, replace(context, at=base)
            )
        return self._set(context)

    def _set(self, context: RunContext) -> CommitResult | None:
        parameters = {"properties": compact_json(dict(self.properties))}
        runtime, log = context.runtime, open_log(self.table)

        def alter(base: Snapshot) -> Alteration:
            return self._on(base, parameters, runtime)

        base = context.snapshot(log)
        change = alter(base)
        if change.metadata is None or not is_enabled(change.metadata) or is_enabled(base.metadata):
            return run_alteration(self.table, lambda _: change, replace(context, at=base))
        _check_allowed(change, base)
        for attempts_left in reversed(range(_ATTEMPTS)):
            base = backfill_all(log, context)
            try:
                return run_alteration(self.table, alter, replace(context, at=base))
            except (MetadataChangedException, ProtocolChangedException):
                if not attempts_left or not _only_rows_changed(base, log.snapshot()):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def check(self, base: Snapshot, runtime: Runtime) -> None:
        """Raises InvalidProperty or UnsupportedFeature if the table at this version does not allow the change."""
        self._on(base, {}, runtime)

    def _on(self, base: Snapshot, parameters: Mapping[str, str], runtime: Runtime) -> Alteration:
        properties, description = canonical_properties(self.properties, base.metadata.description)
        rest = without_requests(properties)
        refuse_constraints(rest)
        check_properties(rest)
        check_stats_columns(base.schema, base.partition_columns, rest)
        configuration = {**base.metadata.configuration, **rest}
        check_retention(configuration, rest)
        metadata = replace(base.metadata, configuration=configuration, description=description)
        check_change(base.metadata.configuration, metadata.configuration)
        newly_set = set(flags(metadata.configuration)) - set(flags(base.metadata.configuration))
        if is_mapped(metadata.configuration) and (newly_set or not is_mapped(base.metadata.configuration)):
            metadata = metadata.with_schema(base.schema, runtime.new_id, named=True)
        metadata = with_columns(metadata, runtime.new_id)
        protocol = read_protocol_request(base.table, properties).on_top_of(base.protocol)
        return Alteration(
            "SET TBLPROPERTIES", parameters, metadata, upgrade_for_metadata(protocol, metadata) or protocol
        )


@dataclass(frozen=True)
class UnsetProperties(SecretFree):
    """ALTER TABLE … UNSET TBLPROPERTIES: resets properties to their defaults.

    A separate commit switches column mapping off; it rewrites all files and needs an engine.

    Example:
        >>> UnsetProperties("/data/flights", ("delta.isolationLevel",)).run()
    """

    table: Location
    keys: Sequence[str]
    if_exists: bool = False

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if none of them is set.

        Raises:
            InvalidProperty: one is not set, without ``if_exists``; or it is a constraint.
            FeatureNotDropped: column mapping cannot be switched off.
            MetadataChangedException: the table was written meanwhile.
        """
        other_keys = [key for key in self.keys if canonical_key(key) != MODE]
        base = context.snapshot(open_log(self.table)) if len(other_keys) < len(self.keys) else None
        if base is not None and ends_mapping(base.metadata.configuration, None):
            return _remove_mapping_and_run(replace(self, keys=other_keys), {}, engine, replace(context, at=base))
        return run_alteration(self.table, self._on, context)

    def check(self, base: Snapshot, runtime: Runtime) -> None:
        """Raises InvalidProperty if the table at this version does not allow the change."""
        self._on(base)

    def _on(self, base: Snapshot) -> Alteration:
        configuration, description = base.metadata.configuration, base.metadata.description
        keys = [canonical_key(key) for key in self.keys]
        refuse_constraints(dict.fromkeys(keys, ""))
        for key in keys:
            if key.startswith(PREFIX) or key == GIVEN:
                raise InvalidProperty(property=key, value="unset", reason="the table keeps it for as long as it lasts.")
            if key == PROTECTED_BEFORE and CHECKPOINT_PROTECTION in writer_features(base.protocol):
                reason = "it guards history for as long as the protocol lists checkpointProtection; drop that feature."
                raise InvalidProperty(property=key, value="unset", reason=reason)
            if key not in configuration and not self.if_exists and (key != COMMENT or description is None):
                raise InvalidProperty(property=key, value="unset", reason="it is not set.")
        remaining = {key: value for key, value in configuration.items() if key not in keys}
        check_change(configuration, remaining)
        parameters = {"properties": compact_json(list(self.keys)), "ifExists": compact_json(self.if_exists)}
        metadata = replace(base.metadata, configuration=remaining, description=None if COMMENT in keys else description)
        return Alteration("UNSET TBLPROPERTIES", parameters, metadata)


def _remove_mapping_and_run(
    rest: SetProperties | UnsetProperties, says: Mapping[str, str], engine: Engine | None, context: RunContext
) -> CommitResult | None:
    """Remove a table's column mapping, then do the rest of the command; errors of the rest come before any write."""
    log = open_log(rest.table)
    base = context.snapshot(log)
    check_removable(base)
    rest.check(base, context.runtime)
    committed = remove_mapping(base, log, require_engine(engine, rest), context, says)
    remaining = rest.properties if isinstance(rest, SetProperties) else rest.keys
    return rest.run(engine, replace(context, at="newest")) if remaining else committed


@dataclass(frozen=True)
class NewColumn:
    """A column to add inside the struct at ``parent``: at the end, or ``first``, or after the column ``after``."""

    field: Field
    parent: tuple[str, ...] = ()
    first: bool = False
    after: str | None = None

    def to_history(self) -> dict[str, Any]:
        """The form of Delta's history."""
        path = ".".join((*self.parent, self.field.name))
        kind = self.field.type if isinstance(self.field.type, str) else sql_name(self.field.type)
        shown = {"name": path, "type": kind, "nullable": self.field.nullable, "metadata": dict(self.field.metadata)}
        position = "FIRST" if self.first else None if self.after is None else f"AFTER {self.after}"
        return {"column": shown} if position is None else {"column": shown, "position": position}


@dataclass(frozen=True)
class AddColumns(SecretFree):
    """ALTER TABLE … ADD COLUMNS: existing rows have NULL in them.

    Example:
        >>> AddColumns("/data/flights", (NewColumn(Field("gate", "string"), after="carrier"),)).run()
    """

    table: Location
    columns: Sequence[NewColumn]

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it.

        Raises:
            InvalidOption: the column exists already, or is NOT NULL, or no column is named.
            UnknownColumn: the struct or the column before it does not exist.
            UnsupportedType, UnsupportedFeature: a column of that type is not supported.
            MetadataChangedException: the table was written meanwhile.
        """
        if not self.columns:
            raise InvalidOption(option="columns", value="none", reason="name at least one column to add.")
        for column in self.columns:
            _check_new(column.field)
        return run_alteration(self.table, lambda base: self._on(base, context.runtime), context)

    def _on(self, base: Snapshot, runtime: Runtime) -> Alteration:
        schema: Struct = base.schema
        for column in self.columns:
            schema = insert_field(schema, column.parent, column.field, first=column.first, after=column.after)
        metadata = base.metadata.with_schema(schema, runtime.new_id)
        parameters = {"columns": compact_json([column.to_history() for column in self.columns])}
        return Alteration("ADD COLUMNS", parameters, metadata, upgrade_for_metadata(base.protocol, metadata))


_ONLY_CREATED = "existing rows would have no value in it: only CREATE or REPLACE TABLE declares such a column."
_OF_NEW_TABLES = {
    DEFAULT: (
        "a default",
        "existing rows would lack it; add the column without it, then ALTER COLUMN … SET DEFAULT, for rows to come.",
        "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
    ),
    GENERATION: ("a generating expression", _ONLY_CREATED, ""),
    STEP: ("an identity", _ONLY_CREATED, ""),
}
"""What a column that is added cannot have: what it is, why, and delta-spark's condition, if it has one."""


def _check_new(field: Field) -> None:
    check_storable(field.type, field.name)
    if not field.nullable:
        reason = (
            "`NOT NULL in ALTER TABLE ADD COLUMNS` is not supported for Delta tables: rows that are there would have "
            "NULL in it; add it without NOT NULL."
        )
        raise InvalidOption(option="columns", value=field.name, reason=reason)
    for key, (what, reason, condition) in _OF_NEW_TABLES.items():
        if key in field.metadata:
            facts = {"column": field.name, "delta_condition": condition} if condition else {"column": field.name}
            raise InvalidOption(option="columns", value=f"{field.name} with {what}", reason=reason, **facts)
    if set(field.metadata) - {"comment"}:
        raise NotBuilt(what=f"adding the column {field.name} with more than a comment", instead="Leave it out.")


@dataclass(frozen=True)
class DropConstraint(SecretFree):
    """ALTER TABLE … DROP CONSTRAINT, of a CHECK or a key.

    Example:
        >>> DropConstraint("/data/flights", "plausible").run()
    """

    table: Location
    name: str
    if_exists: bool = False

    @rerunnable
    def run(self, engine: Engine | None = None, context: RunContext = NEWEST) -> CommitResult | None:
        """Run it; None if there is no such constraint, with ``if_exists``.

        Raises:
            InvalidOption: there is no such constraint. MetadataChangedException: the table was written meanwhile.
        """
        return run_alteration(self.table, self._on, context)

    def _on(self, base: Snapshot) -> Alteration:
        keys = [f"{prefix}{self.name.lower()}" for prefix in (_CONSTRAINT, KEY_PREFIX)]
        configuration = base.metadata.configuration
        matching_key = next((key for key in configuration if key.lower() in keys), None)
        if matching_key is None and not (self.if_exists or current().drops_missing):
            missing = f"Cannot drop nonexistent constraint {self.name} from table {base.table}"
            raise InvalidOption(
                option="constraint", value=self.name, reason=f"{missing}: there is no constraint of this name."
            )
        remaining = {key: value for key, value in configuration.items() if key != matching_key}
        shown = {} if matching_key is None else {"expr": configuration[matching_key]}
        parameters = {"name": self.name, **shown, "existed": "true" if shown else "false"}
        return Alteration("DROP CONSTRAINT", parameters, replace(base.metadata, configuration=remaining))


def _only_rows_changed(before: Snapshot, after: Snapshot) -> bool:
    """Whether only rows changed between two snapshots."""
    return (before.metadata, before.protocol) == (after.metadata, after.protocol)


def refuse_constraints(properties: Mapping[str, str]) -> None:
    """Raises InvalidProperty if a property is a constraint."""
    for key, value in properties.items():
        if key.lower().startswith((_CONSTRAINT, KEY_PREFIX)):
            reason = "constraints are added and dropped by separate commands, which read the rows."
            raise InvalidProperty(property=key, value=value, reason=reason)


# -- running -----------------------------------------------------------------------------------------------------------


def run_alteration(
    table: Location,
    altered: Callable[[Snapshot], Alteration],
    context: RunContext,
    read: Callable[[Snapshot], tuple[ReadSet, RebaseHandler]] | None = None,
) -> CommitResult | None:
    """Run a change of a table's metadata; None if it changes nothing.

    Args:
        altered: makes the change for the snapshot on which it runs.
        read: reads rows for the change; returns the read set, and the handler that checks winners' rows.

    Raises:
        UnsupportedFeature: the table cannot be written. InvalidSchema: a column has a reserved name.
        MetadataChangedException, ProtocolChangedException: the table was written meanwhile.
    """
    log = open_log(table)
    base = context.snapshot(log)
    try:
        change = _keep_differences(altered(base), base)
    except UnknownColumn as error:
        raise error.of(base.table) from None
    if change.metadata is None and change.protocol is None:
        return None
    _check_allowed(change, base)
    check_columns(change.metadata or base.metadata)
    check_recordable(change.metadata or base.metadata, base.metadata)
    check_spelling(change.metadata or base.metadata, base.metadata)
    reach("read")
    reads, handler = (None, NoRows()) if read is None else read(base)
    ours = Transaction.on(
        base,
        str(context.runtime.new_id()),
        CommitInfo(change.operation, change.parameters),
        reads=reads,
        declarations=Declarations(change.protocol, change.metadata, change.domains),
    )
    reach("staged")
    return commit(with_redone_runs(ours), log, handler, context.policy(), context.runtime)


def _keep_differences(change: Alteration, base: Snapshot) -> Alteration:
    """The change without the parts that equal the table's."""
    metadata = None if change.metadata == base.metadata else change.metadata
    protocol = None if change.protocol == base.protocol else change.protocol
    return replace(change, metadata=metadata, protocol=protocol)


def _check_allowed(change: Alteration, base: Snapshot) -> None:
    """Raises UnsupportedFeature, with its name, unless the table can be written with the features that new columns
    need; InvalidOption if a key prevents the change.
    """
    check_writable(base.table, base.protocol, base.metadata)
    if change.metadata is not None:
        check_keys_unchanged(base.schema, change.metadata.schema, change.metadata.configuration)
        # The domain holds physical names, which stay when the change renames columns.
        clustering = clustering_of(base.table, base.state.domains, change.metadata.schema)
        check_clustering(clustering, change.metadata)
        check_writable(base.table, change.protocol or base.protocol, change.metadata)
        check_files(base, change.metadata)
    added = _in_types(change.metadata) - _in_types(base.metadata)
    for feature in sorted(added - SUPPORTED):
        raise UnsupportedFeature(table=base.table, kind="table", feature=feature, reason=why_refused(feature))


def _in_types(metadata: Metadata | None) -> frozenset[str]:
    return frozenset() if metadata is None else features_of_types(metadata.schema)
