"""Named tables: creates, refreshes, drops and renames the catalog entries of tables.

Connects a table at a path with its entry in Spark's catalog (`anabranch._catalog.entries`). Guarantee: an entry is
written after the table exists, so that no name leads to half a table; what can be refused is refused before anything
is written; of two that claim one name, one gets NameTaken.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from anabranch._catalog import entries
from anabranch._catalog.entry import Entry
from anabranch._catalog.table_names import Name, name_to_sql, parts_of
from anabranch.commands.ddl.drop import Drop
from anabranch.commands.opening import OWNER, Location, open_log
from anabranch.errors import (
    AlreadyExists,
    InvalidOption,
    NameTaken,
    NoPlaceForNames,
    NotFound,
    RenameUnfinished,
    UnknownSchema,
    UnknownTable,
)


@dataclass(frozen=True)
class NamedTable:
    """A name that has a table, or is about to get one.

    Attributes:
        name: the whole name.
        location: the current or future location of its table.
        managed: whether dropping the name removes the files.
        entry: the entry in the catalog; None if the name is free.
        foreign: whether the name is something else's, so that no Delta table can be created.
    """

    name: Name
    location: str
    managed: bool
    entry: Entry | None = None
    foreign: bool = False


def locate(
    spark: SparkSession, name: Name, location: Location | None = None, *, or_foreign: bool = False
) -> NamedTable:
    """The location of the table of this name, or of a new one: ``location``, or the schema's folder.

    With ``or_foreign`` the name may be something else's in the catalog; the result is then marked as foreign.

    Raises:
        NameTaken: the name belongs to something else. UnknownSchema: the schema does not exist.
        NoPlaceForNames: its catalog cannot store views. InvalidOption: the table of this name is elsewhere.
    """
    full = entries.complete_name(spark, name)
    entry = entries.find(spark, full)
    if entry is not None:
        if location is not None and open_log(location).table != open_log(entry.location).table:
            reason = f"the table {name_to_sql(full)} is at {entry.location}."
            raise InvalidOption(option="LOCATION", value=os.fspath(location), reason=reason)
        return NamedTable(entry.name, entry.location, entry.managed, entry)
    if (other := entries.find_item(spark, full)) is not None:
        if or_foreign and not other.is_temporary:
            return NamedTable(full, entries.managed_folder(spark, full), managed=True, foreign=True)
        raise NameTaken(name=name_to_sql(full), table=name_to_sql(full))
    check_place(spark, full)
    if location is not None:
        return NamedTable(full, open_log(location).table, managed=False)
    return NamedTable(full, _free_folder(entries.managed_folder(spark, full)), managed=True)


def check_place(spark: SparkSession, name: Name) -> None:
    """Raises an error unless the catalog can store a free whole name.

    Raises:
        UnknownSchema: the schema does not exist. NoPlaceForNames: its catalog cannot store views.
    """
    if not entries.has_schema(spark, name[:-1]):
        raise UnknownSchema(name=name_to_sql(name), schema=name_to_sql(name[:-1]))
    if not entries.can_store_entries(spark, name):
        raise NoPlaceForNames(name=name_to_sql(name), catalog=name[0])


def _free_folder(folder: str) -> str:
    """An unused folder for a new managed table, also if a dropped or renamed table left files behind."""
    store = open_log(folder).store
    return f"{folder}-{uuid.uuid4().hex[:8]}" if store.list_all() else folder


@contextmanager
def register_name(spark: SparkSession, named: NamedTable) -> Iterator[None]:
    """Names the table that is created, or written to, inside the block.

    A new managed table owns its folder from the beginning: a file next to its log records the owner.

    Raises:
        NameTaken: another writer takes the name, or took it meanwhile; the files of a managed table are removed again.
        UnknownTable: the name was dropped meanwhile.
    """
    is_claimed = named.managed and named.entry is None
    if is_claimed:
        _claim(named)
    try:
        yield
    except BaseException:
        if is_claimed and not open_log(named.location).exists():
            open_log(named.location).store.delete(OWNER)
        raise
    if named.entry is not None:
        _check_kept(spark, named.entry)
        refresh(spark, named.entry)
        return
    _name(spark, named)


def _claim(named: NamedTable) -> None:
    """Raises NameTaken if another table of this name is being created in the same folder."""
    try:
        open_log(named.location).store.put_if_absent(OWNER, name_to_sql(named.name).encode())
    except AlreadyExists:
        raise NameTaken(name=name_to_sql(named.name), table=named.location) from None


def _check_kept(spark: SparkSession, entry: Entry) -> None:
    """Raises UnknownTable if the name no longer leads to the table, so that nobody would find what was written."""
    if not _leads_to(entries.find(spark, entry.name), entry):
        raise UnknownTable(name=name_to_sql(entry.name))


def _name(spark: SparkSession, named: NamedTable) -> None:
    snapshot = open_log(named.location).snapshot()
    entry = Entry(named.name, named.location, named.managed, entries.kind_for(spark, named.name))
    try:
        entries.record(spark, entry, snapshot.schema, snapshot.metadata.description)
    except AnalysisException:
        now = entries.find(spark, named.name)
        if _leads_to(now, entry):
            return  # another writer created and named the same table; both wrote to it
        if not entries.is_taken(spark, named.name):
            raise
        if named.managed:
            Drop(named.location).run()
        raise NameTaken(name=name_to_sql(named.name), table=named.location) from None


def refresh(spark: SparkSession, entry: Entry) -> None:
    """Updates an entry's columns and comments from the table; does nothing if the entry is gone."""
    snapshot = open_log(entry.location).snapshot()
    schema, comment = snapshot.schema, snapshot.metadata.description
    if not entries.is_behind(entry, schema, comment):
        return
    now = entries.find(spark, entry.name)
    if now is not None and _leads_to(now, entry):
        entries.refresh(spark, now, schema, comment)


