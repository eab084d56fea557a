"""The change data of several statements as that of one commit.

Knows change data files, and rows only as keys. Where a statement changes rows that an earlier one has written, what was
recorded for each of them is folded: a row that came and went is in no feed, an inserted row that was updated is one
insert, a row that was updated twice is one update. Guarantee: the rows of the feed, with their signs, are exactly the
difference between the versions before and after; labels other than those of inserts and deletes are kept where the
recorded files show which new image belongs to which old one, as those of UPDATE do.

Source: PROTOCOL.md, "Add CDC File": a commit with such files has all of its changes in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch._log.file_locations import locate_in_store
from anabranch._log.snapshot import Snapshot
from anabranch._protocol.actions import FileRow, files_table
from anabranch._protocol.change_feed import CHANGE_TYPE, DELETE, FOLDER, INSERT, POSTIMAGE, PREIMAGE, records_changes
from anabranch._protocol.layout.paths import decode, encode
from anabranch._protocol.parquet_files import parquet_bytes
from anabranch._protocol.rules.table_rules import rules_of
from anabranch._storage.native import native_file
from anabranch._transaction.open_transaction import Part
from anabranch._transaction.transaction import Transaction
from anabranch.commands.change_recorder import ChangeRecorder
from anabranch.commands.engine import Engine
from anabranch.commands.jobs import Job
from anabranch.commands.staging import Staging
from anabranch.errors import NotInTransaction

MOST_ROWS = 2_000_000
"""Maximum number of changed rows that are folded in memory."""

Key = tuple[Any, ...]
"""A row by its values and those of its partition: equal rows may stand for each other in a feed."""


def join_feeds(
    ours: Transaction, parts: Sequence[Part], engine: Engine | None, job: Job
) -> tuple[Transaction, list[str]]:
    """The joined transaction with the change data of all its statements; and the names of the files that were written
    for it, which no commit has if it fails.

    Args:
        ours: with the change data files of all statements.
        engine: records changes of statements that needed no such files by themselves.
        job: the job of all statements, in whose folder new files are written.

    Raises:
        NotInTransaction: too many rows would have to be folded.
    """
    base = ours.base
    assert base is not None, "statements change a table that is there"
    if len(parts) < 2 or not records_changes(base.metadata) or not len(ours.changes.change_files):
        return ours, []
    feeds = [_record(part.ours, base, engine, job) for part in parts]
    if not _changes_own_rows(parts):
        return _with_change_files(ours, pa.concat_tables(feeds)), _names(feeds)
    folded = _Feeds.read(base, parts, feeds).fold()
    written = files_table(list(_write(folded, base, job)))
    return _with_change_files(ours, written), [*_names(feeds), *_names([written])]


def _with_change_files(ours: Transaction, files: pa.Table) -> Transaction:
    return replace(ours, changes=replace(ours.changes, change_files=files))


def _names(feeds: Iterable[pa.Table]) -> list[str]:
    return [decode(path) for feed in feeds for path in feed["path"].to_pylist()]


def _changes_own_rows(parts: Sequence[Part]) -> bool:
    """Whether a statement changes rows that an earlier one has written."""
    own = set[str]()
    for part in parts:
        if own & part.ours.touched_paths:
            return True
        own |= set(part.ours.changes.adds["path"].to_pylist())
    return False


def _record(statement: Transaction, base: Snapshot, engine: Engine | None, job: Job) -> pa.Table:
    """The change data files of a statement; one that needed none gets them now."""
    changes = statement.changes
    if len(changes.change_files) or not (statement.touched_paths or len(changes.adds)):
        return changes.change_files
    if engine is None:
        reason = "the changes of several statements are recorded together, which takes an engine for rows."
        raise NotInTransaction(what=statement.info.operation, table=base.table, reason=reason)
    staging = Staging(base.store, statement.txn_id, job=job)
    staging.start()
    recorder = ChangeRecorder(base, base.metadata, engine, staging)
    for path in sorted(statement.touched_paths):
        source = changes.sources[path]
        recorder.note(DELETE, files_table([source.row]), {path: rows} if (rows := changes.marks.get(path)) else None)
    recorder.note(INSERT, changes.adds)
    return recorder.write_noted(needed=True)


@dataclass(frozen=True)
class Feed:
    """The changes of one statement, as numbers of recorded rows: ``pairs`` are old and new images of updated rows."""

    deletes: Sequence[int] = ()
    inserts: Sequence[int] = ()
    pairs: Sequence[tuple[int, int]] = ()


def fold(feeds: Iterable[Feed], keys: Sequence[Key]) -> list[tuple[str, int]]:
    """The net changes of statements, one after the other: kinds of change, and the numbers of their rows.

    Args:
        keys: the values of each recorded row, by its number.
    """
    own: dict[Key, list[tuple[int, int | None]]] = {}  # rows written inside: their number, and that of their old image
    changes: list[tuple[str, int]] = []

    def origin(row: int) -> tuple[bool, int | None]:
        """Whether a row was written inside, and the number of its old image, where the table had one."""
        written = own.get(keys[row])
        return (True, written.pop()[1]) if written else (False, row)

    for feed in feeds:
        gone = [origin(row)[1] for row in feed.deletes]
        changes += [(DELETE, row) for row in gone if row is not None]
        images = [(new, origin(old)[1]) for old, new in feed.pairs]
        for new, old in [*images, *((row, None) for row in feed.inserts)]:
            own.setdefault(keys[new], []).append((new, old))
    for new, old in (entry for entries in own.values() for entry in entries):
        changes += [(INSERT, new)] if old is None else [(PREIMAGE, old), (POSTIMAGE, new)]
    return changes


@dataclass
class _Feeds:
    """The recorded rows of all statements, in one table, with the partition of each row."""

    rows: pa.Table
    partitions: list[tuple[tuple[str, str | None], ...]]
    feeds: list[Feed] = field(default_factory=list)

    @classmethod
    def read(cls, base: Snapshot, parts: Sequence[Part], recorded: Sequence[pa.Table]) -> _Feeds:
        tables, partitions, feeds = list[pa.Table](), list[tuple[tuple[str, str | None], ...]](), list[Feed]()
        for part, files in zip(parts, recorded, strict=True):
            keeps_pairs, single = part.ours.info.operation == "UPDATE", list[Feed]()
            for file in files.to_pylist():
                table = _read(base, file)
                single.append(_feed_of(table[CHANGE_TYPE].to_pylist(), len(partitions), keeps_pairs=keeps_pairs))
                partitions += [tuple(file["partitionValues"] or ())] * len(table)
                tables.append(table)
                if len(partitions) > MOST_ROWS:
                    reason = f"it changes rows that it has written itself, and more than {MOST_ROWS:,} in all."
                    raise NotInTransaction(what="The change data feed", table=base.table, reason=reason)
            feeds.append(_merge_feeds(single))
        return cls(_concat(tables), partitions, feeds)

    def fold(self) -> Iterator[tuple[tuple[tuple[str, str | None], ...], pa.Table]]:
        """The net changes, partition by partition."""
        values = self.rows.drop_columns([CHANGE_TYPE]).to_pylist()
        keys = [(partition, repr(row)) for partition, row in zip(self.partitions, values, strict=True)]
        groups: dict[tuple[tuple[str, str | None], ...], list[tuple[str, int]]] = {}
        for change, row in fold(self.feeds, keys):
            groups.setdefault(self.partitions[row], []).append((change, row))
        for partition, changes in groups.items():
            rows = self.rows.take([row for _, row in changes])
            kinds = pa.array([change for change, _ in changes], self.rows.schema.field(CHANGE_TYPE).type)
            place = rows.schema.get_field_index(CHANGE_TYPE)
            yield partition, rows.set_column(place, rows.schema.field(CHANGE_TYPE), kinds)


def _concat(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all files, in the columns that all have: files of an UPDATE also have hidden row ids."""
    common = set(tables[0].column_names).intersection(*(table.column_names for table in tables))
    first = tables[0].select([name for name in tables[0].column_names if name in common])
    return pa.concat_tables([table.select(first.column_names).cast(first.schema) for table in tables])


