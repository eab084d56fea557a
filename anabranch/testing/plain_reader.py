"""Reads the rows of a small table plainly: commit files as JSON, data files whole, deletion vectors bit by bit.

Knows PROTOCOL.md and nothing of the product, so that it cannot read a wrong write of the product as right. Reads
commit files only, from version 0 on, and raises where a tolerant reader would ignore a contradiction.
"""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_BITMAP_MAGIC = 1681511377


class ContradictoryLog(Exception):
    """The log contradicts itself or the files that it names."""


def plain_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of the newest version of a table without column mapping, whose partition values are integers.

    Raises:
        ContradictoryLog: a version is missing, a file is added twice, a file is removed that is not live, or a file or
            deletion vector contradicts the log.
    """
    return [row for add in _live_files(folder) for row in _rows_of(folder, add)]


def _live_files(folder: Path) -> list[Mapping[str, Any]]:
    live: dict[str, Mapping[str, Any]] = {}
    for number, commit in enumerate(sorted((folder / "_delta_log").glob("*.json"))):
        _require(commit.name == f"{number:020}.json", f"version {number} is missing")
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines() if line.strip()]
        for remove in (action["remove"] for action in actions if "remove" in action):
            previous = live.pop(remove["path"], None)
            same = previous is not None and previous.get("deletionVector") == remove.get("deletionVector")
            _require(same, f"version {number} removes {remove['path']} in a state that is not live")
        for add in (action["add"] for action in actions if "add" in action):
            _require(add["path"] not in live, f"version {number} adds {add['path']}, which is live")
            live[add["path"]] = add
    return list(live.values())


def _rows_of(folder: Path, add: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        rows = pq.read_table(folder / unquote(add["path"]), partitioning=None, use_threads=False).to_pylist()
    except (OSError, pa.ArrowInvalid) as error:
        raise ContradictoryLog(str(error)) from error
    _require(json.loads(add["stats"])["numRecords"] == len(rows), f"{add['path']} has {len(rows)} rows")
    vector = add.get("deletionVector")
    deleted = _read_vector(folder, vector) if vector else BitMap64()
    _require(not deleted or deleted.max() < len(rows), f"rows are deleted that {add['path']} does not have")
    values = {name: int(text) for name, text in add["partitionValues"].items()}
    return ({**row, **values} for number, row in enumerate(rows) if number not in deleted)


def _read_vector(folder: Path, vector: Mapping[str, Any]) -> BitMap64:
    """The positions in a deletion vector, inline or in a file of its own."""
    text, size = vector["pathOrInlineDv"], vector["sizeInBytes"]
    if vector["storageType"] == "i":
        data = _from_z85(text)[:size]
    else:
        name = f"deletion_vector_{uuid.UUID(bytes=_from_z85(text[-20:]))}.bin"
        stored = (folder / text[:-20] / name).read_bytes()[vector["offset"] :][: size + 8]
        data = stored[4:-4]
        _require(stored[:4] == struct.pack(">I", size), f"{name} has another size")
        _require(stored[-4:] == struct.pack(">I", zlib.crc32(data)), f"{name} has another checksum")
    _require(data[:4] == struct.pack("<I", _BITMAP_MAGIC), "a deletion vector is no portable 64-bit bitmap")
    positions = BitMap64.deserialize(data[4:])
    _require(len(positions) == vector["cardinality"], "a deletion vector has another number of rows")
    return positions


def _from_z85(text: str) -> bytes:
    groups = [text[i : i + 5] for i in range(0, len(text), 5)]
    return b"".join(struct.pack(">I", sum(_Z85.index(c) * 85 ** (4 - i) for i, c in enumerate(g))) for g in groups)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ContradictoryLog(what)
