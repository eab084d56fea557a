"""Names: entries in Spark's catalog, and the tables to which they lead.

Knows Spark's catalog and commands; knows no SQL text. Guarantee: an entry is written after its table exists.
"""
