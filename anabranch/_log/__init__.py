"""One version of a table: its log files, their content, and how a new version is put. Knows nothing of conflicts or
rows.
"""
