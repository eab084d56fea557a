"""A stranger: any statement as another engine's commit, in any manner that PROTOCOL.md leaves to writers.

Knows the log's JSON, deletion vectors and Parquet, by the protocol alone; nothing of ours but the plain reader. What a
statement does is found by applying it to the rows: those that are gone are marked or left out, those that are new are
written.

PROTOCOL.md, sections "Actions" and "Deletion Vector Format".
"""

from __future__ import annotations

import json
import random
import struct
import uuid
import zlib
from collections.abc import Mapping
from typing import Any

from pyroaring import BitMap64

from anabranch._protocol.layout import moves
from anabranch._transaction.transaction import RESERVED_FOR
from laboratory.foreign_engine import OtherEngine
from laboratory.log_reader import Reader
from laboratory.manners import Manner
from laboratory.statements import COLUMNS, Append, Foreign, Row, Rows, bag

_Body = dict[str, Any]
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC = 1681511377
_FLAGLESS = ("bare", "none")


class Stranger(OtherEngine):
    """Does what a `Foreign` statement says, at the newest version.

    Args:
        gone: what a VACUUM has removed, of which older versions are read.
    """

    def run(self, foreign: Foreign, gone: Mapping[str, Any]) -> int:
        """Commit it; gives the version."""
        self._dice = random.Random(foreign.manner.order)
        reader = Reader(self._store, gone)
        rows = reader.versions()[-1].rows
        new, _ = foreign.apply(rows)
        actions = self._changes(reader, bag(rows) - bag(new), tuple((bag(new) - bag(rows)).elements()), foreign.manner)
        actions += self._provenance(foreign, actions)
        self._dice.shuffle(actions)
        return self._put(actions)

    def _changes(self, reader: Reader, taken: Any, brought: Rows, manner: Manner) -> list[_Body]:
        """The actions that take some rows away and bring others."""
        actions: list[_Body] = []
        kept: list[Row] = []
        untouched = []
        for add, rows, dead in reader.files():
            hit = _hit(rows, dead, taken)
            if hit:
                kept += self._taken(dict(add), rows, dead, hit, manner, actions)
            else:
                untouched.append((dict(add), rows, dead))
        if untouched and manner.churns != "none":
            self._churned(*self._dice.choice(untouched), manner, actions)
        return actions + self._files((*kept, *brought), manner)

    def _taken(
        self, add: _Body, rows: list[Row], dead: BitMap64, hit: BitMap64, manner: Manner, into: list[_Body]
    ) -> list[Row]:
        """Take rows of a file away; gives those that have to be written anew."""
        into.append(_remove(add, manner, change=manner.change))
        left = [row for i, row in enumerate(rows) if i not in dead and i not in hit]
        if not left or manner.vectors == "none" or not self._has_vectors():
            return left
        marked = {**add, "deletionVector": self._vector(dead | hit, manner.vectors), "dataChange": manner.change}
        into.append({"add": {**marked, "stats": json.dumps({"numRecords": len(rows), "tightBounds": False})}})
        return []

    def _churned(self, add: _Body, rows: list[Row], dead: BitMap64, manner: Manner, into: list[_Body]) -> None:
        """Do something to a live file that changes no row."""
        if manner.churns == "rewritten":
            into.append(_remove(add, manner, change=manner.churn))
            alive = tuple(row for i, row in enumerate(rows) if i not in dead)
            into += self._files(alive, manner, change=manner.churn, name="anew")
            return
        again = {**add, "dataChange": manner.churn, "stats": json.dumps({"numRecords": len(rows)})}
        if manner.churns == "touched" and dead:  # another vector of the same rows: else it would be the same file
            into.append(_remove(add, manner, change=manner.churn))
            again["deletionVector"] = self._vector(dead, self._dice.choice(("relative", "prefixed")))
        into.append({"add": again})

    def _files(self, rows: Rows, manner: Manner, *, change: bool | None = None, name: str = "new") -> list[_Body]:
        """New files, one per partition; what they say of their rows is true, if it is said."""
        partitioned = bool(self._metadata()["partitionColumns"])
        groups = sorted({row[1] for row in rows}, key=lambda p: (p is None, p)) if partitioned else [None]
        found = []
        for number, group in enumerate(groups if rows else []):
            part = [row for row in rows if not partitioned or row[1] == group]
            body = self._file(part, group, f"{name}-{number}")["add"]
            said = {} if manner.stats == "none" else {"stats": _stats(part, whole=manner.stats == "whole")}
            plain = {key: value for key, value in body.items() if key != "stats"}
            found.append({"add": {**plain, **said, "dataChange": manner.change if change is None else change}})
        return found

    def _vector(self, rows: BitMap64, kind: str) -> _Body:
        data = struct.pack("<I", _MAGIC) + rows.serialize()
        size = {"sizeInBytes": len(data), "cardinality": len(rows)}
        if kind == "inline":
            return {"storageType": "i", "pathOrInlineDv": _z85(data + b"\0" * (-len(data) % 4)), **size}
        name = uuid.UUID(int=self._dice.getrandbits(128))
        prefix = "ab" if kind == "prefixed" else ""
        framed = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        path = f"{prefix}/deletion_vector_{name}.bin" if prefix else f"deletion_vector_{name}.bin"
        self._store.put(path, b"\x01" + framed)
        return {"storageType": "u", "pathOrInlineDv": prefix + _z85(name.bytes), "offset": 1, **size}

    def _has_vectors(self) -> bool:
        return self._metadata()["configuration"].get("delta.enableDeletionVectors") == "true"

    def _provenance(self, foreign: Foreign, actions: list[_Body]) -> list[_Body]:
        """``commitInfo`` and ``txn``, as far as the manner has them; a commit needs one action at least."""
        manner, version = foreign.manner, len(self._names())
        found: list[_Body] = []
        if manner.info != "none":
            said = {
                "timestamp": version,
                "operation": "WRITE",
                "operationParameters": {"statement": str(foreign.inner)},
            }
            said |= {"engineInfo": "stranger"} if manner.info == "full" else {"engineInfo": "delta-rs:py-1.6.6"}
            said |= {"txnId": self._name} if manner.info == "full" else {"clientVersion": "delta-rs.1.6.6"}
            said |= self._flag(foreign, actions) | self._tags(manner)
            found.append({"commitInfo": said})
        if manner.txn or not (found or actions):
            found.append({"txn": {"appId": self._name, "version": version}})
        return found

    def _flag(self, foreign: Foreign, actions: list[_Body]) -> _Body:
        """The flag, unless it would be a lie that nothing contradicts."""
        flag = foreign.manner.flag
        plain = all("add" in each and each["add"]["dataChange"] is True for each in actions)
        if flag is None or foreign.manner.info in _FLAGLESS:
            return {}
        if flag is True and plain and not isinstance(foreign.inner, Append):
            return {}
        return {"isBlindAppend": flag}

    def _tags(self, manner: Manner) -> _Body:
        if manner.tags == "reservation":
            return {"tags": {RESERVED_FOR: self._name}}
        if manner.tags == "moves":
            return {"tags": {moves.TAG: moves.to_text([])}}
        if manner.tags == "copied":
            before = next((body for kind, body in self._of(len(self._names()) - 1) if kind == "commitInfo"), {})
            return {"tags": before["tags"]} if "tags" in before else {}
        return {}


