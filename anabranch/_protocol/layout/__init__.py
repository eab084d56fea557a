"""Where a table's files are and how rows are arranged in them: paths, partitions, clustering, moves. Pure."""
