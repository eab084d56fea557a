"""Statistics of files, and data skipping by them. Pure."""
