"""Runs parsed statements in a session: as commands, or as queries and views with DataFrames for their Delta tables."""
