"""Common mistakes: what they are, what the console shows, and a process that makes them."""
