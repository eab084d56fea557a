"""Commands that read: rows, changes, history, details, and the files that a condition selects."""
