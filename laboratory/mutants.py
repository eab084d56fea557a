"""Mutants: the product with one rule broken, each of which the laboratory must catch.

Knows the product's inside, on purpose. A laboratory that cannot fail proves nothing; a mutant that survives means that
its histories never come near that rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

import pyarrow as pa
from pyroaring import BitMap64

from anabranch._log.commits import Commit
from anabranch._protocol import change_feed
from anabranch._protocol.layout import moves
from anabranch._protocol.merges import Joined
from anabranch._protocol.stats.skipping import FileFacts
from anabranch._transaction import commit, commit_actions, conflicts, put, rebase
from anabranch._transaction import relocation as relocating
from anabranch._transaction.transaction import RESERVED_FOR, Transaction, is_blind_append, tags_of
from anabranch.commands import clustering, row_changes
from anabranch.commands.change_recorder import ChangeRecorder
from anabranch.commands.dml import insert, merge, write
from anabranch.commands.dml.replaced_rows import SelectedRows, WrittenPartitions
from anabranch.commands.sources import NO_VERSIONS, VersionsRead
from anabranch.errors import PutOutcomeUnknown, StoreError
from anabranch.testing.arrow_engine import ArrowEngine

Patches = Sequence[tuple[Any, str, Any]]


@dataclass(frozen=True)
class Mutant:
    """One broken rule: ``patches`` are (module, name, what stands there instead)."""

    name: str
    patches: Patches

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Within the block the product is broken."""
        with ExitStack() as stack:
            for module, name, instead in self.patches:
                stack.enter_context(patch.object(module, name, instead))
            yield


def _without(rules: str, *names: str) -> Patches:
    kept = tuple(rule for rule in getattr(conflicts, rules) if rule.__name__ not in names)
    assert len(kept) == len(getattr(conflicts, rules)) - len(names), "no such rule"
    return ((conflicts, rules, kept),)


def _clear(*anything: Any, **more: Any) -> conflicts.Clear:
    return conflicts.Clear()


def _nothing(*anything: Any, **more: Any) -> None:
    return None


def _reading_nothing(*anything: Any, **more: Any) -> VersionsRead:
    return NO_VERSIONS


def _no_files_but_at_first() -> Callable[..., Any]:
    """Files of winners never lie in the partitions that are replaced; those of the base, which come first, do."""
    real, asked = WrittenPartitions.could_match, WeakSet[WrittenPartitions]()

    def could_match(handler: WrittenPartitions, files: pa.Table) -> pa.Table:
        if handler in asked:
            return files.slice(0, 0)
        asked.add(handler)
        return real(handler, files)

    return could_match


# -- the cut -----------------------------------------------------------------------------------------------------------


def _skipping_every_blind_winner(
    ours: Transaction, window: Sequence[Commit], handler: Any, proven: Sequence[relocating.Relocation] = ()
) -> conflicts.Verdict:
    """ "Blind appends cannot conflict": all of them are skipped, wherever they stand."""
    if ours.serializable or not window:
        return _judge(ours, window, handler, proven)
    seeing = [winner for winner in window if not is_blind_append(winner)]
    verdict = _judge(ours, seeing, handler, proven)
    return replace(verdict, behind=window) if verdict.behind else verdict


def _blind_by_actions(winner: Commit) -> bool:
    """Any winner that only adds counts as blind, whatever it read."""
    return len(winner.removes) == 0 and not winner.head.kinds & {"metaData", "protocol"}


def _before_everything(ours: Transaction, window: Sequence[Commit]) -> int:
    return len(window) if ours.serializable else 0


_judge = conflicts.judge


# -- who has read nothing ----------------------------------------------------------------------------------------------


def _silent_is_blind(ours: Transaction, winner: Commit) -> bool:
    """Whoever brought no file has read nothing."""
    no_files = len(winner.adds) == 0 and len(winner.removes) == 0
    return not (no_files and winner.head.kinds <= {"commitInfo", "metaData"}) and _sees(ours, winner)


def _blind_by_flag(winner: Commit) -> bool:
    return bool(winner.head.info.get("isBlindAppend"))


def _reserved_by_tag(ours: Transaction, winner: Commit) -> bool:
    return RESERVED_FOR in tags_of(winner)


def _moves_of_nothing(winner: Commit, groups: Sequence[Any]) -> bool:
    """A record of moves is believed where it speaks of no file."""
    return not groups or _only_moves(winner, groups)


