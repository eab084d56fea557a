"""Rows that Spark reads: by their addresses, as a version, as changes."""
