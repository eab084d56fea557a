"""One version of a table: which log files it consists of, what they say, and how a new version is put. Knows nothing of
conflicts or rows.
"""
