"""Python's doors: what users call with a session or without one.

Each door collects what is asked, makes one command of it and shows the result as PySpark and ``delta.tables`` do. Doors
decide nothing about transactions.
"""
