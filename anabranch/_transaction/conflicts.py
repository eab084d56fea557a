"""The conflict rules: whether a transaction ("ours") can commit after those that committed since its base ("winners").

If not, the rule that fails gives the reason.

Knows what ours and the winners read and did, never a row's values and never an operation's name: questions about rows
go to the command's `RebaseHandler`. Each rule is one line of the form *when the winners have X and ours has Y ->
outcome*, in the documented order. Checking only; carrying over is `rebase`. Any doubt is a conflict. The module exceeds
400 lines because the grid is read as a whole.

Source: Databricks documentation, "Isolation levels and write conflicts".

How many winners ours follows (see docs/concepts/isolation.md): at WriteSerializable, ours stands *before* the longest
run of blind appends at the end of the window, and behind all others by their net effect. At Serializable it stands
behind all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._protocol.actions import FileRow, files_table
from anabranch._protocol.features import row_tracking
from anabranch._protocol.features.table_features import writer_features
from anabranch._protocol.layout.file_sets import Marks
from anabranch._protocol.properties import REDO
from anabranch._protocol.stats.statistics import num_records
from anabranch._transaction.conflict_errors import SAMPLE, Conflict, file_of, some_of, why_files, why_rows
from anabranch._transaction.identity_marks import (
    find_mark_reset,
    is_reservation,
    lowers_row_ids,
    may_have_uncounted_values,
    only_marks,
    passes,
)
from anabranch._transaction.lost_rows import find_lost_rows
from anabranch._transaction.net_effect import NO_EFFECT, AddedFiles, Change, NetEffect, growth, net_effect
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.relocation import Relocation, relocation_of, relocations_in
from anabranch._transaction.transaction import Source, Transaction, is_blind_append, is_vacuum, only_deletes
from anabranch.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)


@dataclass(frozen=True)
class Redo:
    """Ours can follow its winners once the command has also run on ``rows`` of ``files``, which they added."""

    files: pa.Table
    rows: Marks


@dataclass(frozen=True)
class Clear:
    """No conflict: ours can follow its winners unchanged."""


@dataclass(frozen=True)
class LetGo:
    """Ours may follow its winners without the rows ``lost``, which both changed; is judged again if its command can let
    them go, and else has the ``conflict``.
    """

    lost: Marks
    conflict: Conflict


@dataclass(frozen=True)
class Verdict:
    """The outcome for a window, up to the first winner that moved rows.

    Attributes:
        outcome: whether and how ours goes behind the winners ``behind``, whose net effect is ``net``.
        must_follow: the version of the last winner that ours must stand behind; it precedes all later ones.
        moves: all winners of the window that moved rows. Ours follows one up to ``must_follow`` and is then judged
            again; of a later one only the new addresses matter.
    """

    outcome: Clear | Redo | LetGo | Conflict
    behind: Sequence[Commit]
    net: NetEffect
    must_follow: int = -1
    moves: Sequence[Relocation] = ()


def judge(
    ours: Transaction, window: Sequence[Commit], handler: RebaseHandler, proven: Sequence[Relocation] = ()
) -> Verdict:
    """Judge ours against all winners since the version that it stands behind, oldest first; where winners moved rows,
    up to the first of them. ``proven`` are those among them that record no moves, and are known to have moved rows.
    """
    for winner in window:
        for rule in HEAD_RULES:
            if conflict := rule(ours, winner):
                return Verdict(conflict, (), NO_EFFECT)
    if (reset := find_mark_reset(ours, window)) is not None:
        reason = "the mark of an identity column was set back, so that values of ours may be assigned again"
        return Verdict(Conflict(MetadataChangedException, "METADATA_CHANGE", reason, reset), (), NO_EFFECT)
    if ours.is_blind or ours.identity.reserved_for is not None:
        return Verdict(Clear(), (), NO_EFFECT)  # an insert that read nothing cannot conflict, at any level
    is_relocation = ours.changes.groups is not None
    followed = window if is_relocation else window[: count_winners_to_follow(ours, window)]
    moves = () if is_relocation else _in_order(relocations_in(window), proven)
    behind = [winner for winner in followed if not moves or winner.version < moves[0].winner.version]
    paths = ours.touched_paths | ours.changes.recommits | (ours.reads.files if ours.reads else frozenset())
    net = net_effect(behind, paths)
    outcome = Clear() if is_relocation else _judge_rows(ours, net, handler)
    if not isinstance(outcome, Conflict) and (conflict := _find_concurrent_writer(ours, window)):
        outcome = conflict
    return Verdict(outcome, behind, net, followed[-1].version if followed else -1, moves)


def _in_order(recorded: Sequence[Relocation], proven: Sequence[Relocation]) -> Sequence[Relocation]:
    return sorted([*recorded, *proven], key=lambda relocation: relocation.winner.version)


def _find_concurrent_writer(ours: Transaction, window: Sequence[Commit]) -> Conflict | None:
    """A conflict if ours changes the metadata or protocol, and a winner wrote under the old one. Where ours drops a
    feature, every commit counts, since it may need the feature.
    """
    if ours.declarations.metadata is None and ours.declarations.protocol is None:
        return None
    counts_all = _drops_feature(ours)
    winner = next((commit for commit in window if counts_all or _writes(commit)), None)
    if winner is None:
        return None
    more = {"only_ours_changes_metadata": True}  # no winner that came so far did, else a rule before has refused it
    if ours.declarations.metadata is None:
        reason = "the table was written while its protocol was to be changed"
        return Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", reason, winner, more=more)
    reason = "the table was written while its metadata was to be changed"
    return Conflict(MetadataChangedException, "METADATA_CHANGE", reason, winner, more=more)


def _writes(winner: Commit) -> bool:
    """Whether a winner wrote anything under the metadata of its time, including actions of an unknown kind."""
    harmless = {"commitInfo", "txn", "metaData"}  # another rule judges its metadata
    return bool(len(winner.adds) or len(winner.removes) or winner.head.kinds - harmless or winner.has_change_feed)


def _drops_feature(ours: Transaction) -> bool:
    if ours.declarations.protocol is None or ours.base is None:
        return False
    return bool(writer_features(ours.base.protocol) - writer_features(ours.declarations.protocol))


def count_winners_to_follow(ours: Transaction, window: Sequence[Commit]) -> int:
    """How many winners ours must stand behind: all, or all up to the last one that is no blind append."""
    if ours.serializable:
        return len(window)
    domains = list(ours.base.state.domains.values()) if ours.base is not None else []
    count = 0
    for place, winner in enumerate(window, 1):
        if may_have_read(ours, winner) or lowers_row_ids(winner, domains):
            count = place
        domains += winner.head.domains
    return count


def may_have_read(ours: Transaction, winner: Commit) -> bool:
    """Whether a winner may have read rows on which its outcome depends, even if it added none: all may, except those
    that declare otherwise and whose content agrees.
    """
    return not (
        is_blind_append(winner)
        or is_vacuum(winner)
        or relocation_of(winner) is not None
        or is_reservation(ours, winner)
    )


def _judge_rows(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Clear | Redo | LetGo | Conflict:
    if net.is_nothing:
        return Clear()
    rules = ROW_RULES if uses_row_rules(ours) else FILE_RULES
    for rule in rules:
        if conflict := rule(ours, net, handler):
            may_let_go = rule is marked_rows_are_gone and redoes_added_rows(ours)
            lost = find_lost_rows(ours, net, handler) if may_let_go else None
            return LetGo(lost, conflict) if lost else conflict
    return find_rows_to_redo(ours, net, handler)


def uses_row_rules(ours: Transaction) -> bool:
    """Whether row rules judge ours: vectors are on, the table allows it, and ours decides row by row."""
    has_rows = ours.base is not None and ours.base.properties.vectors and ours.resolution in ("row", REDO)
    return has_rows and ours.reads is not None and ours.reads.row_local


def redoes_added_rows(ours: Transaction) -> bool:
    """Whether the table's dial is `redo`, so that rows which any winner added are redone instead of refused."""
    return ours.resolution == REDO and ours.statements == 1 and uses_row_rules(ours)


