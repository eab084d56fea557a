"""Columns of Spark: their types, conversions, struct members, and a table's rules as expressions."""
