"""One version: which log files make it up, what they say, and how a new version is put. Knows nothing of conflicts or
rows.
"""
