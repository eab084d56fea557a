"""The timeline of a table: what each commit did, the size of the table after it, and maintenance advice."""