def refresh_by_name(spark: SparkSession, name: Name | None, location: Location) -> None:
    """As `refresh`, for a table that was changed by name; does nothing if the name no longer leads to it."""
    entry = None if name is None else entries.find(spark, name)
    if entry is not None and _is_at(entry, location):
        refresh(spark, entry)


def drop(spark: SparkSession, entry: Entry) -> None:
    """Drops a table's name, and then the files of a managed table, unless Spark removes them.

    Raises:
        RenameUnfinished: it has another name as well. UnknownTable: another session dropped the name.
    """
    _check_sole(spark, entry)
    if not entries.take(spark, entry):
        raise UnknownTable(name=name_to_sql(entry.name))
    if entry.managed and not entry.is_sparks and _owns(spark, entry):
        Drop(entry.location).run()


def rename(spark: SparkSession, entry: Entry, to: Name) -> None:
    """Renames a table, perhaps into another schema; its files stay in place, unless Spark manages them.

    A table that moves to another schema has both names for a moment. If this process ends in that moment, both lead to
    the table, neither can be dropped, and the same call again completes the rename.

    Raises:
        NameTaken: the new name belongs to something else. UnknownSchema: the schema does not exist.
        RenameUnfinished: it has two names, because another rename has not ended. UnknownTable: it is gone.
        InvalidOption: Spark manages its files, and moves none into another schema.
    """
    target = (*entry.name[:-1], *to) if len(to) == 1 else entries.complete_name(spark, to)
    if _leads_to(entries.find(spark, target), entry) and _same(entry.moves_to, target):
        _finish(spark, entry, target)
        return
    _check_sole(spark, entry)
    if entries.is_taken(spark, target):
        raise NameTaken(name=name_to_sql(target), table=entry.location)
    if _same(target[:-1], entry.name[:-1]):
        _note_owner(entry, target)
        entries.rename(spark, entry, target)
        return
    if entry.is_sparks:
        reason = (
            f"Spark keeps the files of {name_to_sql(entry.name)} in its schema's folder: clone it to another schema."
        )
        raise InvalidOption(option="RENAME TO", value=name_to_sql(target), reason=reason)
    if not entries.has_schema(spark, target[:-1]):
        raise UnknownSchema(name=name_to_sql(target), schema=name_to_sql(target[:-1]))
    move(spark, entry, target)


