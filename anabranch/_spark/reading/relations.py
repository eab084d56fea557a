"""Reuses frames over the many files of a version.

To create such a frame, Spark queries the store about each path individually: a second or more for ten thousand files. A
frame is reused for the same files, under the same settings, by the same session. Knows nothing of versions: files are
the same if they are the very same Arrow table, which is immutable. Guarantee: each use has columns of its own, so that
a join of two uses never mistakes the columns of one for those of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.columns.types import column
from anabranch._spark.sessions.session import is_connect
from anabranch._storage.store_settings import call_options
from anabranch.errors.process_state import cache

_FEW, _TOO_MANY = 32, 250_000
"""Number of files up to which listing is faster than reuse, and above which frames take too much of the JVM's
memory.
"""
_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.ansi.enabled",
    "spark.hadoop.fs.s3.impl",
)
"""Settings that change how paths and partition values are read when a frame is created."""
_made = cache("relations of many files", 4)


@dataclass(frozen=True, eq=False)
class _Made:
    """Frames, and the files that they read."""

    files: FileSet
    parts: tuple[DataFrame, ...]

    def are_for(self, spark: SparkSession, files: FileSet) -> bool:
        ours = self.files
        return (
            all(part.sparkSession is spark for part in self.parts)
            and ours.files is files.files
            and (ours.schema, ours.layouts, ours.allowed) == (files.schema, files.layouts, files.allowed)
        )


def reuse_or_make(spark: SparkSession, files: FileSet, make: Callable[[], Sequence[DataFrame]]) -> Sequence[DataFrame]:
    """The frames that ``make`` returns for these files, or returned before. They are always made anew on Spark Connect,
    where the server keeps nothing of them, and with settings for a single call, such as credentials.
    """
    if not _FEW < len(files.files) <= _TOO_MANY or is_connect(spark) or call_options():
        return make()
    key = (id(spark), files.root, files.table_id, files.version, *(spark.conf.get(name, None) for name in _SETTINGS))
    frames = _made.get(key)
    if frames is None or not frames.are_for(spark, files):
        frames = _made[key] = _Made(files, tuple(make()))
    return [_with_new_columns(part) for part in frames.parts]


def _with_new_columns(rows: DataFrame) -> DataFrame:
    """The same rows under columns that are new to Spark; hidden columns remain available."""
    return rows.select(*[column(name).alias(name) for name in rows.columns])
