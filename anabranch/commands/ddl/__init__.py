"""Commands that change what a table says of itself: columns, constraints, properties, protocol, layout."""
