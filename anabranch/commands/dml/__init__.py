"""Commands that change rows: append, write, insert, update, delete, merge."""
