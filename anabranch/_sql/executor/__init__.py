"""Running statements: each value as a command in a session, and queries and views with their tables put into place."""
