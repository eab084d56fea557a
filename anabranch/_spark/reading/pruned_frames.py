"""Prunes a DataFrame of a table's rows, so that it opens only some of its files.

Spark does not open a file if a filter on the hidden column ``_metadata.file_path`` rules it out. Such a filter goes on
top of the frame, so columns taken from it (``df["id"]``) keep their meaning. A union has no such column: if some files
have deleted rows, the filter goes into its parts, and the steps applied to the frame are repeated. Knows nothing of
conditions. Guarantee: a file whose path Spark spells in an unexpected way is never left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from anabranch._protocol.layout.file_sets import FileSet
from anabranch._spark.frames.failures import translate_errors
from anabranch._spark.reading.paths import Place, literal, places, spark_root
from anabranch._spark.reading.raw_rows import read_options
from anabranch._spark.sessions.session import is_connect
from anabranch.errors import AnabranchError
from anabranch.errors.process_state import cache

Step = Callable[[DataFrame], DataFrame]
AT_MOST = 1000
"""Maximum number of names in a filter: so many do not yet slow the plan down more than the pruning gains."""
_ASKED = 32
_PLAIN = re.compile(r"[A-Za-z0-9._=/-]*")
_spelled = cache("spellings of tables' files", 1000)


@dataclass(frozen=True)
class ScanOrigin:
    """How a frame of a table's rows was made. It does not refer to the frame itself, which can thus be
    garbage-collected.

    Attributes:
        files: the files that the scan reads.
        parts: the frames whose union it is.
        finish: makes the frame from such a union.
        before: the frames from which it was made.
        count: number of files that it opens.
    """

    spark: SparkSession
    files: FileSet
    parts: tuple[DataFrame, ...]
    finish: Step
    before: tuple[DataFrame, ...] = ()
    count: int = 0

    @property
    def is_union(self) -> bool:
        """Whether the filter goes into parts, and the steps applied to the frame are repeated."""
        return len(self.parts) > 1

    def then(self, frame: DataFrame, step: Step) -> ScanOrigin:
        """The description of the frame after one more step."""
        return replace(self, finish=_chain_steps(self.finish, step), before=(*self.before, frame))

    def only(self, frame: DataFrame, paths: Sequence[str]) -> DataFrame | None:
        """The rows of the frame, read from these files alone, which hold all of them; None if that gains nothing or is
        impossible.
        """
        if len(paths) > min(AT_MOST, self.count // 2) or not self.parts:
            return None
        file_places = places(self.spark, self.files.root, paths, self.files.allowed)
        try:
            if self._is_cached(frame) or not _are_spelled_as_expected(self.spark, self.files.root, file_places):
                return None
            return self._try_filter_files(frame, [place.shown for place in file_places])
        except (PySparkException, AnabranchError):  # the scan has no such column, or a file cannot be read
            return None

    def _try_filter_files(self, frame: DataFrame, shown: list[str]) -> DataFrame | None:
        if is_connect(self.spark) and self.spark.version.startswith(("4.0.", "4.1.")):
            return None  # it would not find the metadata of two such frames in one query
        if not self.is_union:
            filtered = _among(frame, shown)
            if self.files.layouts:  # the one part may be a union, for which Spark Connect would fail only later
                _ = filtered.schema
            return filtered
        if is_connect(self.spark):  # repeated steps create different columns there
            return None
        repeated = self.finish(reduce(DataFrame.unionAll, [_among(part, shown) for part in self.parts]))
        return repeated if repeated.columns == frame.columns else None  # a step may have changed its meaning since

    def _is_cached(self, frame: DataFrame) -> bool:
        """Whether its rows are cached: Spark would not find them below a filter."""
        return any(ancestor.storageLevel != StorageLevel.NONE for ancestor in (*self.before, frame))


def _chain_steps(first: Step, second: Step) -> Step:
    return lambda rows: second(first(rows))


def _among(rows: DataFrame, shown: list[str]) -> DataFrame:
    return rows.filter(rows.metadataColumn("_metadata")["file_path"].isin(shown))


def _are_spelled_as_expected(spark: SparkSession, root: str, file_places: Sequence[Place]) -> bool:
    """Whether Spark spells the paths of these files as expected. One file of each kind is checked, once for each
    table.
    """
    base = spark_root(spark, root)
    unknown = {key: place for place in file_places if (key := (base, _odd_part(place.log))) not in _spelled}
    if len(unknown) > _ASKED or (unknown and not have_expected_paths(spark, root, list(unknown.values()))):
        return False
    _spelled.update(dict.fromkeys(unknown, True))
    return True


def _odd_part(path: str) -> str:
    """The part of a path whose spelling may vary; empty if all characters are plain."""
    folder, _, name = path.rpartition("/")
    if not _PLAIN.fullmatch(name):
        return path
    return "" if _PLAIN.fullmatch(folder) else folder


def have_expected_paths(spark: SparkSession, root: str, file_places: Sequence[Place]) -> bool:
    """Whether Spark itself, which opens these files for the check, spells their paths as expected."""
    readers = [literal(place.reader) for place in file_places]
    read = spark.read.schema(T.StructType()).options(**read_options()).parquet(*readers)
    paths = read.select(read.metadataColumn("_metadata")["file_path"].alias("file"))
    rows = paths.limit(1) if len(file_places) == 1 else paths.distinct()
    with translate_errors("the scan", root):
        return {row["file"] for row in rows.collect()} == {place.shown for place in file_places}
