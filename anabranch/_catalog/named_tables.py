"""Tables with names: how one gets its name, keeps it up to date, gives it up or takes another.

A door that other doors share: it brings a table at a path and its entry in Spark's catalog
(`anabranch._catalog.entries`) together. Guarantee: an entry is written once the table stands, so that no name leads
to half a table; whatever can be refused is refused before anything is written; of two that want one name, one is told
that it is taken.
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
from anabranch._catalog.names import Name, name_to_sql, parts_of
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
class Named:
    """A name that has a table, or is about to get one.

    Attributes:
        name: the whole name.
        location: where its table lies, or will.
        managed: whether the files go with the name.
        entry: what the catalog says of it now; None where it is free.
        foreign: it is the name of something else, so that no table of ours can be made.
    """

    name: Name
    location: str
    managed: bool
    entry: Entry | None = None
    foreign: bool = False


def place(spark: SparkSession, name: Name, location: Location | None = None, *, or_foreign: bool = False) -> Named:
    """Where a table of this name lies, or would be made: at ``location``, or where Spark keeps the schema's tables.

    With ``or_foreign`` the name may be that of something else in the catalog, and the answer says so.

    Raises:
        NameTaken: it is the name of something else. UnknownSchema: there is no such schema.
        NoPlaceForNames: its catalog keeps no views. InvalidOption: the table of this name lies elsewhere.
    """
    full = entries.whole(spark, name)
    entry = entries.find(spark, full)
    if entry is not None:
        if location is not None and open_log(location).table != open_log(entry.location).table:
            reason = f"the table {name_to_sql(full)} is at {entry.location}."
            raise InvalidOption(option="LOCATION", value=os.fspath(location), reason=reason)
        return Named(entry.name, entry.location, entry.managed, entry)
    if (there := entries.see(spark, full)) is not None:
        if or_foreign and not there.is_temporary:
            return Named(full, entries.folder(spark, full), managed=True, foreign=True)
        raise NameTaken(name=name_to_sql(full), table=name_to_sql(full))
    check_place(spark, full)
    if location is not None:
        return Named(full, open_log(location).table, managed=False)
    return Named(full, _free_folder(entries.folder(spark, full)), managed=True)


def check_place(spark: SparkSession, name: Name) -> None:
    """Raise an error unless a free name, a whole one, can be kept where it belongs.

    Raises:
        UnknownSchema: there is no such schema. NoPlaceForNames: its catalog keeps no views.
    """
    if not entries.has_schema(spark, name[:-1]):
        raise UnknownSchema(name=name_to_sql(name), schema=name_to_sql(name[:-1]))
    if not entries.can_be_kept(spark, name):
        raise NoPlaceForNames(name=name_to_sql(name), catalog=name[0])


def _free_folder(wanted: str) -> str:
    """The folder of a new managed table: its own alone, also where a dropped or renamed one left something behind."""
    store = open_log(wanted).store
    return f"{wanted}-{uuid.uuid4().hex[:8]}" if store.list_all() else wanted


@contextmanager
def naming(spark: SparkSession, named: Named) -> Iterator[None]:
    """Give the table that is made, or written to, inside its name.

    A new managed table has its folder to itself from the beginning on: a note beside its log says whose it is.

    Raises:
        NameTaken: somebody else takes it, or took it meanwhile; the files of a managed table are removed again.
        UnknownTable: somebody has dropped it meanwhile.
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


def _claim(named: Named) -> None:
    """Raises NameTaken: another table of this name is being made in the same folder."""
    try:
        open_log(named.location).store.put_if_absent(OWNER, name_to_sql(named.name).encode())
    except AlreadyExists:
        raise NameTaken(name=name_to_sql(named.name), table=named.location) from None


def _check_kept(spark: SparkSession, entry: Entry) -> None:
    """Raises UnknownTable: the name does not lead to the table any more, so that nobody finds what was written."""
    if not _leads_to(entries.find(spark, entry.name), entry):
        raise UnknownTable(name=name_to_sql(entry.name))


def _name(spark: SparkSession, named: Named) -> None:
    snapshot = open_log(named.location).snapshot()
    entry = Entry(named.name, named.location, named.managed, entries.kind_for(spark, named.name))
    try:
        entries.record(spark, entry, snapshot.schema, snapshot.metadata.description)
    except AnalysisException:
        now = entries.find(spark, named.name)
        if _leads_to(now, entry):
            return  # two made one table, and the other one has named it already: both have written to it
        if not entries.is_taken(spark, named.name):
            raise
        if named.managed:
            Drop(named.location).run()
        raise NameTaken(name=name_to_sql(named.name), table=named.location) from None


def refresh(spark: SparkSession, entry: Entry) -> None:
    """Let an entry say what the table's columns and comments are now; one that is gone stays so."""
    snapshot = open_log(entry.location).snapshot()
    schema, comment = snapshot.schema, snapshot.metadata.description
    if not entries.is_behind(entry, schema, comment):
        return
    now = entries.find(spark, entry.name)
    if now is not None and _leads_to(now, entry):
        entries.refresh(spark, now, schema, comment)


def refresh_by_name(spark: SparkSession, name: Name | None, location: Location) -> None:
    """As `refresh`, for a table that was changed by a name; nothing where it has none, or has lost it meanwhile."""
    entry = None if name is None else entries.find(spark, name)
    if entry is not None and _is_at(entry, location):
        refresh(spark, entry)


