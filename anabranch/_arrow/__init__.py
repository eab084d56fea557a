"""Rows in Arrow, without Spark: reading, finding, computing and writing them. Never sees a conflict."""
