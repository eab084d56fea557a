"""The rules of a table for its rows: constraints, defaults, generated columns, and which of them may be evaluated."""
