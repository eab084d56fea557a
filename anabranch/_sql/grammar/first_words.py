"""The first words of statements. Pure data."""

from __future__ import annotations

READS = frozenset(
    """( SELECT WITH VALUES FROM TABLE MAP REDUCE EXPLAIN INSERT CREATE DESCRIBE DESC SET DELETE UPDATE
    MERGE""".split()  # noqa: SIM905
)
"""First words of Spark's statements that may read Delta tables, and write none."""

NAMES = frozenset(
    """ALTER ANALYZE CACHE CALL COMMENT COPY CREATE DECLARE DROP EXECUTE LOAD MSCK REFRESH REPAIR REPLACE SHOW TRUNCATE
    UNCACHE""".split()  # noqa: SIM905
)
"""First words of other statements of Spark and Databricks that may name a Delta table."""

_OTHERS = frozenset(
    """ADD BEGIN CLEAR COMMIT CONVERT DFS EXPORT FSCK GENERATE GRANT IMPORT LIST LOCK OPTIMIZE REORG RESET RESTORE
    REVOKE ROLLBACK START UNLOCK USE VACUUM""".split()  # noqa: SIM905
)

KNOWN = READS | NAMES | _OTHERS
"""First words of all statements of Spark and Delta."""
