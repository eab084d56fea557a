"""Columns and types: as values, in Delta's JSON, under their physical names, and how they may change."""