_sees = conflicts.may_have_read
_only_moves = relocating.only_moves


# -- carrying over -----------------------------------------------------------------------------------------------------


def _union_of_anything(before: BitMap64, after: BitMap64) -> tuple[BitMap64, BitMap64]:
    return after - before, BitMap64()


def _not_repointed(ours: Transaction, verdict: Any, handler: Any) -> Transaction:
    return ours


def _vectors_not_joined(ours: Transaction, path: str) -> BitMap64:
    return BitMap64(ours.changes.marks[path])


def _still_reading(ours: Transaction, verdict: Any, handler: Any) -> Transaction:
    return ours


def _as_if_none_were_dead(group: Any, rows: Any, dead: Any) -> dict[str, BitMap64]:
    """Rows keep the distance from the first one of their file, though deleted ones were left out."""
    return _one_after_the_other(group, rows, {path: BitMap64() for path in dead})


def _where_they_were(ours: Transaction, relocation: relocating.Relocation, loaders: Any) -> Transaction:
    """Rows that were moved are thought to need no marks any more."""
    kept = {path: rows for path, rows in ours.changes.marks.items() if path not in relocation.left}
    sources = {path: source for path, source in ours.changes.sources.items() if path not in relocation.left}
    version = relocation.winner.version
    return replace(
        ours,
        changes=replace(ours.changes, marks=kept, removes=ours.changes.removes - relocation.left, sources=sources),
        position=replace(ours.position, rebased_to=version),
    )


def _all_alive(ours: Transaction) -> list[Any]:
    return []


_one_after_the_other = moves.locate_in_order


def _changed_rows_only(matched_and_changed: Sequence[Any]) -> Any:
    _, changed = matched_and_changed
    return changed


