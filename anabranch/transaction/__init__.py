"""Two versions, ours and the winner's: footprints, the conflict grid, carrying over, and the commit. Never sees a
row's values.
"""
