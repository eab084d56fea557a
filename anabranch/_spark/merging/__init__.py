"""MERGE: its source, its join, its images; and what a statement's expressions read and fit."""