# -- winners one by one: conflicts that no order resolves --------------------------------------------------------------


def protocol_changed(ours: Transaction, winner: Commit) -> Conflict | None:
    """A winner upgraded the protocol, or created or replaced the table that ours would create or replace."""
    if _both_replace(ours, winner):
        return Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", "the table was replaced by another writer", winner)
    if winner.head.protocol is None and ours.base is not None:
        return None
    reason = "the table was created by another writer" if ours.base is None else "the protocol was changed"
    return Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", reason, winner)


def _both_replace(ours: Transaction, winner: Commit) -> bool:
    """Whether both replace the table that ours has read by one that was made at another time."""
    both = (ours.declarations.metadata, winner.head.metadata)
    return ours.base is not None and all(
        metadata is not None and metadata.created_time != ours.base.metadata.created_time for metadata in both
    )


def metadata_changed(ours: Transaction, winner: Commit) -> Conflict | None:
    """Any change of properties, schema or features fails every concurrent write; reserved identity values do not."""
    if winner.head.metadata is None or passes(ours, winner):
        return None
    reason = "the metadata was changed"
    if only_marks(ours, winner) and may_have_uncounted_values(ours, winner):
        reason = "SYNC IDENTITY did not count the identity values that ours brings"
    return Conflict(MetadataChangedException, "METADATA_CHANGE", reason, winner)