def _hit(rows: list[Row], dead: BitMap64, taken: Any) -> BitMap64:
    """The live rows of a file that are among those to take, which they are then no more."""
    hit = BitMap64()
    for i, row in enumerate(rows):
        if i not in dead and taken[row] > 0:
            taken[row] -= 1
            hit.add(i)
    return hit


def _remove(add: Mapping[str, Any], manner: Manner, *, change: bool) -> _Body:
    more = ("partitionValues", "size") if manner.extended else ()
    kept = {name: add[name] for name in ("path", "deletionVector", *more) if add.get(name) is not None}
    extended = {"extendedFileMetadata": True} if manner.extended else {}
    return {"remove": {**kept, **extended, "deletionTimestamp": 0, "dataChange": change}}


def _stats(rows: list[Row], *, whole: bool) -> str:
    count = {"numRecords": len(rows)}
    if not whole:
        return json.dumps(count)
    cells = {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}
    there = {name: [v for v in values if v is not None] for name, values in cells.items()}
    least, most = ({n: f(v) for n, v in there.items() if v} for f in (min, max))
    nulls = {name: len(values) - len(there[name]) for name, values in cells.items()}
    return json.dumps({**count, "minValues": least, "maxValues": most, "nullCount": nulls})


def _z85(data: bytes) -> str:
    numbers = (int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4))
    return "".join(_Z85[n // 85**e % 85] for n in numbers for e in (4, 3, 2, 1, 0))
