"""Reserving values of identity columns: a range is committed before its values are used.

Knows the log, not rows. Guarantee: no two writers, of whichever process, are given one value, whether or not their own
commits succeed afterwards; values that were reserved in vain are a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from anabranch._log.log import Log
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.merges import Clause, Matching, Reserved
from anabranch._protocol.rules.identity import Identity, identities, with_marks
from anabranch._protocol.schema.types import Struct
from anabranch._transaction.commit import commit
from anabranch._transaction.phases import mute_listeners
from anabranch._transaction.rebase_handler import NoRows
from anabranch._transaction.retry import Runtime, default_retry
from anabranch._transaction.transaction import RESERVES, CommitInfo, Declarations, IdentityUse, Transaction
from anabranch.errors import IdentityColumnGiven, MetadataChangedException, ProtocolChangedException

_ATTEMPTS = 1_000


def check_not_assigned(schema: Struct, columns: Sequence[str], table: str) -> None:
    """Raises IdentityColumnGiven if an UPDATE sets an identity column."""
    for each in identities(schema):
        if each.column.lower() in {name.lower() for name in columns}:
            raise IdentityColumnGiven(table=table, column=each.column, what="UPDATE on IDENTITY column")


def to_generate(schema: Struct, given: Sequence[str], table: str) -> tuple[Identity, ...]:
    """The identity columns that rows with these columns lack, so that values have to be reserved. Raises
    IdentityColumnGiven: the rows have one whose values only the table gives.
    """
    names = {name.lower() for name in given}
    missing = []
    for each in identities(schema):
        if each.column.lower() not in names:
            missing.append(each)
        elif not each.explicit:
            raise IdentityColumnGiven(
                table=table, column=each.column, what="Providing values for GENERATED ALWAYS AS IDENTITY column"
            )
    return tuple(missing)


def own_numbers(schema: Struct, given: Sequence[str]) -> frozenset[str]:
    """The identity columns of which rows with these columns have values that the table did not give."""
    names = {name.lower() for name in given}
    return frozenset(each.column for each in identities(schema) if each.column.lower() in names)


def omitted_identity_columns(matching: Matching, schema: Struct, table: str) -> tuple[str, ...]:
    """The identity columns that some INSERT of a MERGE leaves out. Raises IdentityColumnGiven: an UPDATE sets one, or
    an INSERT gives one whose values only the table gives.
    """
    missing: dict[str, None] = {}
    for clause in matching.clauses:
        if clause.action == "update":
            check_not_assigned(schema, list(clause.values), table)
        if clause.action == "insert":
            missing |= dict.fromkeys(each.column for each in to_generate(schema, list(clause.values), table))
    return tuple(missing)


def with_reserved(matching: Matching, values: Mapping[str, range]) -> Matching:
    """The same MERGE, in which each INSERT takes these values for the columns that it leaves out."""
    return replace(matching, clauses=tuple(_with_values(each, values) for each in matching.clauses))


def _with_values(clause: Clause, values: Mapping[str, range]) -> Clause:
    if clause.action != "insert":
        return clause
    named = {name.lower() for name in clause.values}
    ours = {name: Reserved(each) for name, each in values.items() if name.lower() not in named}
    return replace(clause, values={**clause.values, **ours})


def reserve(log: Log, columns: Sequence[str], count: int, writer: str, runtime: Runtime) -> Mapping[str, range]:
    """Reserve ``count`` values of each of these identity columns, by a commit of their new marks; ``writer`` names the
    transaction that will use them, which must not take this commit for another's.

    Raises:
        InvalidSchema: the numbers are used up.
        MetadataChangedException: a column is no identity column any more, or others reserved first, too often.
    """
    if not columns or not count:
        return {name: range(0) for name in columns}
    for left in reversed(range(_ATTEMPTS)):
        snapshot = log.snapshot()
        ranges = _ranges(snapshot, columns, count)
        ours = reservation(snapshot, {name: each[-1] for name, each in ranges.items()}, writer, runtime)
        try:
            with mute_listeners():  # the phases that others wait for are those of the command
                commit(ours, log, NoRows(), default_retry(blind=False), runtime)
            return ranges
        except (MetadataChangedException, ProtocolChangedException):
            if not left:
                raise  # most likely other reservations, but so many?
    raise AssertionError("the last attempt returns or raises")


def _ranges(snapshot: Snapshot, columns: Sequence[str], count: int) -> dict[str, range]:
    known = {each.column: each for each in identities(snapshot.schema)}
    ranges = {}
    for name in columns:
        if name not in known:
            raise MetadataChangedException(
                table=snapshot.table, explanation=f"{name} is not an identity column any more", operation=RESERVES
            )
        each = known[name]
        ranges[name] = range(each.next, each.after(count) + (1 if each.step > 0 else -1), each.step)
    return ranges


def reservation(snapshot: Snapshot, marks: Mapping[str, int], writer: str, runtime: Runtime) -> Transaction:
    """A transaction that only moves the marks of identity columns, for this writer."""
    return Transaction.on(
        snapshot,
        str(runtime.new_id()),
        CommitInfo(RESERVES, {"columns": ", ".join(sorted(marks))}),
        says=Declarations(metadata=with_marks(snapshot.metadata, marks)),
        identity=IdentityUse(reserved_for=writer),
    )
