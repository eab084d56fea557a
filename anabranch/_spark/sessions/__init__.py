"""Spark sessions: their settings, working folder, Python objects, and the rows that they cache."""
