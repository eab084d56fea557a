"""Table features: what a protocol demands, and the words of single features. Pure."""