def move(spark: SparkSession, entry: Entry, target: Name) -> None:
    """Moves a table's name to another schema. Both entries refer to each other before both exist, so that a DROP of
    one can look for the other.

    Raises:
        NameTaken: another session has just taken the new name. UnknownTable: the old name is gone, or leads elsewhere.
    """
    snapshot = open_log(entry.location).snapshot()
    try:
        entries.mark_rename(spark, entry, target)
    except AnalysisException:
        if entries.is_taken(spark, entry.name):
            raise
        raise UnknownTable(name=name_to_sql(entry.name)) from None
    kind = entries.kind_for(spark, target)
    moved = replace(entry, name=target, kind=kind, moves_to=None, came_from=entry.name)
    try:
        entries.record(spark, moved, snapshot.schema, snapshot.metadata.description)
    except AnalysisException:
        entries.mark_rename(spark, entry, None)
        if entries.is_taken(spark, target):  # by another session, meanwhile
            raise NameTaken(name=name_to_sql(target), table=entry.location) from None
        raise
    now = entries.find(spark, entry.name)
    if now is None or not _leads_to(now, entry):
        entries.take(spark, moved)  # whoever took the old name owns the table now
        if now is not None:
            entries.mark_rename(spark, now, None)
        raise UnknownTable(name=name_to_sql(entry.name))
    if not _same(now.moves_to, target):
        entries.take(spark, moved)  # of two concurrent renames, the later mark wins
        raise RenameUnfinished(name=name_to_sql(entry.name), other=name_to_sql(now.moves_to or entry.name))
    _finish(spark, entry, target)


def _finish(spark: SparkSession, entry: Entry, target: Name) -> None:
    """Removes the old name of a table that has both. Of several concurrent drops and renames exactly one succeeds in
    this and owns the table; the new names of all others are removed.
    """
    _note_owner(entry, target)
    new = entries.find(spark, target)
    if entries.take(spark, entry):
        if new is not None:
            entries.mark_rename(spark, new, None)
        return
    if new is None or not _leads_to(new, entry) or new.came_from is None:
        return  # another session has completed this rename
    entries.take(spark, new)
    raise UnknownTable(name=name_to_sql(entry.name))


def _check_sole(spark: SparkSession, entry: Entry) -> None:
    """Raises an error if a managed table has another name.

    Reads the schema of the other name only for an entry with a mark, and then all of it, since a session that ignores
    marks may have renamed the other entry.

    Raises:
        RenameUnfinished: it has.
    """
    other = entry.moves_to or entry.came_from
    for candidate in entries.entries_in(spark, other[:-1]) if other is not None and entry.managed else ():
        if _leads_to(candidate, entry) and not _same(candidate.name, entry.name):
            old, new = (entry, candidate) if entry.moves_to else (candidate, entry)
            raise RenameUnfinished(name=name_to_sql(old.name), other=name_to_sql(new.name))


def _note_owner(entry: Entry, name: Name) -> None:
    """Records next to a managed table the name that owns its files; the catalog alone may be overwritten by a session
    that has not seen the rename.
    """
    log = open_log(entry.location)
    if entry.managed and not entry.is_sparks and log.exists():  # else it was dropped meanwhile
        log.store.put(OWNER, name_to_sql(name).encode())


def _owns(spark: SparkSession, entry: Entry) -> bool:
    """Whether a table's files belong to this name: its folder names it as the owner, or an owner that leads elsewhere
    now.

    The catalog alone is not trusted, since anybody who may create names may write it.
    """
    try:
        owner = parts_of(open_log(entry.location).store.get(OWNER).decode())
    except NotFound:
        return False
    return owner is not None and (_same(owner, entry.name) or not _leads_to(entries.find(spark, owner), entry))


def _leads_to(current: Entry | None, entry: Entry) -> bool:
    return current is not None and _is_at(current, entry.location)


def _is_at(entry: Entry, location: Location) -> bool:
    """Whether an entry leads to a location; Spark may spell its path differently."""
    return open_log(entry.location).table == open_log(location).table


def _same(name: Name | None, other: Name) -> bool:
    return name is not None and [part.lower() for part in name] == [part.lower() for part in other]
