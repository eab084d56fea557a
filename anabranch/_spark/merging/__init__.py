"""MERGE in Spark: its source, its join and its images; and checks of a statement's expressions."""
