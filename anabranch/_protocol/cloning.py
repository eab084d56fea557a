"""Plans a clone: which of the source's files it already has, which it needs, and which it must remove.

Knows rows of the log and spellings of paths. Pure. A shallow clone names the source's own files by absolute URIs. A
deep clone has copies, each tagged with its original, so that a second clone finds what it has. Guarantee: a file counts
as present only where the log shows that it holds exactly the source's rows, deleted ones too, whatever was done to the
clone since.

PROTOCOL.md, sections "Add File and Remove File" and "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout.deletion_vectors import Descriptor
from anabranch._protocol.layout.paths import absolute, encode, store_name
from anabranch.errors.secrets import without_secrets

CLONED_FROM = "anabranch.clonedFrom"
CLONED_VECTOR = "anabranch.clonedVector"
CLONED_TIME = "anabranch.clonedTime"
OWN_VECTOR = "anabranch.ownVector"
"""Tags of a copied file: the URI of its original; the vector of the original, and its own vector with the same rows,
each by unique id or empty; the modification time of the original, which older copies have for their own.
"""

_TAGS = frozenset({CLONED_FROM, CLONED_VECTOR, CLONED_TIME, OWN_VECTOR})


@dataclass(frozen=True)
class Shallow:
    """The changes that make a table a shallow clone.

    Attributes:
        adds: files to name.
        removes: paths to remove.
        other: paths already named with the same vector, but with other metadata in the source; no commit may remove
            such a file and add it.
    """

    adds: list[FileRow]
    removes: frozenset[str]
    other: frozenset[str]


@dataclass(frozen=True)
class Copy:
    """A file that a deep clone still needs.

    Attributes:
        row: the source's row, with an absolute URI.
        had: an existing copy that differs only in its vector; None where the file must be copied.
    """

    row: FileRow
    had: FileRow | None


@dataclass(frozen=True)
class Deep:
    """The changes that make a deep clone: ``copies`` are needed, ``removes`` are paths to remove."""

    copies: list[Copy]
    removes: frozenset[str]


def absolute_row(row: FileRow, root: str, target: str | None = None) -> dict[str, Any]:
    """A file of the table at ``root`` as another table names it: by absolute URIs, except for files in ``target``.
    Raises ValueError: the path leaves the table's folder.
    """
    path, vector = without_secrets(absolute(root, row["path"])), row.get("deletionVector")
    inside = None if target is None else store_name(target, path)
    tags = {key: value for key, value in dict(row.get("tags") or {}).items() if key not in _TAGS}
    return {
        **row,
        "path": path if inside is None else encode(inside),
        "partitionValues": dict(row["partitionValues"] or {}),
        "deletionVector": None if vector is None else _absolute_vector(vector, root),
        "tags": tags or None,
        "defaultRowCommitVersion": None,  # versions of another table
    }


def _absolute_vector(vector: Mapping[str, Any], root: str) -> dict[str, Any]:
    known = Descriptor.from_row(vector)
    if known.storage_type == "u":
        return {**known.to_row(), "storageType": "p", "pathOrInlineDv": absolute(root, encode(known.name))}
    return (
        {**known.to_row(), "pathOrInlineDv": without_secrets(known.path_or_inline)}
        if known.storage_type == "p"
        else known.to_row()
    )


def shallow(source: Iterable[FileRow], root: str, target: str, present: Iterable[FileRow]) -> Shallow:
    """The changes that make the table at ``target``, with the files ``present``, a shallow clone of the one at
    ``root``.
    """
    wanted = {row["path"]: row for row in (absolute_row(row, root, target) for row in source)}
    known = {row["path"]: row for row in present}
    alike = {path for path, row in wanted.items() if path in known and _one_vector(row, known[path])}
    return Shallow(
        adds=[row for path, row in wanted.items() if path not in alike],
        removes=frozenset(known.keys() - alike),
        other=frozenset(path for path in alike if not _is_copy(wanted[path], known[path])),
    )


def deep(source: Iterable[FileRow], root: str, present: Iterable[FileRow]) -> Deep:
    """The changes that make a table with the files ``present`` a deep clone of the one at ``root``."""
    copies, removes = [], set()
    known: dict[str, FileRow] = {}
    for row in present:
        removes.add(row["path"])
        known[_tag(row, CLONED_FROM)] = row
    for row in (absolute_row(row, root) for row in source):
        had = known.get(row["path"])
        if had is None or not _is_copy(row, _with_time_of_original(had)):
            copies.append(Copy(row, None))
        elif _has_the_vector(had, row):
            removes.discard(had["path"])
        else:
            copies.append(Copy(row, had))
    return Deep(copies, frozenset(removes))


def _with_time_of_original(had: FileRow) -> FileRow:
    return {**had, "modificationTime": _tag(had, CLONED_TIME) or had["modificationTime"]}


def row_of_copy(copy: Copy, path: str, modified_ms: int, vector: Descriptor | None) -> dict[str, Any]:
    """The row of a copied file, with its own path, time and vector."""
    tags = {
        **(copy.row["tags"] or {}),
        CLONED_FROM: copy.row["path"],
        CLONED_VECTOR: _vector_id(copy.row),
        CLONED_TIME: str(copy.row["modificationTime"]),
        OWN_VECTOR: "" if vector is None else vector.unique_id,
    }
    own = {"path": path, "modificationTime": modified_ms, "tags": tags}
    return {**copy.row, **own, "deletionVector": None if vector is None else vector.to_row()}


def _has_the_vector(had: FileRow, row: FileRow) -> bool:
    """Whether a copy has the vector of the source's file: none, the same in the log, or a copy of its file."""
    if _one_vector(had, row):
        return True
    return _vector_id(row) == _tag(had, CLONED_VECTOR) and _vector_id(had) == _tag(had, OWN_VECTOR)


def _is_copy(row: FileRow, known: FileRow) -> bool:
    """Whether both rows describe one file, with the same row ids where the source has some."""
    same_ids = row["baseRowId"] is None or row["baseRowId"] == known["baseRowId"]
    return same_ids and _facts(row) == _facts(known)


def _facts(row: FileRow) -> tuple[Any, ...]:
    return row["size"], str(row["modificationTime"]), dict(row["partitionValues"] or {})


def _one_vector(row: FileRow, known: FileRow) -> bool:
    return _vector_id(row) == _vector_id(known)


def _vector_id(row: FileRow) -> str:
    vector = row.get("deletionVector")
    return "" if vector is None else Descriptor.from_row(vector).unique_id


def _tag(row: FileRow, name: str) -> str:
    return str(dict(row.get("tags") or {}).get(name, ""))
