"""Relations: frames over the many files of a version, made once and used again.

To make one, Spark takes each path by itself and asks the store about it: a second or more for ten thousand files. What
was made is used again for the same files, under the same settings, by the same session. Knows nothing of versions: the
files are the same if they are the very table of Arrow that was given before, which nothing can change. Guarantee: each
use has columns of its own, so that a join of two uses never takes the columns of one for those of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.columns.types import column
from anabranch._spark.sessions.session import is_connect
from anabranch._storage.told import call_options
from anabranch.errors.process_state import cache

_FEW, _TOO_MANY = 32, 250_000
"""So few files are listed faster than they are looked up; so many take too much of the JVM's memory to be kept."""
_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.ansi.enabled",
    "spark.hadoop.fs.s3.impl",
)
"""On which it depends how paths and partition values are read when a relation is made."""
_made = cache("relations of many files", 4)


@dataclass(frozen=True, eq=False)
class _Made:
    """Frames, and what they were made of."""

    files: FileSet
    parts: tuple[DataFrame, ...]

    def are_for(self, spark: SparkSession, files: FileSet) -> bool:
        ours = self.files
        return (
            all(each.sparkSession is spark for each in self.parts)
            and ours.files is files.files
            and (ours.schema, ours.layouts, ours.allowed) == (files.schema, files.layouts, files.allowed)
        )


def reuse_or_make(spark: SparkSession, files: FileSet, make: Callable[[], Sequence[DataFrame]]) -> Sequence[DataFrame]:
    """The frames that ``make`` gives for these files, or those that it gave before. On Spark Connect each is made anew,
    since a server keeps nothing of it; so is what is read with settings of one call, such as credentials.
    """
    if not _FEW < len(files.files) <= _TOO_MANY or is_connect(spark) or call_options():
        return make()
    key = (id(spark), files.root, files.table_id, files.version, *(spark.conf.get(name, None) for name in _SETTINGS))
    made = _made.get(key)
    if made is None or not made.are_for(spark, files):
        made = _made[key] = _Made(files, tuple(make()))
    return [_anew(part) for part in made.parts]


def _anew(rows: DataFrame) -> DataFrame:
    """The same rows under columns that are new to Spark; hidden ones stay behind them."""
    return rows.select(*[column(name).alias(name) for name in rows.columns])
