"""Rules that a table holds rows to: constraints, defaults, generated columns, and which of them may be evaluated."""
