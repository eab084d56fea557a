"""A second reader of Delta logs, for tests: plain, slow, and written apart from the product.

Knows PROTOCOL.md: commit files, ``add``, ``remove``, ``cdc``, deletion vectors (``u`` and ``i``), Parquet. Reads
commit files only, in the order of their versions, and *checks* what a tolerant reader would pass over: a file that is
live twice, a ``remove`` of something that is not live, a vector whose cardinality or checksum is wrong, a row count
that is wrong, a change file that is not as it says.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyroaring import BitMap64

from anabranch._storage import Store
from anabranch._storage.native import native_file
from anabranch.errors import NotFound
from laboratory.statements import COLUMNS, Row, Rows

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC = 1681511377
_HIDDEN = ("_row-id-col-", "_row-commit-version-col-")
"""How the columns begin in which rewritten rows keep their ids; a change file may have them."""

Changes = tuple[tuple[str, Row], ...]
"""Rows, and how each was changed: ``insert``, ``delete``, ``update_preimage`` or ``update_postimage``."""


@dataclass(frozen=True)
class Version:
    """One version: its commit's actions by kind, the live files after it, and their rows."""

    number: int
    info: Mapping[str, Any]
    kinds: frozenset[str]
    rows: Rows


@dataclass
class Reader:
    """Reads every version of the table in ``store``; ``faults`` are what it found wrong, in words. Of older versions
    files may be ``gone``: what is given of them counts as theirs, for a table that was vacuumed.
    """

    store: Store
    gone: Mapping[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    _live: dict[str, dict[str, Any]] = field(default_factory=dict)
    _files: dict[str, list[Row]] = field(default_factory=dict)
    _rows: dict[str, Rows] = field(default_factory=dict)

    def versions(self) -> list[Version]:
        """All versions from 0 on."""
        names = [e.name for e in self.store.list_from("_delta_log/") if e.name.endswith(".json")]
        expected = [f"_delta_log/{number:020}.json" for number in range(len(names))]
        if names != expected:
            self.faults.append(f"the log has {names}")
        versions = [self._version(number, name) for number, name in enumerate(names)]
        self._check_newest()
        return versions

    def files(self) -> list[tuple[Mapping[str, Any], list[Row], BitMap64]]:
        """Of the newest version that was read, each live file: its ``add``, all its rows, and which are deleted."""
        live = [self._live[path] for path in sorted(self._live)]
        return [(add, self._physical(add), self._vector(len(live), add)) for add in live]

    def names(self) -> set[str]:
        """The files that the newest version that was read names: those of rows, and those of vectors."""
        vectors = (add["deletionVector"] for add in self._live.values() if add.get("deletionVector"))
        files = {_file_of(vector["pathOrInlineDv"]) for vector in vectors if vector["storageType"] != "i"}
        return files | {unquote(path) for path in self._live}

    def check_row_ids(self) -> None:
        """Each live row of the newest version that was read has an id, and no other row has the same."""
        ids = list[int | None]()
        for add in self._live.values():
            stored, dead = rows_in(self._get(unquote(add["path"]))), self._vector(0, add)
            ids += [_id_of(row, i, add) for i, row in enumerate(stored) if i not in dead]
        if None in ids:
            self.faults.append(f"{ids.count(None)} live rows have no row id")
        if len(set(ids)) < len(ids):
            twice = sorted(each for each in set(ids) if each is not None and ids.count(each) > 1)
            self.faults.append(f"several live rows have the row ids {twice}")

    def changes(self, number: int) -> Changes:
        """What a version that was read changed, by its change files if it has any, or else by its other actions.

        PROTOCOL.md, section "Change Data Files".
        """
        bodies = self._bodies(number)
        written = [body for kind, body in bodies if kind == "cdc"]
        return tuple(chain.from_iterable(self._written(number, body) for body in written)) or self.derived(number)

    def derived(self, number: int) -> Changes:
        """The same by its adds and removes alone, as far as these say that they change data."""
        bodies = self._bodies(number)
        came, went = (
            {body["path"]: body for kind, body in bodies if kind == wanted and body["dataChange"]}
            for wanted in ("add", "remove")
        )
        found: list[tuple[str, Row]] = []
        for path in sorted(came.keys() | went.keys()):
            rows, every = self._files.get(path, []), BitMap64(range(len(self._files.get(path, []))))
            before = every - self._vector(number, went[path]) if path in went else BitMap64()
            after = every - self._vector(number, came[path]) if path in came else BitMap64()
            found += [("delete", rows[i]) for i in before - after]
            found += [("insert", rows[i]) for i in after - before]
        return tuple(found)

    def takes(self, number: int) -> bool:
        """Whether a version removes anything and says that this changes data."""
        return any(kind == "remove" and body["dataChange"] for kind, body in self._bodies(number))

    def _bodies(self, number: int) -> list[tuple[str, dict[str, Any]]]:
        return actions_in(self.store.get(f"_delta_log/{number:020}.json"))

    def _written(self, number: int, body: Mapping[str, Any]) -> Changes:
        """The rows of a change file."""
        path, data = body["path"], self._get(unquote(body["path"]))
        if len(data) != body["size"] or body["dataChange"] or not path.startswith("_change_data/"):
            self.faults.append(f"version {number}: the change file {path} is not as it says")
        rows, values = rows_in(data), body["partitionValues"]
        stored = {*self.columns, "_change_type"} - set(values)
        if any({name for name in row if not name.startswith(_HIDDEN)} != stored for row in rows):
            self.faults.append(f"version {number}: the change file {path} has not the columns {sorted(stored)}")
        return tuple((row["_change_type"], self.row(row, values)) for row in rows)

    @property
    def columns(self) -> Sequence[str]:
        """How the table's columns are called in files."""
        return COLUMNS

    def row(self, stored: Mapping[str, Any], values: Mapping[str, str | None]) -> Row:
        """A row of a file with these partition values."""
        return row_of(stored, values)

    def _check_newest(self) -> None:
        """What is live now must be there now."""
        missing = [path for path in sorted(self._live) if unquote(path) in self.gone and self._is_gone(unquote(path))]
        self.faults += [f"{path} is live, and its file is not there any more" for path in missing]

    def _is_gone(self, name: str) -> bool:
        return self.store.head(name) is None

    def _get(self, name: str) -> bytes:
        try:
            return self.store.get(name)
        except NotFound:
            if name not in self.gone:
                raise
            data: bytes = self.gone[name].data
            return data

    def _version(self, number: int, name: str) -> Version:
        bodies = actions_in(self.store.get(name))
        for body in (body for kind, body in bodies if kind == "remove"):
            self._remove(number, body)
        for body in (body for kind, body in bodies if kind == "add"):
            self._add(number, body)
        rows = tuple(chain.from_iterable(self._rows[path] for path in sorted(self._live)))
        info: Mapping[str, Any] = next((body for kind, body in bodies if kind == "commitInfo"), {})
        return Version(number, info, frozenset(kind for kind, _ in bodies), rows)

    def _remove(self, number: int, body: Mapping[str, Any]) -> None:
        live = self._live.pop(body["path"], None)
        if live is None or live.get("deletionVector") != body.get("deletionVector"):
            self.faults.append(f"version {number} removes {body['path']} in a state that is not live")

    def _add(self, number: int, body: dict[str, Any]) -> None:
        live = self._live.get(body["path"])  # the same file and vector may be named again
        if live is not None and live.get("deletionVector") != body.get("deletionVector"):
            self.faults.append(f"version {number} adds {body['path']}, which is live already")
        self._live[body["path"]] = body
        self._rows[body["path"]] = self._of(number, body)

    def _of(self, number: int, add: Mapping[str, Any]) -> Rows:
        vector, rows = add.get("deletionVector"), self._physical(add)
        dead = self._vector(number, add)
        stated = json.loads(add.get("stats") or "{}").get("numRecords")
        if (vector and stated is None) or (stated is not None and stated != len(rows)):
            self.faults.append(f"version {number} says {stated} rows of {add['path']}, which has {len(rows)}")
        if dead and dead.max() >= len(rows):
            self.faults.append(f"version {number} deletes row {dead.max()} of {add['path']}, of {len(rows)}")
        return tuple(row for i, row in enumerate(rows) if i not in dead) if dead else tuple(rows)

    def _physical(self, add: Mapping[str, Any]) -> list[Row]:
        path = add["path"]
        if path not in self._files:
            try:
                data = self._get(unquote(path))
            except NotFound:
                self.faults.append(f"{path} is live, and its file is not there")
                return []
            self._files[path] = [self.row(row, add["partitionValues"]) for row in rows_in(data)]
        return self._files[path]

    def _vector(self, number: int, add: Mapping[str, Any]) -> BitMap64:
        vector = add.get("deletionVector")
        return self._dead(number, add["path"], vector) if vector else BitMap64()

    def _dead(self, number: int, path: str, vector: Mapping[str, Any]) -> BitMap64:
        dead = _bitmap(self._vector_bytes(number, vector))
        if len(dead) != vector["cardinality"]:
            self.faults.append(f"version {number}: the vector of {path} has {len(dead)} rows, not as it says")
        return dead

    def _vector_bytes(self, number: int, vector: Mapping[str, Any]) -> bytes:
        text = vector["pathOrInlineDv"]
        if vector["storageType"] == "i":
            return _z85(text)[: vector["sizeInBytes"]]
        file = _file_of(text)
        start, size = vector.get("offset") or 1, vector["sizeInBytes"]
        data = self._get(file)[start : start + size + 8]
        body = data[4:-4]
        if struct.unpack(">I", data[:4]) != (size,) or struct.unpack(">I", data[-4:]) != (zlib.crc32(body),):
            self.faults.append(f"version {number}: the vector in {file} has a wrong size or checksum")
        return body


@lru_cache(maxsize=512)
def actions_in(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The actions of a commit file, by kind; kept, since many histories begin alike. Do not change them in place."""
    lines = (line for line in data.splitlines() if line.strip())
    return [(kind, body) for line in lines for kind, body in json.loads(line).items()]


def row_of(stored: Mapping[str, Any], values: Mapping[str, str | None]) -> Row:
    """A row of a file with these partition values."""
    known = {name: None if text is None else int(text) for name, text in values.items()}
    return tuple({**stored, **known}.get(name) for name in COLUMNS)


def _id_of(row: Mapping[str, Any], position: int, add: Mapping[str, Any]) -> int | None:
    """The id of a row: kept in a column of its file, or by its position (PROTOCOL.md, section "Row Tracking")."""
    kept = next((value for name, value in row.items() if name.startswith(_HIDDEN[0])), None)
    first: int | None = add.get("baseRowId")
    return kept if kept is not None else None if first is None else first + position


def stored_rows(store: Store, path: str, values: Mapping[str, str | None]) -> list[tuple[Row, str]]:
    """All rows of a file that a log names so, each with the change that the file says of it, if it does."""
    stored = rows_in(store.get(unquote(path)))
    return [(row_of(row, values), row.get("_change_type", "")) for row in stored]


@lru_cache(maxsize=512)
def rows_in(data: bytes) -> list[dict[str, Any]]:
    """A file's rows; kept, since many histories begin with the same files."""
    file = pq.ParquetFile(native_file(data), coerce_int96_timestamp_unit="us")
    rows: list[dict[str, Any]] = file.read(use_threads=False).to_pylist()
    return rows


def _bitmap(data: bytes) -> BitMap64:
    assert struct.unpack("<I", data[:4]) == (_MAGIC,), "not a portable 64-bit bitmap"
    return BitMap64.deserialize(data[4:])


def _file_of(text: str) -> str:
    """The file of a relative vector."""
    prefix, name = text[:-20], uuid.UUID(bytes=_z85(text[-20:]))
    return f"{prefix}/deletion_vector_{name}.bin" if prefix else f"deletion_vector_{name}.bin"


def _z85(text: str) -> bytes:
    words = [text[i : i + 5] for i in range(0, len(text), 5)]
    numbers = [sum(_Z85.index(c) * 85 ** (4 - i) for i, c in enumerate(word)) for word in words]
    return b"".join(struct.pack(">I", number) for number in numbers)
