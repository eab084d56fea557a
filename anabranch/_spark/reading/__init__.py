"""Rows that Spark reads: by address, as a version, and as changes."""
