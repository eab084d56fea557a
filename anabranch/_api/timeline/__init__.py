"""The page of a timeline: one HTML file that needs nothing else, and the object that a notebook shows."""
