"""Rows that Spark writes, or leaves to Arrow, and files that are rewritten."""
