"""Commands that read: rows, changes, history, details, and which files a condition leaves."""
