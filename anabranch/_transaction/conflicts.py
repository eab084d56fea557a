"""The conflict grid: whether ours may stand behind its winners, and if not, why.

Knows what ours and the winners read and did, never a row's values and never an operation's name: what it must know of
rows it asks the command's `RebaseHandler`. Each rule is one line of the form *when the winners have X and ours has Y ->
outcome*, in the documented order. Checking only; carrying over is `rebase`. Any doubt is a conflict. It is one module
beyond 400 lines since the grid is read as a whole.

Source: Databricks documentation, "Isolation levels and write conflicts".

The cut (see docs/concepts/isolation.md): at WriteSerializable, ours stands *before* the longest run of blind appends
at the end of the window, and behind all others by their net effect. At Serializable it stands behind all.
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
from anabranch._transaction.net_effect import NO_EFFECT, Added, Change, Net, growth, net_effect
from anabranch._transaction.rebase_handler import RebaseHandler
from anabranch._transaction.relocation import Relocation, relocation_of
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
    """Ours stands behind, once it was run on these rows too, which blind winners added."""

    files: pa.Table
    rows: Marks


@dataclass(frozen=True)
class Clear:
    """Ours stands behind as it is."""


@dataclass(frozen=True)
class Verdict:
    """The outcome for a window: ours goes behind ``behind`` of its winners (their net effect is ``net``), before the
    rest. Where the next one moved rows (``then``), ours has to follow it before it is judged against those behind.
    """

    outcome: Clear | Redo | Conflict
    behind: Sequence[Commit]
    net: Net
    then: Relocation | None = None


def judge(ours: Transaction, window: Sequence[Commit], handler: RebaseHandler) -> Verdict:
    """Judge ours against all winners since the version that it stands behind, oldest first and at once; where winners
    moved rows, up to the first of them.
    """
    for winner in window:
        for rule in HEAD_RULES:
            if conflict := rule(ours, winner):
                return Verdict(conflict, (), NO_EFFECT)
    if (back := find_mark_reset(ours, window)) is not None:
        said = "the mark of an identity column was set back, so that values of ours may be given again"
        return Verdict(Conflict(MetadataChangedException, "METADATA_CHANGE", said, back), (), NO_EFFECT)
    if ours.is_blind or ours.identity.reserved_for is not None:
        return Verdict(Clear(), (), NO_EFFECT)  # an insert that read nothing cannot conflict, at any level
    behind, then = _segment(window[: cut_of(ours, window)]) if ours.does.groups is None else (window, None)
    known = ours.touched_paths | ours.does.recommits | (ours.reads.files if ours.reads else frozenset())
    net = net_effect(behind, known)
    outcome = _judge_rows(ours, net, handler) if ours.does.groups is None else Clear()
    if not isinstance(outcome, Conflict) and (conflict := _unseen_writer(ours, window)):
        outcome = conflict
    return Verdict(outcome, behind, net, then)


def _segment(behind: Sequence[Commit]) -> tuple[Sequence[Commit], Relocation | None]:
    """The winners before the first one that only moved rows, and that one."""
    for place, winner in enumerate(behind):
        if (relocation := relocation_of(winner)) is not None:
            return behind[:place], relocation
    return behind, None


def _unseen_writer(ours: Transaction, window: Sequence[Commit]) -> Conflict | None:
    """Ours changes the metadata or protocol, and somebody wrote under the old one meanwhile: it was not asked whether
    that fits the new one. Where ours takes a feature away, whatever was committed counts, since it may need it.
    """
    if ours.says.metadata is None and ours.says.protocol is None:
        return None
    every = _drops_feature(ours)
    winner = next((each for each in window if every or _writes(each)), None)
    if winner is None:
        return None
    if ours.says.metadata is None:
        said = "the table was written while its protocol was to be changed"
        return Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", said, winner)
    said = "the table was written while its metadata was to be changed"
    return Conflict(MetadataChangedException, "METADATA_CHANGE", said, winner)


def _writes(winner: Commit) -> bool:
    """Whether a winner wrote anything under the metadata that there was, also of a kind that is not known here."""
    known = {"commitInfo", "txn", "metaData"}  # what its metadata may be is judged by itself
    return bool(len(winner.adds) or len(winner.removes) or winner.head.kinds - known or winner.has_change_feed)


def _drops_feature(ours: Transaction) -> bool:
    if ours.says.protocol is None or ours.base is None:
        return False
    return bool(writer_features(ours.base.protocol) - writer_features(ours.says.protocol))


def cut_of(ours: Transaction, window: Sequence[Commit]) -> int:
    """How many winners ours must stand behind: all, or all up to the last one that is no blind append."""
    if ours.serializable:
        return len(window)
    domains = list(ours.base.state.domains.values()) if ours.base is not None else []
    cut = 0
    for place, winner in enumerate(window, 1):
        if may_see(ours, winner) or lowers_row_ids(winner, domains):
            cut = place
        domains += winner.head.domains
    return cut


def may_see(ours: Transaction, winner: Commit) -> bool:
    """Whether a winner may have read rows on which its outcome depends, also where it then brought none: every one may
    that does not say otherwise in a way which its content bears out.
    """
    return not (
        is_blind_append(winner)
        or is_vacuum(winner)
        or relocation_of(winner) is not None
        or is_reservation(ours, winner)
    )


def _judge_rows(ours: Transaction, net: Net, handler: RebaseHandler) -> Clear | Redo | Conflict:
    if net.is_nothing:
        return Clear()
    rules = ROW_RULES if goes_by_rows(ours) else FILE_RULES
    for rule in rules:
        if conflict := rule(ours, net, handler):
            return conflict
    return blind_rows(ours, net, handler)


def goes_by_rows(ours: Transaction) -> bool:
    has_rows = ours.base is not None and ours.base.properties.vectors and ours.resolution in ("row", REDO)
    return has_rows and ours.reads is not None and ours.reads.row_local


def redoes_added_rows(ours: Transaction) -> bool:
    """Whether rows that winners which had read the table added, or that blind ones added at Serializable, are redone
    instead of refused, since the table says `redo`.
    """
    return ours.resolution == REDO and goes_by_rows(ours)


# -- winners one by one: what no order can mend ------------------------------------------------------------------------


def protocol_changed(ours: Transaction, winner: Commit) -> Conflict | None:
    """A winner upgraded the protocol, or created or replaced the table that ours would create or replace."""
    if _both_replace(ours, winner):
        return Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", "the table was replaced by another writer", winner)
    if winner.head.protocol is None and ours.base is not None:
        return None
    said = "the table was created by another writer" if ours.base is None else "the protocol was changed"
    return Conflict(ProtocolChangedException, "PROTOCOL_CHANGE", said, winner)


def _both_replace(ours: Transaction, winner: Commit) -> bool:
    """Whether each puts another table, made at another time, in the place of the one that ours has read."""
    both = (ours.says.metadata, winner.head.metadata)
    return ours.base is not None and all(
        each is not None and each.created_time != ours.base.metadata.created_time for each in both
    )


def metadata_changed(ours: Transaction, winner: Commit) -> Conflict | None:
    """Any change of properties, schema or features fails every concurrent write; reserved identity values are none."""
    if winner.head.metadata is None or passes(ours, winner):
        return None
    said = "the metadata was changed"
    if only_marks(ours, winner) and may_have_uncounted_values(ours, winner):
        said = "SYNC IDENTITY did not count the identity values that ours brings"
    return Conflict(MetadataChangedException, "METADATA_CHANGE", said, winner)


def domain_changed(ours: Transaction, winner: Commit) -> Conflict | None:
    """Both wrote the same domain; of row ids each attempt takes others, so their mark is no such."""
    both = ({d.domain for d in ours.says.domains} & {d.domain for d in winner.head.domains}) - {row_tracking.DOMAIN}
    if not both:
        return None
    return Conflict(ConcurrentWriteException, "METADATA_CHANGE", f"both wrote the domain {min(both)}", winner)


def same_application(ours: Transaction, winner: Commit) -> Conflict | None:
    """Both wrote for the same application id, as two runs of one stream would."""
    both = {t.app_id for t in ours.says.app_transactions} & {t.app_id for t in winner.head.app_transactions}
    if not both:
        return None
    return Conflict(ConcurrentTransactionException, "", f"both wrote for the application {min(both)}", winner)


HEAD_RULES: tuple[Callable[[Transaction, Commit], Conflict | None], ...] = (
    protocol_changed,
    metadata_changed,
    domain_changed,
    same_application,
)


# -- the row level: ours last (C1, C2, C3) -----------------------------------------------------------------------------


def marked_rows_are_gone(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """C1: every row that ours marks must still be where ours found it."""
    for path in sorted(ours.touched_paths & net.changed.keys()):
        if conflict := _same_rows(ours, path, net, handler):
            return conflict
    return None


def _same_rows(ours: Transaction, path: str, net: Net, handler: RebaseHandler) -> Conflict | None:
    change = net.changed[path]
    if change.after is None:
        marks, source = ours.does.marks.get(path), ours.does.sources[path]
        count = len(marks) if marks else (num_records(source.row.get("stats")) or 0) - len(source.vector)
        return _row_conflict(ours, change.winners[-1], change.before, marks or _live(source), count)
    grown, shrunk = growth(ours.does.sources[path].vector, handler.vector(change.after))
    if shrunk:  # a union of vectors would delete the restored rows again
        return _restored_rows_conflict(ConcurrentDeleteReadException, change, shrunk)
    both = grown if path in ours.does.removes else grown & ours.does.marks[path]
    return _row_conflict(ours, _who_marked(change.winners, path, both, handler), change.before, both) if both else None


def _row_conflict(
    ours: Transaction, winner: Commit, file: FileRow, rows: BitMap64, count: int | None = None
) -> Conflict:
    both_delete = ours.only_deletes and only_deletes(winner)
    kind = ConcurrentDeleteDeleteException if both_delete else ConcurrentDeleteReadException
    said = "both changed the same rows"
    return Conflict(kind, why_rows(winner), said, winner, file, some_of(rows), len(rows) if count is None else count)


def _live(source: Source) -> BitMap64:
    """A few rows of a file that ours removes whole, as it was read."""
    records = num_records(source.row.get("stats")) or 0
    return BitMap64(range(min(records, len(source.vector) + SAMPLE))) - source.vector


def _who_marked(winners: Sequence[Commit], path: str, rows: BitMap64, handler: RebaseHandler) -> Commit:
    """The first winner after which one of these rows is gone."""
    for winner in winners:
        again = winner.adds.filter(pc.equal(winner.adds["path"], path)).to_pylist()
        if not again or rows & handler.vector(again[0]):
            return winner
    return winners[-1]


def matched_rows_are_gone(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """C3: where ours inserts what it did not match, every row that it matched must still be there."""
    matched = ours.reads.matched if ours.reads else {}
    for path in sorted(matched.keys() & net.changed.keys()):
        change = net.changed[path]
        if change.after is None:
            return _row_conflict(ours, change.winners[-1], change.before, matched[path])
        grown, _ = growth(handler.vector(change.before), handler.vector(change.after))
        if both := grown & matched[path]:
            return _row_conflict(ours, _who_marked(change.winners, path, both, handler), change.before, both)
    return None


def restored_rows_match(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """C2 on rows that a winner brought back to life inside an old file: they are new, and not looked at one by one."""
    for path, change in sorted(net.changed.items()):
        if change.after is None or path in ours.touched_paths:
            continue
        _, shrunk = growth(handler.vector(change.before), handler.vector(change.after))
        if shrunk and len(handler.could_match(files_table([change.after]))):
            return _restored_rows_conflict(ConcurrentAppendException, change, shrunk)
    return None


def _restored_rows_conflict(
    kind: type[DeltaConcurrentModificationException], change: Change, rows: BitMap64
) -> Conflict:
    said, winner = "rows were restored", change.winners[-1]
    return Conflict(kind, "ROW_LEVEL_CHANGES", said, winner, change.after, some_of(rows), len(rows))


def new_rows_match(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """C2: no row that a winner which had read the table brought may be one that ours should have read."""
    return None if redoes_added_rows(ours) else _matching(net.seeing, handler)


def blind_rows_match(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """C2 at Serializable: not even a blind append may have brought such a row."""
    return _matching(net.blind, handler) if ours.serializable and not redoes_added_rows(ours) else None


def _matching(added: Added, handler: RebaseHandler) -> Conflict | None:
    rows = _rows_that_match(added.files, handler)
    for path, positions in sorted(rows.items()):
        winner = added.winners[path]
        said = "rows that the condition selects were added"
        file = file_of(added.files, path)
        shown = some_of(positions)
        return Conflict(
            ConcurrentAppendException, "ROW_LEVEL_CHANGES", said, winner, file, shown, row_count=len(positions)
        )
    return None


def _rows_that_match(files: pa.Table, handler: RebaseHandler) -> Marks:
    candidates = handler.could_match(files) if len(files) else files
    return handler.matches(candidates) if len(candidates) else {}


ROW_RULES = (marked_rows_are_gone, matched_rows_are_gone, restored_rows_match, new_rows_match, blind_rows_match)


# -- the file level: the documented matrix without row-level concurrency -----------------------------------------------


def files_added_that_ours_should_have_read(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """A winner that had read the table added a file that may hold rows which ours selects."""
    return _added_file_conflict(ours, net.seeing, handler)


def blind_files_added(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """The same for blind appends: at Serializable, and where ours cannot be redone row by row."""
    redoable = ours.reads is not None and ours.reads.row_local and not ours.serializable
    return None if redoable else _added_file_conflict(ours, net.blind, handler)


def _added_file_conflict(ours: Transaction, added: Added, handler: RebaseHandler) -> Conflict | None:
    candidates = handler.could_match(added.files) if len(added.files) else added.files
    for path in sorted(candidates["path"].to_pylist()):
        said = "a file was added that may hold rows which the condition selects"
        return _file_conflict(ours, ConcurrentAppendException, said, added.winners[path], file_of(candidates, path))
    return None


def files_that_ours_read_are_changed(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """A winner removed, marked or rewrote a file that ours had to read."""
    read = ours.reads.files if ours.reads else frozenset()
    for path in sorted(read & net.changed.keys()):
        change, said = net.changed[path], "a file that was read is changed"
        return _file_conflict(ours, ConcurrentDeleteReadException, said, change.winners[0], change.before)
    return None


def files_that_ours_removes_are_gone(ours: Transaction, net: Net, handler: RebaseHandler) -> Conflict | None:
    """A winner removed or marked a file that ours removes or marks without having read it."""
    for path in sorted(ours.touched_paths & net.changed.keys()):
        change, said = net.changed[path], "both delete from one file"
        return _file_conflict(ours, ConcurrentDeleteDeleteException, said, change.winners[0], change.before)
    return None


def _file_conflict(
    ours: Transaction, kind: type[DeltaConcurrentModificationException], said: str, winner: Commit, file: FileRow
) -> Conflict:
    return Conflict(kind, why_files(ours, winner, kind), said, winner, file)


FILE_RULES = (
    files_added_that_ours_should_have_read,
    blind_files_added,
    files_that_ours_read_are_changed,
    files_that_ours_removes_are_gone,
)


# -- what can be mended ------------------------------------------------------------------------------------------------


def blind_rows(ours: Transaction, net: Net, handler: RebaseHandler) -> Clear | Redo:
    """Rows of blind appends that ours must stand behind: none of them matters, or ours is run on those that do. By
    `redo` this goes for rows of all winners.
    """
    if redoes_added_rows(ours):
        files = pa.concat_tables([net.blind.files, net.seeing.files])
    elif ours.serializable:
        return Clear()  # judged already: none of them matches
    else:
        files = net.blind.files
    rows = _rows_that_match(files, handler)
    if not rows:
        return Clear()
    return Redo(files.filter(pc.is_in(files["path"], value_set=pa.array(list(rows), pa.string()))), rows)
