"""Plans a clone: which of the source's files it already has, which it needs, and which it must remove.

Knows rows of the log and spellings of paths. Pure. A shallow clone refers to the source's own files by absolute URIs. A
deep clone has copies, each tagged with its original, so that a second clone finds existing copies. Guarantee: a file
counts as present only if the log shows that it has exactly the source's rows, deleted ones too, whatever has happened
to the clone since.

PROTOCOL.md, sections "Add File and Remove File" and "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch._protocol.actions import FileRow
from anabranch._protocol.layout.deletion_vectors import Descriptor, vector_id
from anabranch._protocol.layout.paths import absolute, encode, store_name
from anabranch.errors.secrets import without_secrets

CLONED_FROM = "anabranch.clonedFrom"
CLONED_VECTOR = "anabranch.clonedVector"
CLONED_TIME = "anabranch.clonedTime"
OWN_VECTOR = "anabranch.ownVector"
"""Tags of a copied file: the URI of its original; the deletion vector of the original, and its own vector with the same
rows, each by unique id or empty; the modification time of the original, which older copies have as their own.
"""

_TAGS = frozenset({CLONED_FROM, CLONED_VECTOR, CLONED_TIME, OWN_VECTOR})


@dataclass(frozen=True)
class ShallowPlan:
    """The changes that make a table a shallow clone.

    Attributes:
        adds: files to add.
        removes: paths to remove.
        other: present paths with the same vector, but other metadata than in the source; no commit may both remove and
            add such a file.
    """

    adds: list[FileRow]
    removes: frozenset[str]
    other: frozenset[str]


@dataclass(frozen=True)
class Copy:
    """A file that a deep clone still needs.

    Attributes:
        row: the source's row, with an absolute URI.
        had: an existing copy that differs only in its vector; None if the file must be copied.
    """

    row: FileRow
    had: FileRow | None


@dataclass(frozen=True)
class DeepPlan:
    """The changes that make a deep clone: ``copies`` to make, and paths to remove."""

    copies: list[Copy]
    removes: frozenset[str]


def absolute_row(row: FileRow, root: str, target: str | None = None) -> dict[str, Any]:
    """The row of a file of the table at ``root`` in another table: with absolute URIs, except for files in ``target``.
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
    descriptor = Descriptor.from_row(vector)
    if descriptor.storage_type == "u":
        return {**descriptor.to_row(), "storageType": "p", "pathOrInlineDv": absolute(root, encode(descriptor.name))}
    return (
        {**descriptor.to_row(), "pathOrInlineDv": without_secrets(descriptor.path_or_inline)}
        if descriptor.storage_type == "p"
        else descriptor.to_row()
    )


def plan_shallow(source: Iterable[FileRow], root: str, target: str, present: Iterable[FileRow]) -> ShallowPlan:
    """The changes that make the table at ``target``, with the files ``present``, a shallow clone of the table at
    ``root``.
    """
    wanted_rows = {row["path"]: row for row in (absolute_row(row, root, target) for row in source)}
    present_rows = {row["path"]: row for row in present}
    alike = {
        path for path, row in wanted_rows.items() if path in present_rows and _is_same_vector(row, present_rows[path])
    }
    return ShallowPlan(
        adds=[row for path, row in wanted_rows.items() if path not in alike],
        removes=frozenset(present_rows.keys() - alike),
        other=frozenset(path for path in alike if not _is_copy(wanted_rows[path], present_rows[path])),
    )


def plan_deep(source: Iterable[FileRow], root: str, present: Iterable[FileRow]) -> DeepPlan:
    """The changes that make a table with the files ``present`` a deep clone of the table at ``root``."""
    copies, removes = [], set()
    copies_by_source: dict[str, FileRow] = {}
    for row in present:
        removes.add(row["path"])
        copies_by_source[_tag(row, CLONED_FROM)] = row
    for row in (absolute_row(row, root) for row in source):
        had = copies_by_source.get(row["path"])
        if had is None or not _is_copy(row, _with_time_of_original(had)):
            copies.append(Copy(row, None))
        elif _has_vector_of_source(had, row):
            removes.discard(had["path"])
        else:
            copies.append(Copy(row, had))
    return DeepPlan(copies, frozenset(removes))


def _with_time_of_original(had: FileRow) -> FileRow:
    return {**had, "modificationTime": _tag(had, CLONED_TIME) or had["modificationTime"]}


def row_of_copy(copy: Copy, path: str, modified_ms: int, vector: Descriptor | None) -> dict[str, Any]:
    """The row of a copied file, with its own path, time and vector."""
    tags = {
        **(copy.row["tags"] or {}),
        CLONED_FROM: copy.row["path"],
        CLONED_VECTOR: vector_id(copy.row),
        CLONED_TIME: str(copy.row["modificationTime"]),
        OWN_VECTOR: "" if vector is None else vector.unique_id,
    }
    own = {"path": path, "modificationTime": modified_ms, "tags": tags}
    return {**copy.row, **own, "deletionVector": None if vector is None else vector.to_row()}


def _has_vector_of_source(had: FileRow, row: FileRow) -> bool:
    """Whether a copy has the vector of the source's file: none, the same entry in the log, or a copy of the vector's
    file.
    """
    if _is_same_vector(had, row):
        return True
    return vector_id(row) == _tag(had, CLONED_VECTOR) and vector_id(had) == _tag(had, OWN_VECTOR)


def _is_copy(row: FileRow, present: FileRow) -> bool:
    """Whether both rows describe one file, with the same row ids if the source has any."""
    same_ids = row["baseRowId"] is None or row["baseRowId"] == present["baseRowId"]
    return same_ids and _facts(row) == _facts(present)


def _facts(row: FileRow) -> tuple[Any, ...]:
    return row["size"], str(row["modificationTime"]), dict(row["partitionValues"] or {})


def _is_same_vector(row: FileRow, present: FileRow) -> bool:
    return vector_id(row) == vector_id(present)


def _tag(row: FileRow, name: str) -> str:
    return str(dict(row.get("tags") or {}).get(name, ""))
