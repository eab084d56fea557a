"""Offsets: how far a stream has read a table.

Knows the JSON that delta-spark stores in a checkpoint, and stores the same with two more fields, which delta-spark
ignores. Pure. Guarantee: an invalid offset is refused by name; an offset of another table is recognised.

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
"""Versions of delta-spark's JSON: it writes 1, and 3 with a schema log."""
_BEFORE_FIRST_IN_3 = -100
_SHOWN = 500
"""Maximum number of characters of an invalid offset in an error."""


@dataclass(frozen=True)
class Position:
    """A place between two files of a table's history.

    Attributes:
        version: the version whose files come next.
        index: the index of its last file that was read; `BEFORE_FIRST`: none.
        in_snapshot: whether the files are all live files of the version, instead of those that its commit added.
    """

    version: int
    index: int = BEFORE_FIRST
    in_snapshot: bool = False

    @property
    def read(self) -> int:
        """The last version of which the stream has read a file, or all."""
        return self.version - (self.index < 0 and not self.in_snapshot)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key of positions: the files of a snapshot come before later commits."""
        return (self.version, -1 if self.in_snapshot else 0, self.index)


_BEFORE_ALL = Position(_NOWHERE, in_snapshot=True)


@dataclass(frozen=True)
class Offset:
    """How far a stream has read the table ``table_id``.

    Attributes:
        position: the position; None before the first batch.
        began: the start of the first batch, stored in the offset that ends it, since Spark stores no start of a stream,
            and a repeated batch must begin at the same place.
        commit: identifies the commit at the position among others of its version; None: unknown.
    """

    table_id: str
    position: Position | None
    began: Position | None = None
    commit: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON fields that Spark stores in the checkpoint."""
        at = self.position or _BEFORE_ALL
        fields = {"sourceVersion": 1, "reservoirId": self.table_id, **_position_fields(at)}
        began = {} if self.began is None else {"began": _position_fields(self.began)}
        return {**fields, **began, **({} if self.commit is None else {"commit": self.commit})}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], table: str, table_id: str) -> Offset:
        """Reads the offset in a checkpoint, for the table ``table_id`` at ``table``.

        Raises:
            InvalidStreamOffset: it is damaged, or has an unknown format.
            StreamTableReplaced: it belongs to another table.

        Example:
            >>> Offset.from_json(offset.to_json(), table, offset.table_id) == offset
            True
        """
        try:
            if fields["sourceVersion"] not in _FORMATS:
                raise ValueError(f"its sourceVersion is {display_text(fields['sourceVersion'])}")
            recorded_id, at = fields["reservoirId"], _position(fields)
            commit = fields.get("commit")
            if type(recorded_id) is not str or not isinstance(commit, str | None):
                raise TypeError("an id is no text")
            began = _position(fields["began"]) if "began" in fields else None
            if _NOWHERE in (at.version, began and began.version) and (began is not None or at != _BEFORE_ALL):
                raise ValueError("no table has a version before 0")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"it is malformed ({display_text(error)})."
            raise InvalidStreamOffset(table=table, offset=display_text(fields), reason=reason) from None
        if recorded_id != table_id:
            raise StreamTableReplaced(
                table=table, version=at.version, expected=display_text(recorded_id), found=table_id
            )
        return cls(table_id, None if at == _BEFORE_ALL else at, began, commit)


def display_text(value: object) -> str:
    """The text of any value in a checkpoint, or its beginning."""
    try:
        text = str(value)
    except RecursionError:
        return "something of very many levels"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _position_fields(at: Position) -> dict[str, Any]:
    return {"reservoirVersion": at.version, "index": at.index, "isStartingVersion": at.in_snapshot}


def _position(fields: Mapping[str, Any]) -> Position:
    version, index, in_snapshot = fields["reservoirVersion"], fields["index"], fields["isStartingVersion"]
    if type(version) is not int or type(index) is not int or type(in_snapshot) is not bool:
        raise TypeError("a number or a flag is none")
    if version < _NOWHERE or index < _BEFORE_FIRST_IN_3:
        raise ValueError(f"no file has the version {version} and the index {index}")
    return Position(version, max(index, BEFORE_FIRST), in_snapshot)
