"""Commands that change a table's metadata: columns, constraints, properties, protocol, layout."""
