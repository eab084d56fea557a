"""Checks whether the partition values that Spark reads from folder names are those of the log.

Knows PROTOCOL.md, "Partition Value Serialization" (the log decides; folders are decoration), and how Spark parses
folder names. Pure. Guarantee: `folders_agree` is True only if Spark's own partition discovery finds exactly the log's
values; then a scan prunes partitions at no extra cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from anabranch._protocol.layout.file_sets import FileSet
from anabranch._protocol.layout.paths import is_absolute
from anabranch._protocol.partitions import HIVE_NULL, hive_segment, map_column, names_no_instant

_READ_ALIKE = frozenset({"string", "byte", "short", "integer", "long", "boolean", "date", "timestamp"})
"""Not decimals: Spark applies the scale of one folder to all. Not floats: -0.0 and 0.0 would be one value."""


def folders_agree(files: FileSet) -> bool:
    """Whether every folder has the log's values, in the order and spelling of Spark's writer."""
    if not files.partition_columns:
        return True
    fields = [files.schema.field(name) for name in files.partition_columns]
    if not all(field.type in _READ_ALIKE for field in fields):
        return False
    names = [field.physical_name for field in fields]
    if any(field.type == "timestamp" and names_no_instant(files.files, field.physical_name) for field in fields):
        return False  # Spark would use the session's zone, which may have changed when the query runs
    return all(_agrees(folder, names, values) for folder, *values in _one_file_per_folder(files.files, names))


def _one_file_per_folder(files: pa.Table, names: list[str]) -> list[list[str | None]]:
    """One path and the values for each combination of folder and values."""
    columns = {f"v{i}": map_column(files["partitionValues"], name) for i, name in enumerate(names)}
    folders = pc.replace_substring_regex(files["path"], r"[^/]*$", "")
    table = pa.table({"path": folders, **columns})
    return [list(row.values()) for row in table.group_by(table.column_names).aggregate([]).to_pylist()]


def _agrees(folder: str | None, names: list[str], values: Sequence[str | None]) -> bool:
    if folder is None or is_absolute(folder) or HIVE_NULL in values:
        return False
    segments = unquote(folder).rstrip("/").split("/")
    expected = [hive_segment(name, value) for name, value in zip(names, values, strict=True)]
    outer, inner = segments[: -len(names)], segments[-len(names) :]
    # Spark continues upwards while folders look like partitions.
    return inner == expected and not any("=" in segment for segment in outer)
