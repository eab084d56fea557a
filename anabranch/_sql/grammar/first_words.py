"""With which words statements begin. Pure data."""

from __future__ import annotations

READS = frozenset(
    """( SELECT WITH VALUES FROM TABLE MAP REDUCE EXPLAIN INSERT CREATE DESCRIBE DESC SET DELETE UPDATE
    MERGE""".split()  # noqa: SIM905
)
"""With what a statement of Spark's may begin that reads Delta tables, and writes none."""

NAMES = frozenset(
    """ALTER ANALYZE CACHE CALL COMMENT COPY CREATE DECLARE DROP EXECUTE LOAD MSCK REFRESH REPAIR REPLACE SHOW TRUNCATE
    UNCACHE""".split()  # noqa: SIM905
)
"""With what other statements of Spark's, and of Databricks', begin that may name a Delta table."""

_OTHERS = frozenset(
    """ADD BEGIN CLEAR COMMIT CONVERT DFS EXPORT FSCK GENERATE GRANT IMPORT LIST LOCK OPTIMIZE REORG RESET RESTORE
    REVOKE ROLLBACK START UNLOCK USE VACUUM""".split()  # noqa: SIM905
)

KNOWN = READS | NAMES | _OTHERS
"""With what any statement begins, of Spark's and of Delta's."""
