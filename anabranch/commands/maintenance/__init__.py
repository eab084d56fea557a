"""Commands that keep a table in shape or copy it: OPTIMIZE, REORG, VACUUM, RESTORE, CLONE, CONVERT, FSCK, checks."""