def drop(spark: SparkSession, entry: Entry) -> None:
    """Take a table's name away; and the files of a managed one, after that or by Spark itself.

    Raises:
        RenameUnfinished: it has another name as well. UnknownTable: somebody else took the name away.
    """
    _check_sole(spark, entry)
    if not entries.take(spark, entry):
        raise UnknownTable(name=name_to_sql(entry.name))
    if entry.managed and not entry.is_sparks and _owns(spark, entry):
        Drop(entry.location).run()


def rename(spark: SparkSession, entry: Entry, to: Name) -> None:
    """Give a table another name, perhaps in another schema; its files stay where they are, unless it is Spark's.

    Into another schema it has both names for a moment. If this process ends in that moment, both lead to the table,
    neither can be dropped, and the same call again finishes what was begun.

    Raises:
        NameTaken: that is the name of something else. UnknownSchema: there is no such schema.
        RenameUnfinished: it has two names since another rename has not ended. UnknownTable: it is gone.
        InvalidOption: Spark keeps its files, and moves none into another schema.
    """
    target = (*entry.name[:-1], *to) if len(to) == 1 else entries.whole(spark, to)
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
    """Give a table a name in another schema. Both names know of each other before both are there, so that a DROP of one
    can look for the other one.

    Raises:
        NameTaken: somebody else has just taken the new name. UnknownTable: the old one is gone, or leads elsewhere.
    """
    snapshot = open_log(entry.location).snapshot()
    try:
        entries.mark(spark, entry, target)
    except AnalysisException:
        if entries.is_taken(spark, entry.name):
            raise
        raise UnknownTable(name=name_to_sql(entry.name)) from None
    kind = entries.kind_for(spark, target)
    moved = replace(entry, name=target, kind=kind, moves_to=None, came_from=entry.name)
    try:
        entries.record(spark, moved, snapshot.schema, snapshot.metadata.description)
    except AnalysisException:
        entries.mark(spark, entry, None)
        if entries.is_taken(spark, target):  # by somebody else, meanwhile
            raise NameTaken(name=name_to_sql(target), table=entry.location) from None
        raise
    now = entries.find(spark, entry.name)
    if now is None or not _leads_to(now, entry):
        entries.take(spark, moved)  # the table is whose that is who has taken its name, or made another one of it
        if now is not None:
            entries.mark(spark, now, None)
        raise UnknownTable(name=name_to_sql(entry.name))
    if not _same(now.moves_to, target):
        entries.take(spark, moved)  # of two renames at a time the one goes on that has said so last
        raise RenameUnfinished(name=name_to_sql(entry.name), other=name_to_sql(now.moves_to or entry.name))
    _finish(spark, entry, target)


def _finish(spark: SparkSession, entry: Entry, target: Name) -> None:
    """Take the old name of a table that has both. Of all that would take it, by DROP or by another rename, one does,
    and the table is that one's: a new name of anybody else goes.
    """
    _note_owner(entry, target)
    new = entries.find(spark, target)
    if entries.take(spark, entry):
        if new is not None:
            entries.mark(spark, new, None)
        return
    if new is None or not _leads_to(new, entry) or new.came_from is None:
        return  # somebody else has finished this very rename
    entries.take(spark, new)
    raise UnknownTable(name=name_to_sql(entry.name))


def _check_sole(spark: SparkSession, entry: Entry) -> None:
    """Raise an error where a managed table has another name.

    Only an entry with a mark is asked, and then the whole schema of the other name, in which a session that does not
    know of marks may have renamed that one.

    Raises:
        RenameUnfinished: it has.
    """
    other = entry.moves_to or entry.came_from
    for each in entries.entries_in(spark, other[:-1]) if other is not None and entry.managed else ():
        if _leads_to(each, entry) and not _same(each.name, entry.name):
            old, new = (entry, each) if entry.moves_to else (each, entry)
            raise RenameUnfinished(name=name_to_sql(old.name), other=name_to_sql(new.name))


def _note_owner(entry: Entry, name: Name) -> None:
    """Write beside a managed table which name its files go with; what is in the catalog may be written anew by a
    session that has just not seen the rename.
    """
    log = open_log(entry.location)
    if entry.managed and not entry.is_sparks and log.exists():  # else somebody has dropped it meanwhile
        log.store.put(OWNER, name_to_sql(name).encode())


def _owns(spark: SparkSession, entry: Entry) -> bool:
    """Whether a table's files go with this name: its folder says so itself, or names one that leads elsewhere now.

    What the catalog says would be one witness, whom anybody may write who may make names.
    """
    try:
        owner = parts_of(open_log(entry.location).store.get(OWNER).decode())
    except NotFound:
        return False
    return owner is not None and (_same(owner, entry.name) or not _leads_to(entries.find(spark, owner), entry))


def _leads_to(found: Entry | None, entry: Entry) -> bool:
    return found is not None and _is_at(found, entry.location)


def _is_at(entry: Entry, location: Location) -> bool:
    """Whether it leads there; Spark spells paths in a way of its own."""
    return open_log(entry.location).table == open_log(location).table


def _same(name: Name | None, other: Name) -> bool:
    return name is not None and [each.lower() for each in name] == [each.lower() for each in other]
