"""Computes the ids and commit versions of rows, as columns, if the table tracks its rows.

Knows how files and the log hold ids, and not why rows are read. Guarantee: a row has the id that its file stores for
it, or the file's first id plus its position; never the id of another row.

PROTOCOL.md, section "Reader Requirements for Row Tracking".
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch._protocol.features.row_tracking import HiddenColumns
from anabranch._protocol.layout.addresses import free_name
from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.columns.types import column


def names_of(files: FileSet) -> tuple[str, ...]:
    """The hidden columns in which rewritten rows keep their ids and versions; empty if rows are not tracked."""
    return () if files.tracked is None else (files.tracked.row_id, files.tracked.commit_version)


def defaults_from_log(files: FileSet) -> dict[str, pa.Array]:
    """The first id and the commit version of each file, from the log, under unused names."""
    used_names = [*files.schema.names, *names_of(files)]
    return {
        free_name("__anabranch_first_id", used_names): files.files["baseRowId"].combine_chunks(),
        free_name("__anabranch_version", used_names): files.files["defaultRowCommitVersion"].combine_chunks(),
    }


def resolve_row_ids(rows: DataFrame, tracked: HiddenColumns, position: str, first_id: str, version: str) -> DataFrame:
    """Fill the hidden columns with ids and commit versions where files do not store any."""
    default_id = column(first_id) + column(position)
    return rows.withColumns(
        {
            tracked.row_id: F.coalesce(column(tracked.row_id), default_id),
            tracked.commit_version: F.coalesce(column(tracked.commit_version), column(version)),
        }
    )


def id_columns_to_keep(files: FileSet, changed: Column) -> list[Column]:
    """The hidden columns of rewritten rows: a row keeps its id, and its version unless it is changed."""
    if files.tracked is None:
        return []
    version = F.when(~changed, column(files.tracked.commit_version))
    return [column(files.tracked.row_id), version.alias(files.tracked.commit_version)]
