"""Reserves values of identity columns: it commits a range before its values are used.

Knows the log, not rows. Guarantee: no two writers, in any process, get the same value, whether or not their own commits
succeed afterwards; unused values leave a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from anabranch._log.committers import folder_of
from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.merges import Clause, MergePlan, ReservedIdentity
from anabranch._protocol.rules.identity import Identity, identities, with_marks
from anabranch._protocol.schema.types import Struct
from anabranch._transaction.commit import commit
from anabranch._transaction.open_transaction import inside
from anabranch._transaction.phases import mute_listeners
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime, default_retry
from anabranch._transaction.transaction import RESERVES, CommitInfo, Declarations, IdentityUse, Transaction
from anabranch.errors import IdentityColumnGiven, MetadataChangedException, ProtocolChangedException

_ATTEMPTS = 1_000


def check_not_assigned(schema: Struct, columns: Sequence[str], table: str) -> None:
    """Raises IdentityColumnGiven if an UPDATE sets an identity column."""
    for identity in identities(schema):
        if identity.column.lower() in {name.lower() for name in columns}:
            raise IdentityColumnGiven(table=table, column=identity.column, what="UPDATE on IDENTITY column")


def columns_to_generate(schema: Struct, given: Sequence[str], table: str) -> tuple[Identity, ...]:
    """The identity columns that rows with these columns lack, and whose values have to be reserved. Raises
    IdentityColumnGiven: the rows have a column that is GENERATED ALWAYS.
    """
    names = {name.lower() for name in given}
    missing = []
    for identity in identities(schema):
        if identity.column.lower() not in names:
            missing.append(identity)
        elif not identity.explicit:
            raise IdentityColumnGiven(
                table=table, column=identity.column, what="Providing values for GENERATED ALWAYS AS IDENTITY column"
            )
    return tuple(missing)


def provided_columns(schema: Struct, given: Sequence[str]) -> frozenset[str]:
    """The identity columns for which rows with these columns bring their own values."""
    names = {name.lower() for name in given}
    return frozenset(identity.column for identity in identities(schema) if identity.column.lower() in names)


def omitted_identity_columns(matching: MergePlan, schema: Struct, table: str) -> tuple[str, ...]:
    """The identity columns that an INSERT of a MERGE leaves out. Raises IdentityColumnGiven: an UPDATE sets one, or an
    INSERT sets one that is GENERATED ALWAYS.
    """
    missing: dict[str, None] = {}
    for clause in matching.clauses:
        if clause.action == "update":
            check_not_assigned(schema, list(clause.values), table)
        if clause.action == "insert":
            missing |= dict.fromkeys(
                identity.column for identity in columns_to_generate(schema, list(clause.values), table)
            )
    return tuple(missing)


def with_reserved_values(matching: MergePlan, values: Mapping[str, range]) -> MergePlan:
    """The MERGE in which each INSERT uses these values for the columns that it leaves out."""
    return replace(matching, clauses=tuple(_with_values(clause, values) for clause in matching.clauses))


def _with_values(clause: Clause, values: Mapping[str, range]) -> Clause:
    if clause.action != "insert":
        return clause
    assigned = {name.lower() for name in clause.values}
    reserved = {name: ReservedIdentity(numbers) for name, numbers in values.items() if name.lower() not in assigned}
    return replace(clause, values={**clause.values, **reserved})


def reserve(log: Log, columns: Sequence[str], count: int, writer: str, runtime: Runtime) -> Mapping[str, range]:
    """Reserve ``count`` values of each of these identity columns, by a commit of their new marks. ``writer`` names the
    transaction that will use them, for which this commit must not count as a conflict. It is visible to all at once,
    even inside a transaction of several statements.

    Raises:
        InvalidSchema: the numbers are used up.
        MetadataChangedException: a column is no identity column any more, or other reservations won too often.
    """
    if not columns or not count:
        return {name: range(0) for name in columns}
    log = Log(folder_of(log.store))
    for attempts_left in reversed(range(_ATTEMPTS)):
        snapshot = log.snapshot()
        ranges = _ranges(snapshot, columns, count)
        ours = reservation(snapshot, {name: numbers[-1] for name, numbers in ranges.items()}, writer, runtime)
        try:
            with mute_listeners(), inside(None):  # listeners wait for the phases of the command
                commit(ours, log, NoRows(), default_retry(blind=False), runtime)
            return ranges
        except (MetadataChangedException, ProtocolChangedException):
            if not attempts_left:
                raise
    raise AssertionError("the last attempt returns or raises")


def _ranges(snapshot: Snapshot, columns: Sequence[str], count: int) -> dict[str, range]:
    by_name = {identity.column: identity for identity in identities(snapshot.schema)}
    ranges = {}
    for name in columns:
        if name not in by_name:
            raise MetadataChangedException(
                table=snapshot.table, explanation=f"{name} is not an identity column any more", operation=RESERVES
            )
        identity = by_name[name]
        ranges[name] = range(identity.next, identity.after(count) + (1 if identity.step > 0 else -1), identity.step)
    return ranges


def reservation(snapshot: Snapshot, marks: Mapping[str, int], writer: str, runtime: Runtime) -> Transaction:
    """A transaction that only advances the marks of identity columns, for this writer."""
    return Transaction.on(
        snapshot,
        str(runtime.new_id()),
        CommitInfo(RESERVES, {"columns": ", ".join(sorted(marks))}),
        declarations=Declarations(metadata=with_marks(snapshot.metadata, marks)),
        identity=IdentityUse(reserved_for=writer),
    )
