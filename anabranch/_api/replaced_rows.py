"""The options of a writer that say which rows an overwrite replaces.

Knows `replaceWhere`, `replaceOn`, `replaceUsing`, `targetAlias` and `partitionOverwriteMode`, and that they exclude
each other. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from anabranch._log.snapshot import Snapshot
from anabranch._spark.engine import SparkEngine
from anabranch._sql.conditions import as_spark_reads
from anabranch._sql.replace_request import ReplaceRequest, parse_using
from anabranch.commands.dml.matched_rows import Matching
from anabranch.commands.options import Options
from anabranch.errors import IncompatibleOptions, InvalidOption, ReplacesByFilter, ReplacesPartitions


@dataclass(frozen=True)
class ReplacedRows:
    """What an overwrite replaces, as its options say it; ``alias`` is the table's in the condition.

    Attributes:
        where, on, using: the texts of ``replaceWhere``, ``replaceOn`` and ``replaceUsing``.
        partitions: the value of ``partitionOverwriteMode``, in lower case.
    """

    where: str | None = None
    on: str | None = None
    using: str | None = None
    alias: str | None = None
    partitions: str | None = None

    @classmethod
    def take(cls, options: Options, mode: str) -> ReplacedRows:
        """Take the options of a write in this mode. Raises InvalidOption: they do not go together."""
        where, on, using = (options.take(name) for name in ("replaceWhere", "replaceOn", "replaceUsing"))
        matched = "replaceOn" if on is not None else None if using is None else "replaceUsing"
        alias = None if matched is None and where is None else options.take("targetAlias")
        partitions = options.take("partitionOverwriteMode")
        replaced = cls(where, on, using, alias, None if partitions is None else partitions.lower())
        if matched is not None:
            replaced.check_alone(matched, options, mode)
        if partitions is not None and replaced.partitions not in ("static", "dynamic"):
            raise InvalidOption(option="partitionOverwriteMode", value=partitions, reason="it takes static or dynamic.")
        return replaced

    @property
    def is_matched(self) -> bool:
        """Whether its own rows say what it replaces."""
        return self.on is not None or self.using is not None

    def check_alone(self, name: str, options: Options, mode: str) -> None:
        """Raises InvalidOption unless the option of this name, which matches rows, is the only one that says so."""
        value = self.on or self.using
        if mode != "overwrite":
            raise InvalidOption(option=name, value=value, reason=f"it needs mode overwrite, and this is mode {mode}.")
        if self.on is not None and self.using is not None:
            raise IncompatibleOptions(option="replaceOn", other="replaceUsing", value=value, reason="")
        if self.where is not None:
            raise ReplacesByFilter(option="replaceWhere", other=name, value=self.where, reason="")
        if self.partitions is not None:
            raise ReplacesPartitions(option="partitionOverwriteMode", other=name, value=self.partitions, reason="")
        if options.copy().flag("dataChange") is False:
            raise IncompatibleOptions(option="dataChange", other=name, value="false", reason="")

    def matching(
        self, rows: DataFrame, snapshot: Snapshot, engine: SparkEngine, to_write: Callable[[Any], Any] | None
    ) -> Matching:
        """The matching of ``replaceOn`` or ``replaceUsing``, of which one is given.

        Args:
            to_write: makes the rows to write of ``rows``, by position; None: they are written as they are, by name.

        Raises:
            InvalidCondition, UnknownUsingColumn, MisalignedUsingColumns: it does not fit table and rows.
        """
        on, using = as_spark_reads(self.on, engine), self.using or ""
        names = parse_using(using) if self.on is None else ()
        request = ReplaceRequest(
            rows, on, names, self.alias, by_position=to_write is not None, said=using, to_write=to_write
        )
        return request.matching(snapshot, engine)


def refuse_matching(options: Options) -> None:
    """Raises ReplacesByFilter if an overwrite that has a condition is also to replace the rows that its own match."""
    for name in ("replaceOn", "replaceUsing"):
        if options.copy().take(name) is not None:
            raise ReplacesByFilter(option="replaceWhere", other=name, value="given", reason="")
