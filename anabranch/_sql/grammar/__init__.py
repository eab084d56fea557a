"""The grammar of every statement that touches Delta tables: one function each, from tokens to a value.

Works over the tokens of sqlglot's dialect for Databricks; no tree is built, so that what Spark has to read reaches it
as it was written. Knows nothing of rows, sessions or logs: which names are Delta tables is asked of the caller.
"""
