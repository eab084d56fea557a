"""Shared material of the tests: an engine without a JVM, and short words for tables and commands."""
