"""Where a table's files lie and how rows are laid out in them: paths, partitions, clustering, moves. Pure."""