def domain_changed(ours: Transaction, winner: Commit) -> Conflict | None:
    """Both wrote the same domain; the mark of row ids is exempt, since each attempt takes other ids."""
    common = ({d.domain for d in ours.declarations.domains} & {d.domain for d in winner.head.domains}) - {
        row_tracking.DOMAIN
    }
    if not common:
        return None
    return Conflict(ConcurrentWriteException, "METADATA_CHANGE", f"both wrote the domain {min(common)}", winner)


def same_application(ours: Transaction, winner: Commit) -> Conflict | None:
    """Both wrote for the same application id, as two runs of one stream would."""
    common = {t.app_id for t in ours.declarations.app_transactions} & {t.app_id for t in winner.head.app_transactions}
    if not common:
        return None
    return Conflict(ConcurrentTransactionException, "", f"both wrote for the application {min(common)}", winner)


HEAD_RULES: tuple[Callable[[Transaction, Commit], Conflict | None], ...] = (
    protocol_changed,
    metadata_changed,
    domain_changed,
    same_application,
)


# -- the row level: ours last (C1, C2, C3) -----------------------------------------------------------------------------


def marked_rows_are_gone(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    """C1: every row that ours marks must still be where ours found it."""
    for path in sorted(ours.touched_paths & net.changed.keys()):
        if conflict := _find_changed_row(ours, path, net, handler):
            return conflict
    return None


def _find_changed_row(ours: Transaction, path: str, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    change = net.changed[path]
    if change.after is None:
        marks, source = ours.changes.marks.get(path), ours.changes.sources[path]
        count = len(marks) if marks else (num_records(source.row.get("stats")) or 0) - len(source.vector)
        return _row_conflict(ours, change.winners[-1], change.before, marks or _sample_live_rows(source), count)
    deleted, restored = growth(ours.changes.sources[path].vector, handler.vector(change.after))
    if restored:  # a union of vectors would delete the restored rows again
        return _restored_rows_conflict(ConcurrentDeleteReadException, change, restored)
    both = deleted if path in ours.changes.removes else deleted & ours.changes.marks[path]
    if not both:
        return None
    return _row_conflict(ours, _find_deleter(change.winners, path, both, handler), change.before, both)


def _row_conflict(
    ours: Transaction, winner: Commit, file: FileRow, rows: BitMap64, count: int | None = None
) -> Conflict:
    both_delete = ours.only_deletes and only_deletes(winner)
    kind = ConcurrentDeleteDeleteException if both_delete else ConcurrentDeleteReadException
    reason = "both changed the same rows"
    return Conflict(kind, why_rows(winner), reason, winner, file, some_of(rows), len(rows) if count is None else count)


def _sample_live_rows(source: Source) -> BitMap64:
    """A few live rows of a file that ours removes whole, as it was read."""
    records = num_records(source.row.get("stats")) or 0
    return BitMap64(range(min(records, len(source.vector) + SAMPLE))) - source.vector


def _find_deleter(winners: Sequence[Commit], path: str, rows: BitMap64, handler: RebaseHandler) -> Commit:
    """The first winner after which one of these rows is deleted."""
    for winner in winners:
        added = winner.adds.filter(pc.equal(winner.adds["path"], path)).to_pylist()
        if not added or rows & handler.vector(added[0]):
            return winner
    return winners[-1]


def matched_rows_are_gone(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    """C3: where ours inserts what it did not match, every row that it matched must still be there."""
    matched = ours.reads.matched if ours.reads else {}
    for path in sorted(matched.keys() & net.changed.keys()):
        change, rows = net.changed[path], matched[path]
        if not rows:
            continue  # ours has looked for rows in the file
        if change.after is None:
            return _row_conflict(ours, change.winners[-1], change.before, rows)
        deleted, _ = growth(handler.vector(change.before), handler.vector(change.after))
        if both := deleted & rows:
            return _row_conflict(ours, _find_deleter(change.winners, path, both, handler), change.before, both)
    return None


def restored_rows_match(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    """C2 on rows that a winner restored in an old file: they count as new, and are not examined one by one."""
    for path, change in sorted(net.changed.items()):
        if change.after is None or path in ours.touched_paths:
            continue
        _, restored = growth(handler.vector(change.before), handler.vector(change.after))
        if restored and len(handler.could_match(files_table([change.after]))):
            return _restored_rows_conflict(ConcurrentAppendException, change, restored)
    return None


def _restored_rows_conflict(
    kind: type[DeltaConcurrentModificationException], change: Change, rows: BitMap64
) -> Conflict:
    reason, winner = "rows were restored", change.winners[-1]
    return Conflict(kind, "ROW_LEVEL_CHANGES", reason, winner, change.after, some_of(rows), len(rows))


def new_rows_match(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    """C2: no row added by a winner that had read the table may be one that ours should have read."""
    return None if redoes_added_rows(ours) else _find_matching_row(net.seeing, handler)


def blind_rows_match(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    """C2 where rows of blind appends are not redone, as at Serializable: none of them may be such a row either."""
    is_redone = ours.redoes_blind_rows or redoes_added_rows(ours)
    return None if is_redone else _find_matching_row(net.blind, handler)


def _find_matching_row(added: AddedFiles, handler: RebaseHandler) -> Conflict | None:
    rows = _rows_that_match(added.files, handler)
    if not rows:
        return None
    path = min(rows)
    winner, positions = added.winners[path], rows[path]
    reason, file = "rows that the condition selects were added", file_of(added.files, path)
    return Conflict(
        ConcurrentAppendException, "ROW_LEVEL_CHANGES", reason, winner, file, some_of(positions), len(positions)
    )


def _rows_that_match(files: pa.Table, handler: RebaseHandler) -> Marks:
    candidates = handler.could_match(files) if len(files) else files
    return handler.matches(candidates) if len(candidates) else {}


ROW_RULES = (marked_rows_are_gone, matched_rows_are_gone, restored_rows_match, new_rows_match, blind_rows_match)


# -- the file level: the documented matrix without row-level concurrency -----------------------------------------------


def files_added_that_ours_should_have_read(
    ours: Transaction, net: NetEffect, handler: RebaseHandler
) -> Conflict | None:
    """A winner that had read the table added a file that may hold rows which ours selects."""
    return _added_file_conflict(ours, net.seeing, handler)


def blind_files_added(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    """The same for blind appends: at Serializable, and where ours cannot be redone row by row."""
    redoable = ours.reads is not None and ours.reads.row_local and ours.redoes_blind_rows
    return None if redoable else _added_file_conflict(ours, net.blind, handler)


def _added_file_conflict(ours: Transaction, added: AddedFiles, handler: RebaseHandler) -> Conflict | None:
    candidates = handler.could_match(added.files) if len(added.files) else added.files
    path = min(candidates["path"].to_pylist(), default=None)
    if path is None:
        return None
    reason = "a file was added that may hold rows which the condition selects"
    return _file_conflict(ours, ConcurrentAppendException, reason, added.winners[path], file_of(candidates, path))


def files_that_ours_read_are_changed(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    """A winner removed, marked or rewrote a file that ours had to read."""
    read = ours.reads.files if ours.reads else frozenset()
    path = min(read & net.changed.keys(), default=None)
    if path is None:
        return None
    change, reason = net.changed[path], "a file that was read is changed"
    return _file_conflict(ours, ConcurrentDeleteReadException, reason, change.winners[0], change.before)


def files_that_ours_removes_are_gone(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Conflict | None:
    """A winner removed or marked a file that ours removes or marks without having read it."""
    path = min(ours.touched_paths & net.changed.keys(), default=None)
    if path is None:
        return None
    change, reason = net.changed[path], "both delete from one file"
    return _file_conflict(ours, ConcurrentDeleteDeleteException, reason, change.winners[0], change.before)


def _file_conflict(
    ours: Transaction, kind: type[DeltaConcurrentModificationException], reason: str, winner: Commit, file: FileRow
) -> Conflict:
    return Conflict(kind, why_files(ours, winner, kind), reason, winner, file)


FILE_RULES = (
    files_added_that_ours_should_have_read,
    blind_files_added,
    files_that_ours_read_are_changed,
    files_that_ours_removes_are_gone,
)


# -- conflicts that a redo resolves ------------------------------------------------------------------------------------


def find_rows_to_redo(ours: Transaction, net: NetEffect, handler: RebaseHandler) -> Clear | Redo:
    """Clear if no row of the blind appends that ours must stand behind matches, else Redo with those that match; under
    `redo` rows of all winners are redone.
    """
    if redoes_added_rows(ours):
        files = pa.concat_tables([net.blind.files, net.seeing.files])
    elif not ours.redoes_blind_rows:
        return Clear()  # blind_rows_match has already checked these rows
    else:
        files = net.blind.files
    rows = _rows_that_match(files, handler)
    if not rows:
        return Clear()
    return Redo(files.filter(pc.is_in(files["path"], value_set=pa.array(list(rows), pa.string()))), rows)
