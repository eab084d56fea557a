"""Offsets: how far a stream has read a table.

Knows the JSON that delta-spark keeps in a checkpoint, and keeps the same with two fields more, which that leaves
unread. Pure. Guarantee: what is no offset is refused by name; an offset of another table is told from one of this.

The rows of a table have an order for streams: first the files of the version at which the stream began, one by one,
then version by version what each commit added. ``index`` counts files within a version. An offset lies between two of
them, behind the file of that index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.errors import InvalidStreamOffset, StreamTableReplaced

BEFORE_FIRST = -1
"""The index before the first file of a version."""
_NOWHERE = -1
_FORMATS = (1, 3)
"""Versions of the JSON: of delta-spark, which writes 1, and 3 where it follows a log of schemas."""
_BEFORE_FIRST_IN_3 = -100
_SHOWN = 500
"""So many characters of what is no offset are shown."""


@dataclass(frozen=True)
class Position:
    """A place between two files of a table's history.

    Attributes:
        version: the version whose files come next.
        index: the index of its last file that was read; `BEFORE_FIRST`: none.
        in_snapshot: whether these are the files that were live at the version, and not those that its commit added.
    """

    version: int
    index: int = BEFORE_FIRST
    in_snapshot: bool = False

    @property
    def read(self) -> int:
        """The last version of which it has passed a file, or all."""
        return self.version - (self.index < 0 and not self.in_snapshot)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Orders positions: the files of a snapshot come before the commits behind it."""
        return (self.version, -1 if self.in_snapshot else 0, self.index)


_BEFORE_ALL = Position(_NOWHERE, in_snapshot=True)


@dataclass(frozen=True)
class Offset:
    """How far a stream has read the table ``table_id``.

    Attributes:
        position: where it stands; None before its first batch.
        began: where the first batch began; said in the offset that ends it, since Spark keeps no start of a stream,
            and a batch that is done again must begin at the same place.
        commit: tells the commit that it stands behind, or in, from another one of its version; None: nothing does.
    """

    table_id: str
    position: Position | None
    began: Position | None = None
    commit: str | None = None

    def to_json(self) -> dict[str, Any]:
        """What Spark keeps in the checkpoint."""
        at = self.position or _BEFORE_ALL
        said = {"sourceVersion": 1, "reservoirId": self.table_id, **_position_fields(at)}
        began = {} if self.began is None else {"began": _position_fields(self.began)}
        return {**said, **began, **({} if self.commit is None else {"commit": self.commit})}

    @classmethod
    def from_json(cls, said: Mapping[str, Any], table: str, table_id: str) -> Offset:
        """The offset in a checkpoint, of the table ``table_id`` at ``table``.

        Raises:
            InvalidStreamOffset: it is damaged, or of a form that is not known here.
            StreamTableReplaced: it is of another table.

        Example:
            >>> Offset.from_json(offset.to_json(), table, offset.table_id) == offset
            True
        """
        try:
            if said["sourceVersion"] not in _FORMATS:
                raise ValueError(f"its sourceVersion is {display_text(said['sourceVersion'])}")
            found, at = said["reservoirId"], _position(said)
            commit = said.get("commit")
            if type(found) is not str or not isinstance(commit, str | None):
                raise TypeError("an id is no text")
            began = _position(said["began"]) if "began" in said else None
            if _NOWHERE in (at.version, began and began.version) and (began is not None or at != _BEFORE_ALL):
                raise ValueError("no table has a version before 0")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"it is not as it must be ({display_text(error)})."
            raise InvalidStreamOffset(table=table, offset=display_text(said), reason=reason) from None
        if found != table_id:
            raise StreamTableReplaced(table=table, version=at.version, expected=display_text(found), found=table_id)
        return cls(table_id, None if at == _BEFORE_ALL else at, began, commit)


def display_text(said: object) -> str:
    """The text of anything that a checkpoint says, or its beginning."""
    try:
        text = str(said)
    except RecursionError:
        return "something of very many levels"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _position_fields(at: Position) -> dict[str, Any]:
    return {"reservoirVersion": at.version, "index": at.index, "isStartingVersion": at.in_snapshot}


def _position(said: Mapping[str, Any]) -> Position:
    version, index, in_snapshot = said["reservoirVersion"], said["index"], said["isStartingVersion"]
    if type(version) is not int or type(index) is not int or type(in_snapshot) is not bool:
        raise TypeError("a number or a flag is none")
    if version < _NOWHERE or index < _BEFORE_FIRST_IN_3:
        raise ValueError(f"no file has the version {version} and the index {index}")
    return Position(version, max(index, BEFORE_FIRST), in_snapshot)