def _only_the_newest(window: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: window(self)[-1:]


def _all_but_the_first(window: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: window(self)[1:] or window(self)


def _without_images(ours: Transaction, extra: Transaction) -> Transaction:
    """What ours changes of blind winners' rows is not recorded."""
    return _both(
        ours, replace(extra, changes=replace(extra.changes, change_files=extra.changes.change_files.slice(0, 0)))
    )


_both = rebase.join_transactions


# -- the put -----------------------------------------------------------------------------------------------------------


def _lost_is_failed(once: Callable[[], bool], ours: Transaction, version: int, *rest: Any) -> bool:
    try:
        return once()
    except PutOutcomeUnknown as error:
        raise StoreError(name=str(version), root=ours.table, reason="the reply was lost.") from error


class _AnotherName(rebase.Rebase):
    """A transaction that does not know its own commit again."""

    def look(self) -> Sequence[Commit]:
        """As ever, under another name."""
        return [replace(w, head=replace(w.head, info={**w.head.info, "txnId": "?"})) for w in super().look()]


# -- rows that are let go ----------------------------------------------------------------------------------------------


def _remembering(engine: ArrowEngine, files: Any, matching: Any, joined: Joined, rows: Any) -> tuple[Joined, Joined]:
    return joined, _split(engine, files, matching, joined, rows)[1]


_split = ArrowEngine.split


# -- statistics --------------------------------------------------------------------------------------------------------


def _missing_means_no_match(facts: FileFacts, predicate: Any) -> Any:
    found = _could_match(facts, predicate)
    stated = ["minValues" in (stats or "") for stats in facts.files["stats"].to_pylist()]
    return pa.array([bool(a) and b for a, b in zip(found.to_pylist(), stated, strict=True)], pa.bool_())


_could_match = FileFacts.could_match


MUTANTS: tuple[Mutant, ...] = (
    Mutant("C1 dropped", _without("ROW_RULES", "marked_rows_are_gone")),
    Mutant("C2 dropped", _without("ROW_RULES", "new_rows_match")),
    Mutant("C2 dropped for blind winners at Serializable", _without("ROW_RULES", "blind_rows_match")),
    Mutant("C3 dropped", _without("ROW_RULES", "matched_rows_are_gone")),
    Mutant("a MERGE looks for the rows it would change only", ((merge, "union_of", _changed_rows_only),)),
    Mutant(
        "a MERGE does not withdraw what it inserted", ((rebase, "without_withdrawn", lambda adds, withdrawn: adds),)
    ),
    Mutant("a replaceWhere looks for no row", ((SelectedRows, "matches", lambda handler, files: {}),)),
    Mutant("a dynamic overwrite looks for no file", ((WrittenPartitions, "could_match", _no_files_but_at_first()),)),
    Mutant("an insert that reads its table counts as blind", ((write, "versions_read", _reading_nothing),)),
    Mutant("an insert passes over what others did since its source was read", ((insert, "check_newest", _nothing),)),
    Mutant("restored rows not looked at", _without("ROW_RULES", "restored_rows_match")),
    Mutant("every blind winner is skipped", ((rebase, "judge", _skipping_every_blind_winner),)),
    Mutant("any winner that only adds is skipped", ((conflicts, "is_blind_append", _blind_by_actions),)),
    Mutant("a winner without a file counts as blind", ((conflicts, "may_have_read", _silent_is_blind),)),
    Mutant("isBlindAppend is believed whatever was done", ((conflicts, "is_blind_append", _blind_by_flag),)),
    Mutant("a reservation is believed by its tag", ((conflicts, "is_reservation", _reserved_by_tag),)),
    Mutant("a record of moves of nothing is believed", ((relocating, "only_moves", _moves_of_nothing),)),
    Mutant("mine is put before every winner", ((conflicts, "count_winners_to_follow", _before_everything),)),
    Mutant("blind winners' rows are not redone", ((conflicts, "find_rows_to_redo", _clear),)),
    Mutant("file level: read files may change", _without("FILE_RULES", "files_that_ours_read_are_changed")),
    Mutant("file level: files may come in", _without("FILE_RULES", "files_added_that_ours_should_have_read")),
    Mutant("file level: blind files may come in", _without("FILE_RULES", "blind_files_added")),
    Mutant("vectors joined though they shrank", ((conflicts, "growth", _union_of_anything),)),
    Mutant("remove not re-pointed", ((rebase, "repoint_sources", _not_repointed),)),
    Mutant("files that are gone count as known", ((rebase, "update_read_set", _still_reading),)),
    Mutant("winner's vector not joined", ((commit_actions, "join_vector", _vectors_not_joined),)),
    Mutant("only the newest winner is judged", ((rebase.Rebase, "look", _only_the_newest(rebase.Rebase.look)),)),
    Mutant("the oldest winner is skipped", ((rebase.Rebase, "look", _all_but_the_first(rebase.Rebase.look)),)),
    Mutant("own commit not known again", ((commit, "Rebase", _AnotherName), (put, "is_ours", lambda *a: False))),
    Mutant("lost reply reported as failure", ((put, "put_until_decided", _lost_is_failed),)),
    Mutant("moved rows are looked for as if none were dead", ((moves, "locate_in_order", _as_if_none_were_dead),)),
    Mutant("marks of moved rows are dropped", ((rebase, "follow_relocation", _where_they_were),)),
    Mutant("what was deleted meanwhile is moved alive", ((commit_actions, "buried_files", _all_alive),)),
    Mutant("what was restored meanwhile is not moved", ((relocating, "growth", _union_of_anything),)),
    Mutant("moves that others made are not noticed", ((conflicts, "relocations_in", lambda window: ()),)),
    Mutant("an image is lost on carry-over", ((rebase, "join_transactions", _without_images),)),
    Mutant(
        "a batch is committed twice",
        ((insert, "is_written", lambda *anything: False), *_without("HEAD_RULES", "same_application")),
    ),
    Mutant("a moved row is emitted again", ((change_feed, "data_changes", lambda actions: actions),)),
    Mutant("missing statistics mean no match", ((FileFacts, "could_match", _missing_means_no_match),)),
    Mutant("a row that was let go keeps its new image", ((row_changes, "find_equal_rows", lambda *anything: {}),)),
    Mutant("a MERGE keeps the new image of a row that was let go", ((merge, "find_equal_rows", lambda *anything: {}),)),
    Mutant("a MERGE remembers the match of a row that was let go", ((ArrowEngine, "split", _remembering),)),
    Mutant("a feed keeps what was let go", ((ChangeRecorder, "leave_out", lambda recorder, files, rows: files),)),
    Mutant("stale metadata accepted", _without("HEAD_RULES", "metadata_changed")),
    Mutant(
        "feature list ignored",
        (
            *_without("HEAD_RULES", "protocol_changed"),
            (clustering, "check_writable", _nothing),
            (insert, "check_writable", _nothing),
        ),
    ),
)
"""All of them. Each verb that is built brings its own."""
