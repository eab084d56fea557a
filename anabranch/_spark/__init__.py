"""Rows through Spark's public API: scans of file sets, addresses of rows, writers of files. Never sees a conflict."""
