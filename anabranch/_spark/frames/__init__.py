"""What DataFrames read, and what their failures mean."""
