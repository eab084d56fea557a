"""The grammar of every statement that touches Delta tables: one function each, from tokens to a value.

Works on the tokens of sqlglot's dialect for Databricks. Builds no syntax tree, so that expressions and queries reach
Spark as they were written. Knows nothing of rows, sessions or logs: the caller resolves names to Delta tables.
"""
