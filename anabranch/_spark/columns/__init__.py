"""Columns: types, fits, members of structs, and the rules of a table as expressions."""
