"""Row ids: what each row of a table that tracks its rows is known by, as columns.

Knows how ids lie in files and in the log. Knows nothing of why rows are read. Guarantee: a row has the id that its file
holds for it, else its file's first id and its position; it never has another's.

PROTOCOL.md, section "Reader Requirements for Row Tracking".
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch.protocol.features.row_tracking import Tracked
from anabranch.protocol.layout.file_sets import FileSet
from anabranch.spark.types import column, free_name


def names_of(files: FileSet) -> tuple[str, ...]:
    """The columns in which rows that are written anew keep what they are known by; none where they keep nothing."""
    return () if files.tracked is None else (files.tracked.row_id, files.tracked.commit_version)


def known_of(files: FileSet) -> dict[str, pa.Array]:
    """What the log says of each file: its first id, and its commit version, under names that no column has."""
    taken = [*files.schema.names, *names_of(files)]
    return {
        free_name("__anabranch_first_id", taken): files.files["baseRowId"].combine_chunks(),
        free_name("__anabranch_version", taken): files.files["defaultRowCommitVersion"].combine_chunks(),
    }


def resolved(rows: DataFrame, tracked: Tracked, position: str, first_id: str, version: str) -> DataFrame:
    """Rows with their ids and commit versions in the hidden columns, where their files hold no others."""
    own = column(first_id) + column(position)
    return rows.withColumns(
        {
            tracked.row_id: F.coalesce(column(tracked.row_id), own),
            tracked.commit_version: F.coalesce(column(tracked.commit_version), column(version)),
        }
    )


def kept(files: FileSet, changed: Column) -> list[Column]:
    """The hidden columns of rows that are written anew: each keeps its id, and its version unless it is changed."""
    if files.tracked is None:
        return []
    version = F.when(~changed, column(files.tracked.commit_version))
    return [column(files.tracked.row_id), version.alias(files.tracked.commit_version)]
