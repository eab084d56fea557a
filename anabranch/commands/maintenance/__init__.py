"""Commands that maintain or copy a table: OPTIMIZE, REORG, VACUUM, RESTORE, CLONE, CONVERT, FSCK, checks."""
