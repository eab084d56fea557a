"""Table features: what a protocol requires, and the rules of single features. Pure."""
