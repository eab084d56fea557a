"""Shuffles rows before they are written, so that they become few files.

Knows Spark's rebalancing shuffle and its settings. Knows nothing of tables or files. Guarantees: the rows are the same,
in any order; no setting of the session is changed.

delta-spark uses a plan node of its own. Here the rows are shuffled by the partition columns; Spark joins small parts
and splits those above the session's ``spark.sql.adaptive.advisoryPartitionSizeInBytes``. Raising that setting for a
while would change how the query that produces the rows runs, and make it slow.

Source: Delta Lake documentation, "Optimized Write".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from anabranch._protocol.rules.table_rules import Rules
from anabranch._spark.columns.types import quote_identifier
from anabranch._spark.sessions.session import optimizes_writes

_ADAPTS = "spark.sql.adaptive.enabled"
_PARTS = 2
"""Number of parts without partition columns: Spark splits large ones, and would make a file for each core from more."""
_PARTITIONED_PARTS = 256
"""Enough parts that a large partition seldom shares one: a part is split together with all partitions in it."""


def rebalance_rows(spark: SparkSession, rows: DataFrame, partition_columns: Sequence[str], rules: Rules) -> DataFrame:
    """The rows, shuffled into few parts by their partition columns, if the rules of table and command request that and
    adaptive execution is on.
    """
    if not is_requested(rules, optimizes_writes(spark)) or str(spark.conf.get(_ADAPTS)).lower() != "true":
        return rows
    return rows.hint("rebalance", parts(partition_columns), *map(quote_identifier, partition_columns))


def is_requested(rules: Rules, session: bool | None) -> bool:
    """Whether few files are requested: by the command, otherwise by the session, otherwise by the table.

    Example:
        >>> is_requested(Rules(optimized=True), False)
        False
    """
    requested = rules.optimized_asked if rules.optimized_asked is not None else session
    return rules.optimized if requested is None else requested


def parts(partition_columns: Sequence[str]) -> int:
    """Number of parts into which rows are shuffled, before Spark joins and splits them."""
    return _PARTITIONED_PARTS if partition_columns else _PARTS