def _feed_of(kinds: Sequence[str], first: int, *, keeps_pairs: bool) -> Feed:
    """The changes of one file, whose rows are numbered from ``first``. Where images cannot be paired, an update counts
    as a deletion and an insertion.
    """
    numbers: dict[str, list[int]] = {INSERT: [], DELETE: [], PREIMAGE: [], POSTIMAGE: []}
    for number, kind in enumerate(kinds, first):
        numbers[kind].append(number)
    old, new = numbers[PREIMAGE], numbers[POSTIMAGE]
    if keeps_pairs and len(old) == len(new):
        return Feed(numbers[DELETE], numbers[INSERT], list(zip(old, new, strict=True)))
    return Feed([*numbers[DELETE], *old], [*numbers[INSERT], *new])


def _merge_feeds(feeds: Sequence[Feed]) -> Feed:
    return Feed(
        [row for feed in feeds for row in feed.deletes],
        [row for feed in feeds for row in feed.inserts],
        [pair for feed in feeds for pair in feed.pairs],
    )


def _read(base: Snapshot, file: FileRow) -> pa.Table:
    store, name = locate_in_store(base.store, file["path"])
    return pq.read_table(native_file(store.get(name)))


def _write(
    changes: Iterable[tuple[tuple[tuple[str, str | None], ...], pa.Table]], base: Snapshot, job: Job
) -> Iterator[Mapping[str, Any]]:
    """Write a file of change data for each partition."""
    rules, folder = rules_of(base.metadata), f"{FOLDER}/{job.folder}/{job.next_part()}"
    for number, (partition, rows) in enumerate(changes):
        name = f"{folder}/part-{number:05d}-{job.id}.{rules.compression}.parquet"
        data = parquet_bytes(rows, rules.compression, rules.pages)
        base.store.put(name, data)
        yield {"path": encode(name), "partitionValues": list(partition), "size": len(data), "modificationTime": 0}
