"""Expressions: what an SQL text over the columns of a row is, and what may be done with it. Pure."""
