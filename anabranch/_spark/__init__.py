"""Rows, by Spark's public API: scanning a file set, finding row addresses, writing files. Never sees a conflict."""
