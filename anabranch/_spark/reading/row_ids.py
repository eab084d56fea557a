"""Row ids: the ids and commit versions of rows, as columns, where the table tracks its rows.

Knows how files and the log hold ids, and not why rows are read. Guarantee: a row has the id that its file holds for it,
else the file's first id plus its position; it never has another row's.

PROTOCOL.md, section "Reader Requirements for Row Tracking".
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch._protocol.features.row_tracking import Tracked
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.columns.types import column


def names_of(files: FileSet) -> tuple[str, ...]:
    """The hidden columns in which rewritten rows keep their ids and versions; none where rows are not tracked."""
    return () if files.tracked is None else (files.tracked.row_id, files.tracked.commit_version)


def defaults_from_log(files: FileSet) -> dict[str, pa.Array]:
    """The first id and the commit version of each file, from the log, under names that no column has."""
    taken = [*files.schema.names, *names_of(files)]
    return {
        free_name("__anabranch_first_id", taken): files.files["baseRowId"].combine_chunks(),
        free_name("__anabranch_version", taken): files.files["defaultRowCommitVersion"].combine_chunks(),
    }


def resolve_row_ids(rows: DataFrame, tracked: Tracked, position: str, first_id: str, version: str) -> DataFrame:
    """Rows with their ids and commit versions in the hidden columns, where their files hold no others."""
    own = column(first_id) + column(position)
    return rows.withColumns(
        {
            tracked.row_id: F.coalesce(column(tracked.row_id), own),
            tracked.commit_version: F.coalesce(column(tracked.commit_version), column(version)),
        }
    )


def id_columns_to_keep(files: FileSet, changed: Column) -> list[Column]:
    """The hidden columns of rewritten rows: each keeps its id, and its version unless it is changed."""
    if files.tracked is None:
        return []
    version = F.when(~changed, column(files.tracked.commit_version))
    return [column(files.tracked.row_id), version.alias(files.tracked.commit_version)]
