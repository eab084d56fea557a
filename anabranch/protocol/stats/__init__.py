"""Statistics of files, and which files a condition can leave out by them. Pure."""
