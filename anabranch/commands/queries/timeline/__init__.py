"""The timeline of a table: what each commit did, how large the table was after it, and what would help it now."""
