"""Evening out: how rows are parted before they are written, so that few files come of them.

Knows Spark's rebalancing shuffle and the settings that it goes by. Knows nothing of tables or files. Guarantees: the
rows are the same ones, in whatever order; no setting of the session is touched.

What delta-spark does inside of a plan of its own is a shuffle by the partition columns here, whose parts Spark puts
together where they are small and splits where they are larger than the session wants them
(``spark.sql.adaptive.advisoryPartitionSizeInBytes``). Raising that setting for a while would change how the query whose
rows are written runs, and so would be slow where it hurts most.

Source: Delta Lake documentation, "Optimized Write".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from anabranch.protocol.rules.table_rules import Rules
from anabranch.spark.session import optimizes_writes

_ADAPTS = "spark.sql.adaptive.enabled"
_PARTS = 2
"""Without partition columns: Spark splits these where they are large, and would make one for each core out of more."""
_PARTITIONED_PARTS = 256
"""So many that a large partition seldom shares one: what is split is split with all partitions that lie in it."""


def evened(spark: SparkSession, rows: DataFrame, partition_columns: Sequence[str], rules: Rules) -> DataFrame:
    """The rows parted so that few files come of them, where that is wished for and Spark can do it well.

    Args:
        spark: the session.
        rows: the rows, with the partition columns.
        partition_columns: by which files are parted anyway; rows of one partition come together.
        rules: what the table and the command wish.
    """
    if not is_wished(rules, optimizes_writes(spark)) or str(spark.conf.get(_ADAPTS)).lower() != "true":
        return rows
    return rows.hint("rebalance", parts(partition_columns), *map(_quoted, partition_columns))


def is_wished(rules: Rules, session: bool | None) -> bool:
    """Whether few files are wished for: what the command says counts most, then the session, then the table.

    Example:
        >>> is_wished(Rules(optimized=True), False)
        False
    """
    said = rules.optimized_asked if rules.optimized_asked is not None else session
    return rules.optimized if said is None else said


def parts(partition_columns: Sequence[str]) -> int:
    """Into how many parts rows are shuffled, before Spark puts them together and splits them."""
    return _PARTITIONED_PARTS if partition_columns else _PARTS


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
