"""Pruned frames: a DataFrame of a table's rows that opens only some of its files.

Spark leaves a file unopened if a filter on the hidden column ``_metadata.file_path`` rules it out. Such a filter goes
on top of the frame, so columns taken from it (``df["id"]``) go on meaning what they meant. A union has no such column:
where some files have deleted rows, the filter goes into its parts, and what was done to the frame is done again. Knows
nothing of conditions. Guarantee: a file that Spark spells in another way than expected is never left out.
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
"""So many names make the plan no slower than the files that are left unopened would."""
_ASKED = 32
_PLAIN = re.compile(r"[A-Za-z0-9._=/-]*")
_spelled = cache("spellings of tables' files", 1000)


@dataclass(frozen=True)
class Scanned:
    """How a frame of a table's rows came about; the frame itself is not in here, so that it can be forgotten.

    Attributes:
        files: what the scan reads.
        parts: the frames whose union it is.
        finish: makes the frame out of such a union.
        before: the frames from which it was made.
        count: how many files it opens.
    """

    spark: SparkSession
    files: FileSet
    parts: tuple[DataFrame, ...]
    finish: Step
    before: tuple[DataFrame, ...] = ()
    count: int = 0

    @property
    def is_union(self) -> bool:
        """Whether the filter goes into parts, and what was done to the frame is done again."""
        return len(self.parts) > 1

    def then(self, frame: DataFrame, step: Step) -> Scanned:
        """What one more step makes of the frame."""
        return replace(self, finish=_chain_steps(self.finish, step), before=(*self.before, frame))

    def only(self, frame: DataFrame, paths: Sequence[str]) -> DataFrame | None:
        """The rows of the frame, read from these files alone, which hold all of them; None where that gains nothing,
        or cannot be done.
        """
        if len(paths) > min(AT_MOST, self.count // 2) or not self.parts:
            return None
        found = places(self.spark, self.files.root, paths, self.files.allowed)
        try:
            if self._is_cached(frame) or not _are_spelled_as_expected(self.spark, self.files.root, found):
                return None
            return self._try_filter_files(frame, [place.shown for place in found])
        except (PySparkException, AnabranchError):  # a scan that has no such column, or a file that cannot be read
            return None

    def _try_filter_files(self, frame: DataFrame, shown: list[str]) -> DataFrame | None:
        if not self.is_union:
            found = _among(frame, shown)
            if self.files.layouts:  # the one part may be a union, of which Spark Connect would say so only later
                _ = found.schema
            return found
        if is_connect(self.spark):  # what is done again makes other columns there
            return None
        redone = self.finish(reduce(DataFrame.unionAll, [_among(part, shown) for part in self.parts]))
        return redone if redone.columns == frame.columns else None  # what was done may mean something else by now

    def _is_cached(self, frame: DataFrame) -> bool:
        """Whether its rows are kept: with a filter below them Spark would not find those."""
        return any(each.storageLevel != StorageLevel.NONE for each in (*self.before, frame))


def _chain_steps(first: Step, second: Step) -> Step:
    return lambda rows: second(first(rows))


def _among(rows: DataFrame, shown: list[str]) -> DataFrame:
    return rows.filter(rows.metadataColumn("_metadata")["file_path"].isin(shown))


def _are_spelled_as_expected(spark: SparkSession, root: str, found: Sequence[Place]) -> bool:
    """Whether Spark calls these files what we think. One is looked at of all that are alike, once for each table."""
    base = spark_root(spark, root)
    unknown = {key: place for place in found if (key := (base, _odd_part(place.log))) not in _spelled}
    if len(unknown) > _ASKED or (unknown and not are_said(spark, root, list(unknown.values()))):
        return False
    _spelled.update(dict.fromkeys(unknown, True))
    return True


def _odd_part(path: str) -> str:
    """What of a path is spelled in ways of its own; none of it where all characters are plain."""
    folder, _, name = path.rpartition("/")
    if not _PLAIN.fullmatch(name):
        return path
    return "" if _PLAIN.fullmatch(folder) else folder


def are_said(spark: SparkSession, root: str, found: Sequence[Place]) -> bool:
    """Whether Spark itself, which opens these files for it, calls them what we think."""
    read = (
        spark.read.schema(T.StructType()).options(**read_options()).parquet(*[literal(each.reader) for each in found])
    )
    said = read.select(read.metadataColumn("_metadata")["file_path"].alias("file"))
    rows = said.limit(1) if len(found) == 1 else said.distinct()
    with translate_errors("the scan", root):
        return {row["file"] for row in rows.collect()} == {each.shown for each in found}
